import type { IncomingHttpHeaders } from 'node:http';
import { Logger } from '@nestjs/common';
import { parseUrl } from '../../config/parse-url.js';
import type { Egress } from '../../platform/egress/egress.js';
import type { McpCall, McpReply } from '../channel.js';
import { endpointGone, fromHttpStatus, notMcp, UpstreamAuthRequiredError, UpstreamError } from '../mcp-errors.js';
import { bearerChallenge, challengeHeaders } from '../oauth/challenges.js';
import { parseMessage, replyTo, requestText, type RpcHead } from '../messages.js';
import { rpcCode, type Era } from '../protocol.js';
import { exchange, type ExchangeAnswer } from './http-exchange.js';

/** For messages whose answer nobody waits for. */
const ASIDE_TIMEOUT_MS = 2_000;

/** What a server may ask its client during one call; each is answered by a request of its own. */
const QUESTIONS_MAX = 100;

type Headers = Record<string, string>;

/** The upstream no longer knows the session a request was sent in: the request certainly did not run. */
export class SessionLostError extends Error {}

/** Where a wire leads and with what credentials. */
export interface HttpTarget {
  url: URL;
  /** The connection's own headers; lower-case names. */
  headers: Headers;
  /**
   * The token sent as bearer, asked for before every request; null for none. `rejected` is the token the upstream has just
   * answered 401 to.
   */
  bearer?: (rejected?: string) => Promise<string | null>;
  /** How long a handshake may take. */
  connectTimeoutMs: number;
}

/** One request as it goes over the wire, in a session or to open one. */
export interface WireRequest extends McpCall {
  headers: Headers;
  /** How the upstream's results are to be read. */
  era: Era;
  /** Answers that mean the session is gone reject with {@link SessionLostError}. */
  mayLoseSession?: boolean;
}

/**
 * JSON-RPC over HTTP POST to one upstream. Ids are ours: one counter, never derived from a caller's id, so callers that
 * all use `id: 1` cannot cross.
 */
export class HttpWire {
  private readonly logger = new Logger('mcp');
  private lastId = 0;

  constructor(
    private readonly egress: Egress,
    readonly target: HttpTarget,
  ) {}

  /** The id of the next request: what its cancellation must name. */
  get nextId(): number {
    return this.lastId + 1;
  }

  /**
   * Sends a request and returns its reply, which may be a JSON-RPC error, with the headers it came with.
   *
   * @throws UpstreamFailure, SessionLostError
   */
  async ask(request: WireRequest): Promise<{ reply: McpReply; headers: IncomingHttpHeaders }> {
    const id = (this.lastId += 1);
    let found: McpReply | null = null;
    let asked = 0;
    const answer = await exchange(this.egress, {
      url: this.target.url,
      method: 'POST',
      headers: request.headers,
      body: requestText(id, request.method, request.params),
      timeoutMs: request.timeoutMs,
      extendWithEvents: request.onNotification !== undefined,
      cancellation: request.cancellation,
      onEvent: (data) => {
        found = this.onEvent(id, data, request, () => (asked += 1));
        return found !== null;
      },
    });
    return { reply: found ?? this.replyIn(answer, id, request), headers: answer.headers };
  }

  /** Sends a notification and waits until it was taken. @throws UpstreamFailure */
  async tell(headers: Headers, method: string, timeoutMs: number): Promise<void> {
    const { url } = this.target;
    const body = requestText(null, method, undefined);
    const { status, headers: answered } = await exchange(this.egress, {
      url,
      method: 'POST',
      headers,
      body,
      timeoutMs,
    });
    this.requireAuthorized(status, answered);
    if (status >= 400) throw fromHttpStatus(status, url, undefined);
  }

  /** Sends a message that nothing depends on. */
  aside(headers: Headers, body: string): void {
    const { url } = this.target;
    const request = { url, method: 'POST', headers, body, timeoutMs: ASIDE_TIMEOUT_MS, isAside: true } as const;
    exchange(this.egress, request).catch((error: unknown) =>
      this.logger.debug({ msg: 'a message to an upstream was lost', err: error }),
    );
  }

