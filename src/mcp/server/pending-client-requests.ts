/**
 * Requests of upstreams to legacy clients (`sampling/createMessage`, `elicitation/create`, `roots/list`), until the
 * response.
 *
 * A request is sent on the stream of the call that needs it, or on the GET stream of the client's session, in whichever
 * process holds it. The response is a separate POST and can arrive at any process: the request id names the process
 * that waits. An id is unguessable and valid only in its own session.
 *
 * Every request resolves, with an error for the upstream when the client disconnected, did not respond in 10 minutes,
 * has 32 requests open, or when no process has a stream within 2 s. Other processes get messages of up to 400 KB; a
 * longer response becomes an error. A response without a waiting request is dropped.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { type BeforeApplicationShutdown, Injectable, type OnModuleInit } from '@nestjs/common';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { Cancellation } from '../protocol/cancellation.js';
import type { ClientAnswer, CallerProfile } from '../protocol/channel.js';
import { members, slice } from '../protocol/json-text.js';
import { errorAnswer, toRpcError, unansweredRequest, type RpcHead } from '../protocol/messages.js';
import type { McpResponseSink, McpRequest } from './mcp-request.js';
import type { ClientSession } from './sessions/session-ids.js';
import { KeyedLimiter } from '../../platform/limits/keyed-limiter.js';
import { subjectOf, type InputRequest, type InputRequired, withElicitationId } from './bridge/input.js';
import { canAnswer, isPage } from './client-capabilities.js';
import { LiveSessions, RELAYED_BYTES_MAX } from './sessions/live-sessions.js';

declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    /** This message is for the process that holds the client's GET stream. */
    'mcp.requests': { id: string; session: string; principal: string; text: string };
    /**
     * This message is for the process that waits for the response. An empty string means that the request was sent on
     * the GET stream.
     */
    [topic: `mcp.answers.${string}`]: { id: string; session: string; text: string };
  }
}

const PENDING_EACH_MAX = 32;

const PENDING_MAX = 10_000;

/** Time for another process to report that it holds the GET stream of a client. */
const FORWARD_MS_MAX = 2_000;

const ROUNDS_MAX = 8;

/** Time limit of all input requests of one call together. */
export const INPUT_MS_MAX = 10 * 60_000;

export interface ClientRequest {
  method: string;
  params: string | undefined;
}

@Injectable()
export class PendingClientRequests implements OnModuleInit, BeforeApplicationShutdown {
  private readonly processId = randomBytes(9).toString('base64url');
  /** `sent` is called when another process has sent the request. */
  private readonly pending = new Map<
    string,
    { session: string; sent: () => void; settle: (answer: ClientAnswer) => void }
  >();
  private readonly waiting = new KeyedLimiter(PENDING_EACH_MAX, PENDING_MAX);
  private isClosed = false;

  constructor(
    private readonly pubSub: PubSub,
    private readonly liveSessions: LiveSessions,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('mcp.requests', ({ id, session, principal, text }) => {
      const stream = this.liveSessions.streamOf(session, principal);
      if (!stream || this.isClosed) return;
      stream.event(text);
      // An id begins with the process that waits for the response.
      this.pubSub.publish(topicOf(id.slice(0, id.indexOf('.'))), { id, session, text: '' });
    });
    await this.pubSub.subscribe(topicOf(this.processId), (answer) =>
      this.settle(answer.session, answer.id, answer.text),
    );
  }

  /** Sends a request to the client. Resolves with an error when the client disconnects, times out, or has too many pending requests. */
  send(
    session: ClientSession,
    request: ClientRequest,
    stream: Pick<McpResponseSink, 'event'>,
    cancellation: Cancellation,
    timeoutMs: number,
  ): Promise<ClientAnswer> {
    const late = errorAnswer('The client did not answer in time');
    return this.await(session, request, (_id, text) => stream.event(text), cancellation, { timeoutMs, late });
  }

  /** Sends a request over a GET stream in another process. Resolves in any case, like {@link send}. */
  forward(session: ClientSession, principal: string, request: ClientRequest): Promise<ClientAnswer> {
    const publish = (id: string, text: string) =>
      this.pubSub.publish('mcp.requests', { id, session: session.key, principal, text });
    const late = unansweredRequest(request.method);
    if (Buffer.byteLength(JSON.stringify(request)) > RELAYED_BYTES_MAX) return Promise.resolve(late);
    return this.await(session, request, publish, new Cancellation(), { timeoutMs: FORWARD_MS_MAX, late });
  }

  private await(
    session: ClientSession,
    { method, params }: ClientRequest,
    deliver: (id: string, text: string) => void,
    cancellation: Cancellation,
    { timeoutMs, late }: { timeoutMs: number; late: ClientAnswer },
  ): Promise<ClientAnswer> {
    const isOff = this.isClosed || cancellation.isCancelled;
    const release = isOff ? null : this.waiting.acquire(session.key);
    if (!release) return Promise.resolve(errorAnswer('The client cannot receive a request now'));
    const id = `${this.processId}.${randomBytes(18).toString('base64url')}`;
    return new Promise((resolve) => {
      const settle = (answer: ClientAnswer) => {
        clearTimeout(timer);
        cancellation.forget(disconnect);
        this.pending.delete(id);
        release();
        resolve(answer);
      };
      const disconnect = () => settle(errorAnswer('The client has disconnected'));
      let timer = setTimeout(() => settle(late), timeoutMs);
      const restartTimer = () => {
        clearTimeout(timer);
        timer = setTimeout(() => settle(errorAnswer('The client did not answer in time')), INPUT_MS_MAX);
      };
      this.pending.set(id, { session: session.key, sent: restartTimer, settle });
      cancellation.notify(disconnect);
      const paramsMember = params === undefined ? '' : `,"params":${params}`;
      deliver(id, `{"jsonrpc":"2.0","id":"${id}","method":${JSON.stringify(method)}${paramsMember}}`);
    });
  }

