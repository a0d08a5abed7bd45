/**
 * Entry point of all MCP endpoints (connections, namespaces, servers by name) over streamable HTTP and HTTP+SSE.
 *
 * It checks `Origin`, reads the body (16 MB), finds the target and the session, and hands the message to `McpServer`. A
 * GET opens the stream of a session, resumes a stream (`Last-Event-ID`, from 2025-06-18 on), or opens the stream of an
 * HTTP+SSE client, which sends neither a session id nor a revision. DELETE closes a session in all processes.
 *
 * Limits: 1,024 concurrent requests for an account, 20,000 for the process. Errors before the message is read are HTTP
 * errors with a JSON-RPC body (`mcp-server.errors.ts`).
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { Injectable, type BeforeApplicationShutdown } from '@nestjs/common';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { Env } from '../../config/env.js';
import { STATELESS_SESSION } from '../../config/published-clients.js';
import { Tuning } from '../../config/tuning.js';
import { readBody } from '../../platform/http/body/request-body.js';
import { ConflictError, ForbiddenError } from '../../platform/errors/domain-error.js';
import { isTrustedOrigin } from '../../platform/http/cors.js';
import { acceptsType, namesType } from '../../platform/text/media-type.js';
import { OpenRequests } from '../../platform/http/open-requests.js';
import type { Cancellation } from '../protocol/cancellation.js';
import type { CallerProfile, Channel } from '../protocol/channel.js';
import { MODERN_VERSION } from '../protocol/protocol.js';
import { loopIn, VIA_HEADER, viaMark } from '../protocol/via.js';
import {
  originOf,
  type CallObserver,
  type CountedRequest,
  type McpRequestContext,
  type McpResponseSink,
} from './mcp-request.js';
import { ClientInput } from './pending-client-requests.js';
import { closed, DisconnectCancellation, ResponseSink } from './response-sink.js';
import {
  McpRefusal,
  McpLoopError,
  McpMethodNotAllowedError,
  McpSessionLostError,
  tooManyOpen,
} from './mcp-server.errors.js';
import { LiveSessions } from './sessions/live-sessions.js';
import { McpServer } from './mcp-server.js';
import { isResumable, ResumableStreams } from './resume/resumable-streams.js';
import { SessionIds, type ClientSession } from './sessions/session-ids.js';
import { SessionStream } from './sessions/session-stream.js';
import { furtherMessages } from './batch.js';
import { opensSseStream, SseStreams, sseStreamOf } from './sse/sse-streams.js';
import { StreamLimiter } from './sessions/stream-limiter.js';
import { KeyedLimiter } from '../../platform/limits/keyed-limiter.js';

export const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

const IN_FLIGHT_EACH_MAX = 1_024;
const IN_FLIGHT_MAX = 20_000;

interface InProcessRequest {
  text: string;
  /** Headers by lower-case names, as the client would send them. */
  headers: IncomingHttpHeaders;
  /** Cancelled when the credential of the caller expires or is revoked. */
  cancellation: Cancellation;
  observer: CallObserver;
}

export interface McpServerTarget extends Pick<
  McpRequestContext,
  'account' | 'principal' | 'target' | 'grant' | 'scopes' | 'loginsEpoch'
> {
  channel: Channel | McpRefusal;
  /** For callers with an OAuth token: the path that it opens. */
  endpoint?: string;
}

/**
 * Requests that need a stream. Others with a wildcard in `Accept` get JSON, since plain HTTP clients always send one.
 */
const ASKS_FOR_STREAM = /"(?:progressToken|subscriptions\/listen)"/;

/** Serves MCP over HTTP. One instance per process: the response to a server request can arrive on any route. */
@Injectable()
export class McpHttpServer implements BeforeApplicationShutdown {
  private readonly inFlight = new KeyedLimiter(IN_FLIGHT_EACH_MAX, IN_FLIGHT_MAX);
  private readonly via: string;

  constructor(
    private readonly env: Env,
    private readonly tuning: Tuning,
    private readonly mcpServer: McpServer,
    private readonly sessionIds: SessionIds,
    private readonly liveSessions: LiveSessions,
    private readonly clientInput: ClientInput,
    private readonly streamLimiter: StreamLimiter,
    private readonly openRequests: OpenRequests,
    private readonly sseStreams: SseStreams,
    private readonly resumableStreams: ResumableStreams,
  ) {
    this.via = viaMark(env);
  }

  /** Returns the numbers of sessions and streams, including sessions with stored state. */
  stats() {
    return { requests: this.inFlight.size, streams: this.streamLimiter.size, sessions: this.liveSessions.size };
  }

