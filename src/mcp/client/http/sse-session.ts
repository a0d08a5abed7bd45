import { parseUrl } from '../../../config/parse-url.js';
import { Cancellation } from '../../protocol/cancellation.js';
import type { CallerProfile, McpCall, McpReply } from '../../protocol/channel.js';
import { withinDeadline } from '../../protocol/deadline.js';
import {
  CallerLeftError,
  tooSlow,
  UpstreamError,
  UpstreamFailure,
  UpstreamTimeoutError,
  fromHttpStatus,
  notMcp,
} from '../../protocol/mcp-errors.js';
import { slice } from '../../protocol/json-text.js';
import { parseMessage, progressTokenIn, replyTo, requestText, resultOf } from '../../protocol/messages.js';
import type { UpstreamIdentity } from '../../protocol/protocol.js';
import { identityOfInitialize, initializeParams } from '../../protocol/session.js';
import { HandshakeRefusedError } from '../protocol-adapter.js';
import type { StreamAnswer } from './event-stream.js';
import { STREAM_MS_MAX } from './http-exchange.js';
import { SessionLostError, type HttpWire } from './http-wire.js';
import type { LegacySession, SessionHandlers } from '../session-slots.js';
import { refusalText } from '../refusal.js';
import { UpstreamRequestResponder } from '../upstream-request-responder.js';

/** Notifications that belong to no call. */
const GENERAL = /\/(?:list_changed|resources\/updated)$/;

/** State of a running call that waits for its answer. */
interface Pending {
  call: McpCall;
  resolve(reply: McpReply): void;
  reject(error: Error): void;
  /** Restarts the timeout. */
  refresh(): void;
  /** Answers requests that the server sends during this call, for a caller that supports them. */
  responder?: UpstreamRequestResponder;
  /** Progress token of the call as JSON text. Routes progress, since all calls share the downlink. */
  progressToken?: string;
}

/**
 * Opens a session over HTTP+SSE (2024-11-05): one GET stream for all server messages, and a POST endpoint for client
 * messages.
 *
 * @param endpointMs timeout of the `endpoint` event
 * @throws UpstreamFailure
 */
export async function openSse(
  wire: HttpWire,
  profile: CallerProfile | undefined,
  handlers: SessionHandlers,
  endpointMs = wire.target.connectTimeoutMs,
): Promise<LegacySession> {
  const session = new SseSession(wire, handlers, profile !== undefined);
  try {
    await session.begin(profile?.capabilities, endpointMs);
  } catch (error) {
    await session.end();
    throw error;
  }
  return session;
}

class SseSession implements LegacySession {
  identity: UpstreamIdentity;
  private readonly headers: Record<string, string>;
  private readonly pending = new Map<number, Pending>();
  private stream: StreamAnswer | null = null;
  private endpoint: URL | null = null;
  private onEndpoint: ((value: string) => void) | null = null;
  private rejectEndpoint: ((error: Error) => void) | null = null;
  private loss: Error | null = null;
  private onListeningEnd: (() => void) | null = null;

  constructor(
    private readonly wire: HttpWire,
    private readonly handlers: SessionHandlers,
    private readonly isInteractive: boolean,
  ) {
    this.headers = { ...wire.headers, 'content-type': 'application/json' };
  }

  async begin(capabilities: Record<string, unknown> | undefined, endpointMs: number): Promise<void> {
    const { wire } = this;
    const { url, connectTimeoutMs } = wire.target;
    this.endpoint = await this.openDownlink(endpointMs);
    const call = { method: 'initialize', params: initializeParams(capabilities), timeoutMs: connectTimeoutMs };
    const reply = await this.ask(call, connectTimeoutMs, true);
    if (reply.error) throw new HandshakeRefusedError(refusalText(wire.target, reply.error.message), false);
    this.identity = identityOfInitialize(resultOf(reply), url);
    const body = requestText(null, 'notifications/initialized', undefined);
    await wire.post(this.endpoint, this.headers, body, { timeoutMs: connectTimeoutMs });
  }

  async request(call: McpCall, timeoutMs: number, isRepeat: boolean): Promise<McpReply> {
    try {
      return await this.ask(call, timeoutMs, isRepeat);
    } catch (error) {
      throw error instanceof UpstreamFailure && call.method === 'tools/call' ? error.ofCall() : error;
    }
  }

  async startListening(_timeoutMs: number, onEnd: () => void): Promise<boolean> {
    this.onListeningEnd = onEnd;
    return this.loss === null;
  }

  stopListening(): void {
    this.onListeningEnd = null;
  }

  async end(): Promise<void> {
    const { stream } = this;
    this.lose(new UpstreamError('The connection was changed or deleted meanwhile.', undefined, true));
    stream?.close();
  }

  /**
   * Opens the stream and reads the POST address from its first event. The address must have the same origin; otherwise
   * another site would receive our headers.
   */
  private async openDownlink(endpointMs: number): Promise<URL> {
    const { headers } = this.wire;
    const { url } = this.wire.target;
    const named = new Promise<string>((resolve, reject) => {
      this.onEndpoint = resolve;
      this.rejectEndpoint = reject;
    });
    named.catch(() => undefined);
    const stream = await this.wire.stream({
      method: 'GET',
      headers: { ...headers, accept: 'text/event-stream' },
      timeoutMs: endpointMs,
      onMessage: (data) => this.receive(data),
      onOther: (event, data) => event === 'endpoint' && this.onEndpoint?.(data),
      onEnd: (error) => this.lose(error ?? this.cut()),
    });
    if (stream.text !== null) {
      throw stream.status >= 200 && stream.status < 300
        ? notMcp(url, stream.contentType, stream.text)
        : fromHttpStatus(stream.status, url, undefined);
    }
    this.stream = stream;
    const late = `${url.host} opened an event stream and named no endpoint: is the path right?`;
    const endpoint = parseUrl(await withinDeadline(named, endpointMs, late), url);
    if (endpoint?.origin !== url.origin) {
      throw new UpstreamError(`${url.host} names an endpoint that is not on the same site: it is not used.`);
    }
    return endpoint;
  }

