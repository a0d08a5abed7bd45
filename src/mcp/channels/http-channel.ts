import { Logger } from '@nestjs/common';
import { parseUrl } from '../../config/parse-url.js';
import type { Egress } from '../../platform/egress/egress.js';
import type { Channel, McpCall, McpReply } from '../channel.js';
import {
  CallerLeftError,
  fromHttpStatus,
  notMcp,
  UpstreamAuthRequiredError,
  UpstreamError,
  UpstreamTimeoutError,
} from '../mcp-errors.js';
import { headerValue, namedBy, parseMessage, replyTo, requestText, resultText, withEnvelope } from '../messages.js';
import { MODERN_VERSION, rpcCode, type ServerHello } from '../protocol.js';
import { helloOfDiscover, helloOfInitialize, initializeParams } from '../session.js';
import { exchange, type ExchangeAnswer, type ExchangeRequest } from './http-exchange.js';

/** A failed handshake is remembered this long, so that a dead upstream costs one dial however many callers wait. */
const FAILURE_MS = 1_000;

/** For messages whose answer nobody waits for. */
const ASIDE_TIMEOUT_MS = 2_000;

interface Session {
  hello: ServerHello;
  id: string | null;
  /** Sent with every request of this session. */
  headers: Record<string, string>;
}

/** The upstream no longer knows our session: the request certainly did not run. */
class SessionLostError extends Error {}

/** Where a channel leads and with what credentials. */
export interface HttpTarget {
  url: URL;
  /** The connection's own headers; lower-case names. */
  headers: Record<string, string>;
  /** How long a handshake may take. */
  connectTimeoutMs: number;
}

/**
 * MCP over streamable HTTP, to legacy and modern servers. Answers may be JSON or event streams. Upstream ids are ours:
 * one counter per channel, never derived from a caller's id, so callers that all use `id: 1` cannot cross.
 */
export class HttpChannel implements Channel {
  private readonly logger = new Logger('mcp');
  private readonly base: Record<string, string>;
  private session: Session | null = null;
  private opening: Promise<Session> | null = null;
  private failure: { error: Error; until: number } | null = null;
  private lastId = 0;
  private isClosed = false;

  constructor(
    private readonly egress: Egress,
    private readonly target: HttpTarget,
  ) {
    this.base = {
      ...target.headers,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    };
  }

  async open(timeoutMs: number): Promise<ServerHello> {
    return (this.session ?? (await this.waitForSession(timeoutMs))).hello;
  }

  async request(call: McpCall): Promise<McpReply> {
    const until = performance.now() + call.timeoutMs;
    const left = () => Math.max(1, until - performance.now());
    const session = this.session ?? (await this.waitForSession(call.timeoutMs, call.signal));
    try {
      return await this.send(session, call, left());
    } catch (error) {
      if (error instanceof SessionLostError) {
        this.forget(session);
        return await this.send(await this.waitForSession(left(), call.signal), call, left(), true);
      }
      // A read cut by a dying socket may run again; a tool may not.
      const isRead = call.method !== 'tools/call' && error instanceof UpstreamError && error.outcomeUnknown;
      if (isRead && !call.signal?.aborted) return await this.send(session, call, left(), true);
      throw error;
    }
  }

  async close(): Promise<void> {
    this.isClosed = true;
    const session = this.session ?? (await this.opening?.catch(() => null));
    this.session = null;
    if (!session?.id) return;
    await this.exchange({ method: 'DELETE', headers: session.headers, timeoutMs: ASIDE_TIMEOUT_MS }).catch(
      (error: unknown) => this.logger.debug({ msg: 'an upstream session could not be ended', err: error }),
    );
  }

  /** The session, opened once however many callers wait. Leaving does not disturb the handshake the others wait for. */
  private waitForSession(timeoutMs: number, signal?: AbortSignal): Promise<Session> {
    if (this.session) return Promise.resolve(this.session);
    if (this.isClosed) return Promise.reject(new UpstreamError('The connection was changed or deleted meanwhile.'));
    if (this.failure && Date.now() < this.failure.until) return Promise.reject(this.failure.error);
    this.opening ??= this.handshake()
      .then((session) => (this.session = session))
      .catch((error: Error) => {
        this.failure = { error, until: Date.now() + FAILURE_MS };
        throw error;
      })
      .finally(() => (this.opening = null));
    return withinDeadline(this.opening, timeoutMs, this.target.url, signal);
  }