  /** Closes streams, so that closing the server does not wait for clients. Pending requests time out by themselves. */
  beforeApplicationShutdown(): void {
    this.streamLimiter.close();
    this.resumableStreams.close();
    this.liveSessions.close();
  }

  /**
   * Calls `find` after reading the body; for a stream, calls it again whenever it listens to the upstream again.
   *
   * @throws ForbiddenError, TooLargeError, InvalidInputError, McpMethodNotAllowedError, McpSessionLostError,
   * ConflictError, TooManyError, errors of `find`
   */
  async serve(
    request: IncomingMessage,
    response: ServerResponse,
    find: () => Promise<McpServerTarget>,
    observer?: CallObserver,
  ): Promise<void> {
    const { origin } = request.headers;
    if (origin !== undefined && !isTrustedOrigin(origin, this.env)) {
      // A page of another site must not reach a local service through its visitor's browser (DNS rebinding).
      throw new ForbiddenError('The Origin header names a web site that is not this service');
    }
    if (request.method !== 'POST') return this.serveWithoutBody(request, response, find);
    const text = await readBody(request, MESSAGE_BYTES_MAX, { isJson: true });
    const target = await find();
    const id = sessionIdOf(request);
    const sink = new ResponseSink(response);
    const findSession = id === undefined ? null : () => this.session(id, target);
    const leave = this.inFlight.acquire(target.account);
    if (!leave) throw tooManyOpen('requests');
    const cancellation = new DisconnectCancellation(response, sink);
    // The call is cancelled even if its client can come back for the response.
    const disconnect = () => {
      cancellation.cancel();
      response.destroy();
    };
    this.openRequests.endBy(request, disconnect, () => toolIn(text));
    let release: () => void = () => undefined;
    // A call without a response might already have had effects: it gets one.
    sink.opened = () => {
      release = this.streamLimiter.endWithKey(target.principal, () => cancellation.cancel());
    };
    try {
      const stream = sseStreamOf(request);
      if (stream !== null) {
        // Counted here, where the sender gets the error, and not again by the process that holds the stream.
        (request as CountedRequest).countMore?.(furtherMessages(text));
        await this.sseStreams.post(stream, callerOf(target), text, response, observer);
      } else {
        const context = contextOf(request, target, text, { session: null, findSession, cancellation, observer });
        context.reopen = async () => requireChannel((await find()).channel);
        if (findSession) {
          sink.resumable = (reader) => {
            const { session, caller, account } = context;
            return session && isResumable(session)
              ? this.resumableStreams.open(session, caller, account, reader)
              : null;
          };
        }
        await this.mcpServer.serve(this.channelFor(request, target), context, sink);
      }
    } finally {
      cancellation.stopWatching();
      release();
      leave();
    }
  }

  /** @throws TooManyError */
  async serveInProcess(
    { text, headers, cancellation, observer }: InProcessRequest,
    target: McpServerTarget,
    sink: McpResponseSink,
  ): Promise<void> {
    const leave = this.inFlight.acquire(target.account);
    if (!leave) throw tooManyOpen('requests');
    const release = this.streamLimiter.endWithKey(target.principal, () => cancellation.cancel());
    const request = { headers, headersDistinct: {} };
    const context = { session: null, findSession: null, cancellation, observer };
    try {
      await this.mcpServer.serve(target.channel, contextOf(request, target, text, context), sink);
    } finally {
      release();
      leave();
    }
  }

  private async serveWithoutBody(
    request: IncomingMessage,
    response: ServerResponse,
    find: () => Promise<McpServerTarget>,
  ): Promise<void> {
    if (opensSseStream(request)) return this.openSse(request, response, find);
    const id = sessionIdOf(request);
    // MCP 2026-07-28 has no sessions.
    const isModern = (headerOf(request, 'mcp-protocol-version') ?? '') >= MODERN_VERSION;
    if (id === undefined || isModern) throw new McpMethodNotAllowedError();
    const target = await find();
    const session = await this.session(id, target);
    if (request.method === 'DELETE') {
      const { channel, principal } = target;
      this.liveSessions.closeSession(session, principal);
      if (!(channel instanceof McpRefusal)) void channel.release(session.key, true);
      return void response.writeHead(204).end();
    }
    const eventId = isResumable(session) ? headerOf(request, 'last-event-id') : undefined;
    if (eventId !== undefined) return this.resume(eventId, target, session, response);
    return this.stream(target, session, response, find);
  }