  private ask(call: McpCall, timeoutMs: number, isRepeat: boolean): Promise<McpReply> {
    if (this.loss) return Promise.reject(isRepeat ? this.loss : new SessionLostError());
    if (call.cancellation?.isCancelled) return Promise.reject(new CallerLeftError());
    const id = this.wire.takeId();
    const posting = new Cancellation();
    return new Promise<McpReply>((resolve, reject) => {
      const startedAt = Date.now();
      const over = (outcome: () => void) => {
        if (!this.pending.delete(id)) return;
        clearTimeout(timer);
        call.cancellation?.forget(leave);
        outcome();
      };
      const giveUp = (error: Error) =>
        over(() => {
          posting.cancel();
          // MCP forbids cancelling `initialize`.
          if (call.method !== 'initialize') this.cancel(id);
          reject(error);
        });
      const leave = () => giveUp(new CallerLeftError());
      const expire = () => {
        const isHeld = pending.responder?.isHolding(timeoutMs) && Date.now() - startedAt < STREAM_MS_MAX;
        if (isHeld) timer = setTimeout(expire, timeoutMs);
        else giveUp(new UpstreamTimeoutError(tooSlow(this.wire.target.url, timeoutMs), true));
      };
      let timer = setTimeout(expire, timeoutMs);
      const pending: Pending = {
        call,
        resolve: (reply) => over(() => resolve(reply)),
        reject: (error) => over(() => reject(error)),
        refresh: () => Date.now() - startedAt < STREAM_MS_MAX && timer.refresh(),
        responder: this.isInteractive ? this.responder(call) : undefined,
        progressToken: call.onNotification && progressTokenOf(call.params),
      };
      call.cancellation?.notify(leave);
      this.pending.set(id, pending);
      this.send(id, call, timeoutMs, posting, (error) => {
        pending.reject(error instanceof SessionLostError && isRepeat ? this.cut() : error);
      });
    });
  }

  /** Posts a request. The answer arrives on the stream, so the response to the POST only confirms receipt. */
  private send(
    id: number,
    call: McpCall,
    timeoutMs: number,
    cancellation: Cancellation,
    fail: (error: Error) => void,
  ): void {
    const body = requestText(id, call.method, call.params);
    const { timing } = call;
    this.wire
      .post(this.endpoint as URL, this.headers, body, { timeoutMs, cancellation, timing })
      .catch((error: unknown) => {
        const isForgotten = error instanceof UpstreamError && error.status === 404 && call.method !== 'initialize';
        fail(isForgotten ? new SessionLostError() : (error as Error));
        if (isForgotten) this.lose(this.cut());
      });
  }

  /** @returns true for the answer to a call */
  private receive(data: string): boolean {
    const head = parseMessage(data);
    if (!head) return false;
    if (typeof head.method !== 'string') {
      const pending = typeof head.id === 'number' ? this.pending.get(head.id) : undefined;
      const reply = pending && replyTo(head.id as number, data, head, 'legacy');
      if (reply) pending?.resolve(reply);
      return Boolean(reply);
    }
    if (head.id === undefined) this.notified(data, head.method, head.params);
    else this.asked(data, head.method);
    return false;
  }

  /**
   * Routes progress to its call by progress token. Other notifications are routed only if all running calls have the
   * same caller.
   */
  private notified(data: string, method: string, params: unknown): void {
    if (method === 'notifications/progress') {
      const token = JSON.stringify((params as { progressToken?: unknown } | undefined)?.progressToken);
      const pending = [...this.pending.values()].find(({ progressToken }) => progressToken === token);
      pending?.refresh();
      pending?.call.onNotification?.(data, method);
      return;
    }
    if (GENERAL.test(method)) this.handlers.onNotification(data, method);
    else if (this.isInteractive) [...this.pending.values()].at(-1)?.call.onNotification?.(data, method);
  }

  private asked(data: string, method: string): void {
    const last = [...this.pending.values()].at(-1);
    (last?.responder ?? this.responder()).take(data, method);
  }

  private responder(call?: McpCall): UpstreamRequestResponder {
    return new UpstreamRequestResponder(
      this.wire.answers(this.headers, this.endpoint as URL),
      this.wire.target.url.host,
      call?.onRequest,
    );
  }

  private cancel(requestId: number): void {
    if (this.loss) return;
    const params = JSON.stringify({ requestId, reason: 'nobody waits for the answer any more' });
    this.wire.aside(this.headers, requestText(null, 'notifications/cancelled', params), this.endpoint as URL);
  }

  /** Ends the session with its stream, which carries all answers. */
  private lose(error: Error): void {
    if (this.loss) return;
    this.loss = error;
    const { stream } = this;
    this.stream = null;
    stream?.close();
    this.rejectEndpoint?.(error);
    for (const pending of [...this.pending.values()]) pending.reject(this.cut());
    this.handlers.onLost(this);
    this.onListeningEnd?.();
  }

  private cut(): UpstreamError {
    const { host } = this.wire.target.url;
    return new UpstreamError(`${host} ended the event stream that brings its answers.`, undefined, true);
  }
}

function progressTokenOf(params = ''): string | undefined {
  const token = progressTokenIn(params);
  return token ? slice(params, token) : undefined;
}