  private forget(session: Session): void {
    if (this.session === session) this.session = null;
  }

  private async handshake(): Promise<Session> {
    this.failure = null;
    const { url, connectTimeoutMs } = this.target;
    const id = (this.lastId += 1);
    const answer = await this.exchange({
      method: 'POST',
      headers: this.base,
      body: requestText(id, 'initialize', initializeParams),
      timeoutMs: connectTimeoutMs,
      onEvent: (data) => this.isAnswer(id, data),
    });
    const reply = this.reply(id, answer, null);
    if (reply.error) return this.discover(reply.error.code, reply.error.message);
    const hello = helloOfInitialize(resultOf(reply), url);
    const sessionId = answer.headers['mcp-session-id'];
    const session: Session = {
      hello,
      id: typeof sessionId === 'string' ? sessionId : null,
      headers: {
        ...this.base,
        'mcp-protocol-version': hello.protocolVersion,
        ...(typeof sessionId === 'string' ? { 'mcp-session-id': sessionId } : {}),
      },
    };
    await this.notifyInitialized(session);
    return session;
  }

  /** Some servers refuse every request before this notification was accepted, so it is waited for. */
  private async notifyInitialized(session: Session): Promise<void> {
    const { url, connectTimeoutMs } = this.target;
    const answer = await this.exchange({
      method: 'POST',
      headers: session.headers,
      body: requestText(null, 'notifications/initialized', undefined),
      timeoutMs: connectTimeoutMs,
    });
    if (answer.status >= 400) throw fromHttpStatus(answer.status, url, undefined);
  }

  /** A server that refuses `initialize` may be a modern one. */
  private async discover(code: number, message: string): Promise<Session> {
    const { url, connectTimeoutMs } = this.target;
    const isModern =
      code === rpcCode.unsupportedVersion || code === rpcCode.methodNotFound || code === rpcCode.headerMismatch;
    if (!isModern) {
      throw new UpstreamError(`${url.host} refused to open an MCP session: ${message.slice(0, 200)} (${code}).`);
    }
    const id = (this.lastId += 1);
    const headers = { ...this.base, 'mcp-protocol-version': MODERN_VERSION };
    const answer = await this.exchange({
      method: 'POST',
      headers: { ...headers, 'mcp-method': 'server/discover' },
      body: requestText(id, 'server/discover', withEnvelope(undefined, MODERN_VERSION)),
      timeoutMs: connectTimeoutMs,
      onEvent: (data) => this.isAnswer(id, data),
    });
    const reply = this.reply(id, answer, null);
    if (reply.error) {
      throw new UpstreamError(`${url.host} refused to open an MCP session: ${message.slice(0, 200)} (${code}).`);
    }
    return { hello: helloOfDiscover(resultOf(reply), url), id: null, headers };
  }

  private async send(session: Session, call: McpCall, timeoutMs: number, isRepeat = false): Promise<McpReply> {
    const id = (this.lastId += 1);
    const { headers, params } = this.dressed(session, call);
    let answer: ExchangeAnswer;
    try {
      answer = await this.exchange({
        method: 'POST',
        headers,
        body: requestText(id, call.method, params),
        timeoutMs,
        extendWithEvents: call.onNotification !== undefined,
        signal: call.signal,
        onEvent: (data) => this.onEvent(id, data, session, call),
      });
    } catch (error) {
      const isOpen = error instanceof UpstreamTimeoutError || error instanceof CallerLeftError;
      if (isOpen && session.hello.era === 'legacy') this.cancel(session, id);
      throw error;
    }
    const reply = this.reply(id, answer, isRepeat ? null : session);
    if (session.hello.era === 'modern') refuseInputRequest(reply);
    return reply;
  }

  /** Headers and params as the upstream's era wants them. */
  private dressed(session: Session, { method, params }: McpCall): { headers: Record<string, string>; params?: string } {
    if (session.hello.era === 'legacy') return { headers: session.headers, params };
    const named = namedBy.get(method);
    const name = named && params ? (JSON.parse(params) as Record<string, unknown>)[named] : undefined;
    return {
      headers: {
        ...session.headers,
        'mcp-method': method,
        ...(typeof name === 'string' ? { 'mcp-name': headerValue(name) } : {}),
      },
      params: withEnvelope(params, session.hello.protocolVersion),
    };
  }

  /** Tells a legacy server that nobody waits any more; closing the socket alone does not mean that to it. */
  private cancel(session: Session, requestId: number): void {
    this.aside(
      session,
      requestText(null, 'notifications/cancelled', JSON.stringify({ requestId, reason: 'caller left' })),
    );
  }