  private channelFor(request: IncomingMessage, { channel }: McpServerTarget): Channel | McpRefusal {
    const loop = loopIn(headerOf(request, VIA_HEADER), this.via);
    return loop === null ? channel : new McpLoopError(loop);
  }

  /** Opens an SSE stream until the client disconnects, or an hour has passed. */
  private async openSse(
    request: IncomingMessage,
    response: ServerResponse,
    find: () => Promise<McpServerTarget>,
  ): Promise<void> {
    const target = await find();
    const { channel, principal } = target;
    if (channel instanceof McpRefusal) throw channel;
    const caller = callerOf(target);
    const sink = new ResponseSink(response);
    const leave = this.streamLimiter.openStream(target, Infinity, () => sink.close());
    if (!leave) throw tooManyOpen('streams');
    this.openRequests.endBy(request, () => sink.close());
    await this.sseStreams.serve(request, response, sink, caller, {
      serve: async (text, session, answers, cancellation, observer) => {
        const now = await find();
        const context = contextOf(request, now, text, { session, findSession: null, cancellation, observer });
        context.countMore = undefined;
        return this.mcpServer.serve(this.channelFor(request, now), context, answers);
      },
      sessionOf: (id) => this.sessionIds.open(id, caller),
      listen: (session, events) => this.listen(session, principal, find, events),
      leave: (session) => {
        this.liveSessions.closeSession(session, principal);
        void channel.release(session.key, true);
      },
    });
    leave();
  }

  private async resume(
    eventId: string,
    { account, principal, target }: McpServerTarget,
    session: ClientSession,
    response: ServerResponse,
  ): Promise<void> {
    const sink = new ResponseSink(response);
    const leave = this.streamLimiter.openStream({ account, principal }, session.expiresAt - Date.now(), () =>
      sink.close(),
    );
    if (!leave) throw tooManyOpen('streams');
    this.openRequests.endBy(response.req, () => sink.close());
    const reader = {
      open: () => sink.openAnswer(),
      write: (frame: string) => sink.write(frame),
      end: (last?: string) => sink.finish(last),
    };
    try {
      const caller = callerOf({ principal, target });
      const whenLeft = (onLeft: () => void) => void closed(response).then(onLeft);
      await this.resumableStreams.resume(eventId, session, caller, reader, whenLeft);
      await closed(response);
    } finally {
      leave();
    }
  }

  /** Serves a GET stream until the client disconnects, the session closes, or an hour has passed. */
  private async stream(
    { channel, account, principal }: McpServerTarget,
    session: ClientSession,
    response: ServerResponse,
    find: () => Promise<McpServerTarget>,
  ): Promise<void> {
    if (channel instanceof McpRefusal) throw channel;
    const sink = new ResponseSink(response);
    let endStream: () => void = () => sink.close();
    const leave = this.streamLimiter.openStream({ account, principal }, session.expiresAt - Date.now(), () =>
      endStream(),
    );
    if (!leave) throw tooManyOpen('streams');
    this.openRequests.endBy(response.req, () => endStream());
    const stop = this.listen(session, principal, find, sink);
    if (!stop) {
      leave();
      throw new ConflictError('The session has its stream already: close it first');
    }
    endStream = () => {
      stop();
      sink.close();
    };
    await closed(response);
    stop();
    leave();
  }

  /**
   * Starts notifications, which stop when the sink closes.
   *
   * @returns function that stops them; null when this process has already started them
   */
  private listen(
    session: ClientSession,
    principal: string,
    find: () => Promise<McpServerTarget>,
    sink: McpResponseSink,
  ): (() => void) | null {
    const open = async () => {
      const now = requireChannel((await find()).channel);
      const callerProfile = profile();
      if (callerProfile && !callerProfile.isShared) this.liveSessions.uses(session, principal, now);
      return now;
    };
    const profile = (): CallerProfile | undefined => {
      const level = this.liveSessions.level(session, principal) ?? undefined;
      if (session.capabilities.length === 0 && level === undefined) return session.shared;
      return Object.assign(this.clientInput.profileOf(session, principal), { level, mayShare: true as const });
    };
    const uris = () => this.liveSessions.uris(session, principal);
    const era = () => this.liveSessions.eraOf(session, principal);
    const stream = new SessionStream(open, sink, uris, era, profile);
    const detach = this.liveSessions.attach(session, principal, stream);
    if (!detach) return null;
    stream.start();
    return () => {
      stream.stop();
      detach();
    };
  }

