import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable, type BeforeApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { readBody } from '../../platform/http/request-body.js';
import { RelayService } from '../../platform/queue/relay.service.js';
import type { Channel } from '../protocol/channel.js';
import { loopIn, VIA_HEADER, viaMark } from '../protocol/via.js';
import type { FrontRequest, FrontWatch } from './asked.js';
import { ClientInput } from './client-input.js';
import { whileConnected } from './client-gone.js';
import {
  FrontRefusal,
  McpLoopError,
  McpMethodNotAllowedError,
  McpSessionNotFoundError,
  McpStreamOpenError,
  McpTooManyError,
  OriginRefusedError,
} from './front.errors.js';
import { LegacyFront } from './legacy-front.js';
import { LiveSessions } from './sessions/live-sessions.js';
import { McpFront } from './mcp-front.js';
import { ModernFront } from './modern-front.js';
import { isTrustedOrigin } from './origin.js';
import { ParkedCalls } from './pending-input/parked-calls.js';
import { Questions } from './questions.js';
import { ResponseSink } from './response-sink.js';
import { isOurs, SessionIds, type ClientSession } from './sessions/session-ids.js';
import { SessionStream } from './sessions/session-stream.js';
import { Streams } from './sessions/streams.js';
import { Subscriptions } from './sessions/subscriptions.js';
import { Tally } from '../../platform/limits/tally.js';
import { ToolNotes } from './tool-notes.js';
import { UpstreamCalls } from './upstream-calls.js';

/** The largest JSON-RPC message taken from a client. */
const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

/** Requests one account may have under way in this process, with all its keys, and all together. */
const IN_FLIGHT_EACH_MAX = 1_024;
const IN_FLIGHT_MAX = 20_000;

/** What clients have open at MCP endpoints. */
export interface FrontStats {
  requests: number;
  streams: number;
  /** Client sessions of which something is remembered. */
  sessions: number;
}

/** Where a request leads. */
export interface FrontTarget {
  /** The upstream, or why there is none. */
  channel: Channel | FrontRefusal;
  /** Whose key it is: bounds are counted for it, since an account may have any number of keys. */
  account: string;
  /** Who is asking: the key. Sessions are good for it alone. */
  principal: string;
  /** Names what it asks: sessions are good for it alone. */
  target: string;
}

/**
 * MCP endpoints over streamable HTTP: what every request to one goes through, whatever the upstream is. One for the whole
 * process, since an answer to a question may come in on any of its routes.
 */
@Injectable()
export class HttpFront implements OnModuleInit, BeforeApplicationShutdown {
  private readonly front: McpFront;
  private readonly ids: SessionIds;
  private readonly sessions: LiveSessions;
  private readonly questions: Questions;
  private readonly streams = new Streams();
  private readonly inFlight = new Tally(IN_FLIGHT_EACH_MAX, IN_FLIGHT_MAX);

  private readonly via: string;

  constructor(
    private readonly env: Env,
    relay: RelayService,
    private readonly parked: ParkedCalls,
  ) {
    const timeoutMs = env.upstreamCallTimeoutMs;
    this.via = viaMark(env);
    this.ids = new SessionIds(env);
    this.sessions = new LiveSessions(relay, randomUUID());
    this.questions = new Questions(relay);
    const { ids, sessions, questions } = this;
    const input = new ClientInput(sessions, questions);
    const [calls, notes] = [new UpstreamCalls(timeoutMs), new ToolNotes()];
    const legacy = new LegacyFront({ calls, ids, sessions, input, notes, timeoutMs });
    const subscriptions = new Subscriptions(this.streams);
    const modern = new ModernFront({ calls, parked, subscriptions, notes, timeoutMs });
    this.front = new McpFront({ legacy, modern, questions, calls });
  }

  async onModuleInit(): Promise<void> {
    await this.sessions.listen();
    await this.questions.listen();
  }

  /** What is open at the moment, in this process. */
  stats(): FrontStats {
    return { requests: this.inFlight.size, streams: this.streams.size, sessions: this.sessions.size };
  }

  /** Streams and questions end with the process, so that closing it does not wait for clients. */
  beforeApplicationShutdown(): void {
    this.streams.close();
    this.questions.close();
    this.parked.close();
    this.sessions.close();
  }