  /** One message of an answer's stream: true when it is the answer. */
  private onEvent(id: number, data: string, session: Session, call: McpCall): boolean {
    const head = parseMessage(data);
    if (!head) throw notMcp(this.target.url, '');
    if (typeof head.method !== 'string') return replyTo(id, data, head) !== null;
    if (head.id === undefined) call.onNotification?.(data, head.method);
    else this.answerServer(session, head.id, head.method);
    return false;
  }

  private isAnswer(id: number, data: string): boolean {
    const head = parseMessage(data);
    return head !== null && replyTo(id, data, head) !== null;
  }

  /** A server may ask its client something mid-call. We declared that we answer nothing, so it hears so at once. */
  private answerServer(session: Session, id: unknown, method: string): void {
    const outcome =
      method === 'ping'
        ? { result: {} }
        : { error: { code: rpcCode.methodNotFound, message: `This client does not answer ${method}` } };
    this.aside(session, JSON.stringify({ jsonrpc: '2.0', id, ...outcome }));
  }

  private aside(session: Session, body: string): void {
    this.exchange({ method: 'POST', headers: session.headers, body, timeoutMs: ASIDE_TIMEOUT_MS }).catch(
      (error: unknown) => this.logger.debug({ msg: 'a message to an upstream was lost', err: error }),
    );
  }

  private exchange(request: Omit<ExchangeRequest, 'url'>): Promise<ExchangeAnswer> {
    return exchange(this.egress, { url: this.target.url, ...request });
  }

  /** The reply in an answer, whatever its status. `session`: the one it was sent in, when losing it may be mended. */
  private reply(id: number, { status, headers, contentType, text }: ExchangeAnswer, session: Session | null): McpReply {
    const { url } = this.target;
    if (status === 401) throw new UpstreamAuthRequiredError(Object.keys(this.target.headers).length > 0);
    const head = text === null ? null : parseMessage(text);
    const reply = head && text !== null ? replyTo(id, text, head) : null;
    if (session?.id && isSessionLost(status, reply, id, head?.id)) throw new SessionLostError();
    if (reply && (status < 300 || reply.error)) return reply;
    if (status < 200 || status >= 300) throw fromHttpStatus(status, url, locationOf(headers.location, url));
    if (text === null && contentType.startsWith('text/event-stream')) {
      throw new UpstreamError(
        `${url.host} ended its event stream without an answer. Whether the call was carried out is unknown.`,
        undefined,
        true,
      );
    }
    throw notMcp(url, contentType);
  }
}

/** 404 is how MCP says it; servers in the field also answer 400 with a generic code and no id of ours. */
function isSessionLost(status: number, reply: McpReply | null, id: number, replyId: unknown): boolean {
  const code = reply?.error?.code;
  if (status === 404) return !(code === rpcCode.methodNotFound && replyId === id);
  return status === 400 && replyId !== id && (code === -32000 || code === rpcCode.invalidRequest);
}

function resultOf(reply: McpReply): unknown {
  return reply.result ? JSON.parse(resultText({ ...reply, result: reply.result })) : undefined;
}

function refuseInputRequest(reply: McpReply): void {
  if (!reply.result || !reply.text.includes('"input_required"')) return;
  if ((resultOf(reply) as { resultType?: unknown }).resultType !== 'input_required') return;
  throw new UpstreamError('The MCP server asks its user for input, which this connection cannot pass on.');
}

/** A redirect's target without its query: what a person needs to see, and nothing secret. */
function locationOf(location: string | string[] | undefined, base: URL): string | undefined {
  const target = typeof location === 'string' ? parseUrl(location, base) : null;
  return target ? `${target.origin}${target.pathname}` : undefined;
}

/** Waits for shared work no longer than `timeoutMs` and no longer than the caller stays. */
function withinDeadline<T>(work: Promise<T>, timeoutMs: number, url: URL, signal?: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => settle(() => reject(new CallerLeftError()));
    const expire = () =>
      settle(() => reject(new UpstreamTimeoutError(`${url.host} did not open a session in time.`, false)));
    const timer = setTimeout(expire, timeoutMs);
    const settle = (outcome: () => void) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', leave);
      outcome();
    };
    signal?.addEventListener('abort', leave);
    work.then(
      (value) => settle(() => resolve(value)),
      (error: Error) => settle(() => reject(error)),
    );
  });
}