  /** Returns the session; a promise for a session older than this process. @throws McpSessionLostError */
  private session(id: string, target: McpServerTarget): ClientSession | Promise<ClientSession> {
    const session = this.sessionIds.open(id, callerOf(target));
    if (!session || this.liveSessions.isEnded(session)) throw new McpSessionLostError();
    if (!this.liveSessions.isOld(session)) return session;
    return this.isLost(session, target).then((isLost) => {
      if (isLost) throw new McpSessionLostError();
      return session;
    });
  }

  /**
   * Returns true if the session lost state. A session older than this process has lost a level, subscriptions, or, for a client that handles requests, its own
   * upstream session, unless the upstream restores it.
   */
  private async isLost(session: ClientSession, { channel, principal }: McpServerTarget): Promise<boolean> {
    if (await this.liveSessions.isForgotten(session, principal)) return true;
    if (session.capabilities.length === 0 || channel instanceof McpRefusal) return false;
    const identity = await channel.open(this.tuning.upstreamCallTimeoutMs, 'legacy').catch(() => null);
    return identity?.restoresSessions !== true;
  }
}

function requireChannel(channel: Channel | McpRefusal): Channel {
  if (channel instanceof McpRefusal) throw channel;
  return channel;
}

function contextOf(
  request: Pick<IncomingMessage, 'headers' | 'headersDistinct'>,
  target: McpServerTarget,
  text: string,
  {
    session,
    findSession,
    cancellation,
    observer,
  }: Pick<McpRequestContext, 'session' | 'findSession' | 'cancellation' | 'observer'>,
): McpRequestContext {
  const { accept } = request.headers;
  return {
    text,
    acceptsStream:
      namesType(accept, 'text/event-stream') ||
      (ASKS_FOR_STREAM.test(text) && acceptsType(accept, 'text/event-stream')),
    headers: {
      version: headerOf(request, 'mcp-protocol-version'),
      method: headerOf(request, 'mcp-method'),
      name: headerOf(request, 'mcp-name'),
    },
    header: (name) => headerOf(request, name),
    account: target.account,
    principal: target.principal,
    grant: target.grant,
    scopes: target.scopes,
    loginsEpoch: target.loginsEpoch,
    target: target.target,
    caller: callerOf(target),
    session,
    findSession,
    origin:
      observer?.origin ?? originOf({ accountId: target.account, keyId: target.principal, endpoint: target.endpoint }),
    cancellation,
    observer,
    countMore: (request as CountedRequest).countMore,
  };
}

/**
 * Returns the session id of a request; undefined without one, for an empty one, and for the id that published clients
 * send without `initialize`.
 */
function sessionIdOf(request: IncomingMessage): string | undefined {
  const id = headerOf(request, 'mcp-session-id');
  return id === STATELESS_SESSION || id === '' ? undefined : id;
}

function callerOf({ principal, target }: Pick<McpServerTarget, 'principal' | 'target'>): string {
  return `${principal} ${target}`;
}

/** Headers in which a comma means that a proxy folded two lines into one. */
const withoutCommas: ReadonlySet<string> = new Set(['mcp-protocol-version', 'mcp-session-id', 'mcp-method']);

/** Returns the value of a header: equal lines once, different lines joined by a comma. */
function headerOf(request: Pick<IncomingMessage, 'headers' | 'headersDistinct'>, name: string): string | undefined {
  const value = request.headers[name];
  const joined = Array.isArray(value) ? value.join(', ') : value;
  if (!joined?.includes(',')) return joined;
  // Node builds `headersDistinct` when it is first read.
  const lines = withoutCommas.has(name) ? joined.split(',').map((line) => line.trim()) : request.headersDistinct[name];
  return new Set(lines).size === 1 ? lines?.[0] : joined;
}

const GAUGES = [
  ['slipway_mcp_requests_in_flight', 'MCP requests that are being answered.', 'requests'],
  ['slipway_mcp_streams', 'Streams that clients hold open at MCP endpoints.', 'streams'],
  ['slipway_mcp_sessions', 'Client sessions with stored state, such as a log level.', 'sessions'],
] as const;

@Injectable()
export class McpServerMetrics {
  constructor(metrics: Metrics, mcpHttpServer: McpHttpServer) {
    for (const [name, help, key] of GAUGES) metrics.gauge(name, help, () => mcpHttpServer.stats()[key]);
  }
}

/** Returns the tool that a message calls; undefined for other messages and for several. */
function toolIn(text: string): string | undefined {
  const { method, params } = JSON.parse(text) as { method?: unknown; params?: { name?: unknown } };
  return method === 'tools/call' && typeof params?.name === 'string' ? params.name : undefined;
}
