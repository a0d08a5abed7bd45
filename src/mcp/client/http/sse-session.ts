import { parseUrl } from '../../../config/parse-url.js';
import type { CallerProfile, McpCall, McpReply } from '../../protocol/channel.js';
import { withinDeadline } from '../../protocol/deadline.js';
import { isChange } from '../../protocol/list-pages.js';
import { UpstreamError, notMcp } from '../../protocol/mcp-errors.js';
import { parseMessage, requestText, resultOf } from '../../protocol/messages.js';
import type { UpstreamIdentity } from '../../protocol/protocol.js';
import { identityOfInitialize, initializeParams } from '../../protocol/session.js';
import { HandshakeRefusedError, refusalText } from '../protocol-adapter.js';
import type { StreamAnswer } from './http-exchange.js';
import type { HttpWire } from './http-wire.js';
import { SessionLostError } from '../may-resend.js';
import type { LegacySession, SessionHandlers } from '../session-slots.js';
import { MultiplexedCalls } from '../multiplexed-calls.js';

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
  private readonly calls: MultiplexedCalls;
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
    this.calls = new MultiplexedCalls({
      host: wire.target.url.host,
      takeId: () => wire.takeId(),
      sendRequest: (text, call, timeoutMs, fail) => this.sendRequest(text, call, timeoutMs, fail),
      notify: (text) => this.notify(text),
      answer: (text) => wire.answer(this.headers, text, this.endpoint as URL),
      onRequest: isInteractive ? (method, params) => handlers.onRequest(method, params, undefined) : undefined,
    });
  }

  readonly isStateful = true;

  async begin(capabilities: Record<string, unknown> | undefined, endpointMs: number): Promise<void> {
    const { wire } = this;
    const { url, connectTimeoutMs } = wire.target;
    this.endpoint = await this.openDownlink(endpointMs);
    const call = { method: 'initialize', params: initializeParams(capabilities), timeoutMs: connectTimeoutMs };
    const reply = await this.send(call, connectTimeoutMs, true);
    if (reply.error) throw new HandshakeRefusedError(refusalText(wire.target, reply.error.message), false);
    this.identity = identityOfInitialize(resultOf(reply), url);
    const body = requestText(null, 'notifications/initialized', undefined);
    await wire.post(this.endpoint, this.headers, body, { timeoutMs: connectTimeoutMs });
  }

  request(call: McpCall, timeoutMs: number, isRepeat: boolean): Promise<McpReply> {
    return this.send(call, timeoutMs, isRepeat);
  }

  notify(text: string): void {
    if (this.loss === null) this.wire.aside(this.headers, text, this.endpoint as URL);
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
        : this.wire.statusError(stream);
    }
    this.stream = stream;
    const late = `${url.host} opened an event stream and named no endpoint: is the path right?`;
    const endpoint = parseUrl(await withinDeadline(named, endpointMs, late), url);
    if (endpoint?.origin !== url.origin) {
      throw new UpstreamError(`${url.host} names an endpoint that is not on the same site: it is not used.`);
    }
    return endpoint;
  }

  private async send(call: McpCall, timeoutMs: number, isRepeat: boolean): Promise<McpReply> {
    if (this.loss) throw isRepeat ? this.loss : new SessionLostError();
    try {
      return await this.calls.run(this.isInteractive ? call : { ...call, onRequest: undefined }, timeoutMs);
    } catch (error) {
      throw error instanceof SessionLostError && isRepeat ? this.cut() : error;
    }
  }

  /** Posts a request. The answer arrives on the stream, so the response to the POST only confirms receipt. */
  private sendRequest(text: string, call: McpCall, timeoutMs: number, fail: (error: Error) => void): void {
    const { cancellation, timing, method } = call;
    this.wire
      .post(this.endpoint as URL, this.headers, text, { timeoutMs, cancellation, timing })
      .catch((error: unknown) => {
        const isForgotten = error instanceof UpstreamError && error.status === 404 && method !== 'initialize';
        fail(isForgotten ? new SessionLostError() : (error as Error));
        if (isForgotten) this.lose(this.cut());
      });
  }

  /**
   * Changes concern every listener; other notifications that name no call belong to the calls of one caller, if only it has
   * some, and otherwise to the listeners of the session.
   *
   * @returns true for the answer to a call
   */
  private receive(data: string): boolean {
    const head = parseMessage(data);
    if (!head) return false;
    const { method } = head;
    if (typeof method !== 'string') return this.calls.answered(head, data);
    if (head.id !== undefined) this.calls.requested(data, method);
    else if (method === 'notifications/progress') this.calls.progressed(head, data);
    else if (isChange(method) || !this.calls.notified(data, method)) this.handlers.onNotification(data, method);
    return false;
  }

  /** Ends the session with its stream, which carries all answers. */
  private lose(error: Error): void {
    if (this.loss) return;
    this.loss = error;
    const { stream } = this;
    this.stream = null;
    stream?.close();
    this.rejectEndpoint?.(error);
    this.calls.end(() => this.cut());
    this.handlers.onLost(this);
    this.onListeningEnd?.();
  }

  private cut(): UpstreamError {
    const { host } = this.wire.target.url;
    return new UpstreamError(`${host} ended the event stream that brings its answers.`, undefined, true);
  }
}