  /**
   * Answers one POST, GET or DELETE. A body is read before `find` is asked where it leads; for a stream `find` is asked
   * again whenever the upstream is listened to anew.
   *
   * @throws OriginRefusedError, BodyTooLargeError, InvalidInputError, McpMethodNotAllowedError, McpSessionNotFoundError,
   * McpStreamOpenError, McpTooManyError, what `find` throws
   */
  async serve(
    request: IncomingMessage,
    response: ServerResponse,
    find: () => Promise<FrontTarget>,
    watch?: FrontWatch,
  ): Promise<void> {
    if (!isTrustedOrigin(request.headers.origin, this.env)) throw new OriginRefusedError();
    if (request.method === 'POST') return this.post(request, response, find, watch);
    if (!isOurs(headerOf(request, 'mcp-session-id'))) {
      response.setHeader('allow', 'POST');
      throw new McpMethodNotAllowedError();
    }
    const target = await find();
    const session = this.sessionOf(request, target);
    if (!session) throw new McpSessionNotFoundError();
    if (request.method === 'DELETE') return this.end(target, session, response);
    return this.stream(target, session, response, find);
  }

  private async post(
    request: IncomingMessage,
    response: ServerResponse,
    find: () => Promise<FrontTarget>,
    watch?: FrontWatch,
  ): Promise<void> {
    const text = await readBody(request, MESSAGE_BYTES_MAX);
    const target = await find();
    const loop = loopIn(headerOf(request, VIA_HEADER), this.via);
    const channel = loop === null ? target.channel : new McpLoopError(loop);
    const session = this.sessionOf(request, target);
    const leave = this.inFlight.enter(target.account);
    if (!leave) throw new McpTooManyError('requests');
    try {
      await whileConnected(response, (cancellation) =>
        this.front.serve(
          channel,
          { ...describe(request, target, text), session, cancellation, watch },
          new ResponseSink(response),
        ),
      );
    } finally {
      leave();
    }
  }

  /** Ends a session: nobody is served in it any more, here or elsewhere. */
  private end({ channel, principal }: FrontTarget, session: ClientSession, response: ServerResponse): void {
    this.sessions.end(session, principal);
    if (!(channel instanceof FrontRefusal)) void channel.release(session.key, true);
    response.writeHead(204).end();
  }

  /** A session's own stream, until its client leaves, the session ends, or an hour has passed. */
  private async stream(
    { channel, account, principal }: FrontTarget,
    session: ClientSession,
    response: ServerResponse,
    find: () => Promise<FrontTarget>,
  ): Promise<void> {
    if (channel instanceof FrontRefusal) throw channel;
    const open = async () => {
      const now = (await find()).channel;
      if (now instanceof FrontRefusal) throw now;
      return now;
    };
    const uris = () => this.sessions.uris(session, principal);
    const stream = new SessionStream(open, new ResponseSink(response), uris);
    const leave = this.streams.enter(account, session.expiresAt - Date.now(), () => stream.end());
    if (!leave) throw new McpTooManyError('streams');
    const detach = this.sessions.attach(session, principal, stream);
    if (!detach) {
      leave();
      throw new McpStreamOpenError();
    }
    const gone = new Promise<void>((resolve) => {
      if (response.destroyed) resolve();
      else response.once('close', resolve);
    });
    stream.start();
    await gone;
    stream.stop();
    detach();
    leave();
  }

  /** The session of ours a request is sent in; null for none, or one its client made up. @throws McpSessionNotFoundError */
  private sessionOf(request: IncomingMessage, target: FrontTarget): ClientSession | null {
    const session = this.ids.open(headerOf(request, 'mcp-session-id'), callerOf(target));
    if (session === undefined) return null;
    if (session === null || this.sessions.isEnded(session)) throw new McpSessionNotFoundError();
    return session;
  }
}

function describe(
  request: IncomingMessage,
  target: FrontTarget,
  text: string,
): Omit<FrontRequest, 'session' | 'cancellation'> {
  return {
    text,
    acceptsStream: request.headers.accept?.includes('text/event-stream') ?? false,
    headers: {
      version: headerOf(request, 'mcp-protocol-version'),
      method: headerOf(request, 'mcp-method'),
      name: headerOf(request, 'mcp-name'),
    },
    header: (name) => headerOf(request, name),
    account: target.account,
    principal: target.principal,
    caller: callerOf(target),
  };
}

function callerOf({ principal, target }: FrontTarget): string {
  return `${principal} ${target}`;
}

function headerOf({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}