  /** Ends a session upstream, in 2 s at most. Never rejects. */
  async endSession(headers: Headers): Promise<void> {
    const { url } = this.target;
    const request = { url, method: 'DELETE', headers, timeoutMs: ASIDE_TIMEOUT_MS, isAside: true } as const;
    await exchange(this.egress, request).catch((error: unknown) =>
      this.logger.debug({ msg: 'an upstream session could not be ended', err: error }),
    );
  }

  /** One message of an answer's stream: the reply, or null for what precedes it. */
  private onEvent(
    id: number,
    data: string,
    { headers, onNotification, era }: WireRequest,
    countQuestion: () => number,
  ): McpReply | null {
    const head = parseMessage(data);
    if (!head) throw notMcp(this.target.url, '', data);
    if (typeof head.method !== 'string') return replyTo(id, data, head, era);
    if (head.id === undefined) onNotification?.(data, head.method);
    else if (countQuestion() <= QUESTIONS_MAX) this.aside(headers, answerToServer(head.id, head.method));
    else
      throw new UpstreamError(
        `${this.target.url.host} asked its client more than ${QUESTIONS_MAX} things during one call.`,
      );
    return null;
  }

  /** @throws UpstreamAuthRequiredError for a 401, and for a 403 that asks for more scopes (RFC 6750 section 3.1) */
  private requireAuthorized(status: number, headers: IncomingHttpHeaders): void {
    if (status !== 401 && status !== 403) return;
    const challenges = challengeHeaders(headers['www-authenticate']);
    const wantsMore = status === 403 && bearerChallenge(challenges)?.error === 'insufficient_scope';
    if (status === 403 && !wantsMore) return;
    throw new UpstreamAuthRequiredError(Object.keys(this.target.headers).length > 0, challenges, wantsMore);
  }

  private replyIn(answer: ExchangeAnswer, id: number, { mayLoseSession, era }: WireRequest): McpReply {
    const { url } = this.target;
    const { status, contentType, text } = answer;
    this.requireAuthorized(status, answer.headers);
    const head = text === null ? null : parseMessage(text);
    const reply = head && text !== null ? replyTo(id, text, head, era) : null;
    if (mayLoseSession && isSessionLost(status, reply, id, head)) throw new SessionLostError();
    // Whoever answers 404 to no id of ours has not read the message: nothing is there any more to read it.
    if (status === 404 && reply?.error && head?.id !== id) throw endpointGone(url, reply.error.message);
    if (reply && (status < 300 || reply.error)) return reply;
    if (status < 200 || status >= 300) throw fromHttpStatus(status, url, locationOf(answer.headers.location, url));
    if (text !== null || !contentType.startsWith('text/event-stream')) throw notMcp(url, contentType, text);
    throw new UpstreamError(
      `${url.host} ended its event stream without an answer: the server or a proxy cut it.`,
      undefined,
      true,
    );
  }
}

/** A server may ask its client something mid-call. We declared that we answer nothing, so it hears so at once. */
function answerToServer(id: unknown, method: string): string {
  const outcome =
    method === 'ping'
      ? { result: {} }
      : { error: { code: rpcCode.methodNotFound, message: `This client does not answer ${method}` } };
  return JSON.stringify({ jsonrpc: '2.0', id, ...outcome });
}

/** 404 is how MCP says it; servers in the field also answer 400 with a generic code and no id of ours. */
function isSessionLost(status: number, reply: McpReply | null, id: number, head: RpcHead | null): boolean {
  const code = reply?.error?.code;
  if (status === 404) return !(code === rpcCode.methodNotFound && head?.id === id);
  return status === 400 && head?.id !== id && (code === -32000 || code === rpcCode.invalidRequest);
}

/** A redirect's target without its query: what a person needs to see, and nothing secret. */
function locationOf(location: string | string[] | undefined, base: URL): string | undefined {
  const target = typeof location === 'string' ? parseUrl(location, base) : null;
  return target ? `${target.origin}${target.pathname}` : undefined;
}