  /** Delivers a response to the waiting request, which can be in any process. Without a waiting request, the response is dropped. */
  deliverResponse(session: ClientSession | null, { id }: RpcHead, text: string): void {
    if (!session || typeof id !== 'string') return;
    const [process = '', name, ...more] = id.split('.');
    if (name === undefined || more.length > 0 || !/^[\w-]{12}$/.test(process)) return;
    if (process === this.processId) return this.settle(session.key, id, text);
    const tooLong = JSON.stringify(errorAnswer('The answer is too long'));
    const carried = Buffer.byteLength(JSON.stringify(text)) > RELAYED_BYTES_MAX ? tooLong : text;
    this.pubSub.publish(topicOf(process), { id, session: session.key, text: carried });
  }

  beforeApplicationShutdown(): void {
    this.isClosed = true;
    for (const { settle } of this.pending.values()) settle(errorAnswer('The service is being restarted'));
  }

  private settle(session: string, id: string, text: string): void {
    const waiting = this.pending.get(id);
    if (waiting?.session !== session) return;
    if (text === '') waiting.sent();
    else {
      const parts = members(text);
      const [result, error] = [parts.get('result'), parts.get('error')];
      const failed = () => toRpcError(error && JSON.parse(slice(text, error)), 'The client answered with an error');
      waiting.settle(result ? { result: slice(text, result) } : { error: failed() });
    }
  }
}

@Injectable()
export class ClientInput {
  constructor(
    private readonly liveSessions: LiveSessions,
    private readonly pendingClientRequests: PendingClientRequests,
  ) {}

  /**
   * Returns null for a client that cannot answer requests: it can if it has a session, declared a capability, and accepts a
   * stream.
   */
  responderFor(
    { channel, request, sink }: McpRequest,
    timeLeft: () => number,
  ): {
    profile: CallerProfile;
    onRequest: (method: string, params: string | undefined) => Promise<ClientAnswer>;
  } | null {
    const { session, principal, acceptsStream, cancellation } = request;
    if (!session || !acceptsStream || session.capabilities.length === 0) return null;
    this.liveSessions.uses(session, principal, channel);
    const onRequest = (method: string, params: string | undefined): Promise<ClientAnswer> => {
      if (canAnswer(session.capabilities, { method, params })) {
        return this.pendingClientRequests.send(session, { method, params }, sink, cancellation, timeLeft());
      }
      return Promise.resolve(unansweredRequest(method));
    };
    return { profile: this.profileOf(session, principal), onRequest };
  }

  /**
   * Returns the profile of a client. A request outside of the client's calls goes to its GET stream in this process, else to a running call, else to its
   * GET stream in another process.
   */
  profileOf(session: ClientSession, principal: string): CallerProfile {
    const { key, capabilities, passed } = session;
    if (capabilities.length === 0) return { key, capabilities: passed };
    const onRequest: CallerProfile['onRequest'] = (method, params, ofCall) => {
      const request = { method, params };
      if (!canAnswer(capabilities, request)) return Promise.resolve(unansweredRequest(method));
      const stream = this.liveSessions.streamOf(key, principal);
      if (stream) return this.pendingClientRequests.send(session, request, stream, new Cancellation(), INPUT_MS_MAX);
      return ofCall ? ofCall(method, params) : this.pendingClientRequests.forward(session, principal, request);
    };
    return { key, capabilities: passed, onRequest };
  }

  /** Returns the reason why the client cannot answer the input requests, as a message; null when it can. */
  unanswerable({ request }: McpRequest, { requests }: InputRequired, round: number): string | null {
    const { session, acceptsStream } = request;
    if (round >= ROUNDS_MAX) return `The MCP server asked for input more than ${ROUNDS_MAX} times`;
    const canAsk = (input: InputRequest) => session !== null && acceptsStream && canAnswer(session.capabilities, input);
    const open = requests.filter((input) => !canAsk(input)).map(subjectOf);
    return open.length === 0 ? null : `The MCP server asks for what this client cannot answer: ${open.join('; ')}`;
  }

  /** Sends requests concurrently, and returns responses by the upstream's keys. */
  async collect(
    { request, sink }: McpRequest,
    { requests }: InputRequired,
    timeLeft: () => number,
  ): Promise<Map<string, ClientAnswer>> {
    const { session, cancellation } = request;
    if (!session) return new Map();
    const answers = await Promise.all(
      requests.map(async ({ key, method, params }) => {
        const sentParams = isPage(params) ? withElicitationId(params ?? '{}', randomUUID()) : params;
        const answer = await this.pendingClientRequests.send(
          session,
          { method, params: sentParams },
          sink,
          cancellation,
          timeLeft(),
        );
        return [key, answer] as const;
      }),
    );
    return new Map(answers);
  }
}

function topicOf(process: string): `mcp.answers.${string}` {
  return `mcp.answers.${process}`;
}
