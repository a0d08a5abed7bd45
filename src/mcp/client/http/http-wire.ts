import { randomInt } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { Logger } from '@nestjs/common';
import { parseUrl } from '../../../config/parse-url.js';
import { USER_AGENT } from '../../../config/version.js';
import type { McpCall, McpReply } from '../../protocol/channel.js';
import { deadlineIn } from '../../protocol/deadline.js';
import {
  endpointGone,
  fromHttpStatus,
  notMcp,
  authRequired,
  strayAnswer,
  UpstreamAuthRequiredError,
  UpstreamError,
} from '../../protocol/mcp-errors.js';
import { mayResend, SessionLostError } from '../may-resend.js';
import { MessageBudget } from '../message-budget.js';
import { bearerChallenge, challengeHeaders } from '../../oauth/challenges.js';
import { blockedBy } from '../../oauth/oauth-errors.js';
import { listChanges, listOf } from '../../protocol/list-pages.js';
import { isErrorResult, numericId, parseMessage, replyTo, requestText } from '../../protocol/messages.js';
import { rpcCode, type Era } from '../../protocol/protocol.js';
import { quote } from '../../../platform/text/quoted.js';
import type { TraceHeaders } from '../../protocol/trace-context.js';
import { VIA_HEADER } from '../../protocol/via.js';
import {
  exchange,
  openStream,
  resumeAnswer,
  type ExchangeAnswer,
  type ExchangeRequest,
  type HttpDispatcher,
  type StreamAnswer,
  type StreamRequest,
} from './http-exchange.js';
import { uncoded } from '../../../platform/egress/content-coding.js';
import { UpstreamRequestResponder } from '../upstream-request-responder.js';
import { refusalText, wordsOf } from '../protocol-adapter.js';

const ASIDE_TIMEOUT_MS = 2_000;

/** Timeout for sending the response to an upstream request; the upstream's call is blocked until it arrives. */
const ANSWER_TIMEOUT_MS = 10_000;

/**
 * Limit of concurrent messages without an awaited reply per channel. Protects memory from an upstream that sends
 * requests and does not read the responses.
 */
const ASIDES_MAX = 256;

/** Time for which requests go directly to the target of a redirect. */
const MOVED_MS = 5 * 60_000;

type Headers = Record<string, string>;

/** Statuses unrelated to a session: of authorization, of the size or time of a request, and of a busy server. */
const BUSY = [408, 413, 429, 502, 503, 504];
const UNRELATED: ReadonlySet<number> = new Set([401, 403, ...BUSY]);

/** Codes with which servers reject requests of an unknown session. Tools return them too. */
const DOUBTFUL: ReadonlySet<number | undefined> = new Set([
  rpcCode.invalidRequest,
  -32000,
  rpcCode.sessionLost,
  -32002,
]);

const LOSS =
  /\bsession\b[^.]{0,60}\b(?:not found|not exist|unknown|invalid|expired|terminated|closed|lost|no longer)|\b(?:unknown|invalid|expired|missing|no valid|no such|no active)\b[^.]{0,20}\bsession\b/i;

/** Maximum length of a body that is searched for these messages. */
const LOSS_CHARS_MAX = 2_000;

export function showsLoss(status: number, text: string | null, reply: McpReply | null): boolean {
  if (text === null || text.length > LOSS_CHARS_MAX || status === 401 || status === 429) return false;
  const isRefusal = status >= 400 || (reply !== null && (reply.error !== null || isErrorResult(reply)));
  return isRefusal && LOSS.test(text);
}

export interface SessionNaming {
  /** Header with the name of a session. An upstream that restores sessions by name repeats it in its `initialize` response. */
  header: string;
  /** Returns the name of a session, identical in every process. */
  nameOf(profileKey: string): string;
}

export interface HttpTarget {
  url: URL;
  account?: string;
  /**
   * Server name in error messages, quoted, such as `"acme/weather"`. Hides the address from callers. Without it errors
   * name the URL.
   */
  name?: string;
  /** Opens one upstream session per caller, since the server keeps state in a session. */
  sessionPerCaller?: { sharedKey: string | undefined };
  headers: Headers;
  /**
   * Read before every request; null for none. `rejected` is the token that has just caused a 401; a different token is
   * tried once. Errors reject the request. A known token is returned without a promise.
   */
  bearer?: Bearer;
  connectTimeoutMs: number;
  /** Detects requests that lead back to this service. */
  via?: string;
  /** Replaces the egress policy as dispatcher for programs hosted by this service. */
  dispatcher?: HttpDispatcher;
  /** Limit of concurrent upstream sessions owned by callers; default 100. */
  sessionsMax?: number;
  invocationHeader?: string;
  /** Set for an upstream that restores callers' sessions by name, never for external targets. */
  sessions?: SessionNaming;
}

export type Bearer = (rejected?: string) => string | null | Promise<string | null>;

export interface WireManner {
  headers: Headers;
  /** Era by which the upstream's results are read. */
  era: Era;
  timeoutMs: number;
  params?: string;
  /**
   * Rejects with {@link SessionLostError} on responses that mean, or might mean, that the session no longer exists; in
   * the second case with their outcome.
   */
  mayLoseSession?: boolean;
  isResumable?: boolean;
  /** Answers requests that the upstream sends during the call; without it they are rejected. */
  responder?: UpstreamRequestResponder;
  onHeaders?: (headers: IncomingHttpHeaders) => void;
}

export type WireCall = Omit<McpCall, 'timeoutMs'>;

export interface ProbeResult {
  status: number;
  error: () => UpstreamError;
  /** JSON-RPC reply, whatever the HTTP status; null if the body is not one. */
  reply: McpReply | null;
  showsLoss: boolean;
}

/**
 * JSON-RPC over HTTP POST to one upstream. Request ids come from one counter, never from a caller's id, so callers that
 * all use `id: 1` cannot collide.
 */
export class HttpWire {
  readonly headers: Headers;
  private readonly logger = new Logger('mcp');
  private lastId: number;
  private asides = 0;
  private moved: { to: URL; until: number } | null = null;

  constructor(
    private readonly dispatcher: HttpDispatcher,
    readonly target: HttpTarget,
  ) {
    const all = { ...(target.dispatcher === undefined && { 'user-agent': USER_AGENT }), ...uncoded, ...target.headers };
    this.headers = { ...all, ...(target.via === undefined ? {} : { [VIA_HEADER]: target.via }) };
    // Processes that share a session start at random ids, so that their ids do not collide.
    this.lastId = target.sessions ? randomInt(2 ** 47) : 0;
  }

  /** URL of the upstream; for five minutes, the target of a redirect within the origin. */
  get url(): URL {
    const { moved } = this;
    return moved !== null && moved.until > Date.now() ? moved.to : this.target.url;
  }

  get nextId(): number {
    return this.lastId + 1;
  }

  takeId(): number {
    return (this.lastId += 1);
  }

  /** @throws UpstreamFailure, SessionLostError */
  request(call: WireCall, manner: WireManner): Promise<McpReply> {
    const id = this.takeId();
    let streamed: McpReply | null = null;
    let strayText: string | null = null;
    const request = this.toExchange(
      id,
      call,
      manner,
      (reply) => (streamed = reply),
      (text) => (strayText ??= text),
    );
    return this.send(request).then((answer) => {
      manner.onHeaders?.(answer.headers);
      if (streamed !== null) return this.replyIn(answer, id, manner, strayText, streamed);
      if (!manner.isResumable || !answer.resume) return this.replyIn(answer, id, manner, strayText);
      call.onInterrupted?.();
      return resumeAnswer((again) => this.send(again), request, answer).then((final) =>
        this.replyIn(final, id, manner, strayText, streamed),
      );
    });
  }

  /** @throws UpstreamFailure when there is no response or authorization is required */
  async probe(call: WireCall, manner: WireManner): Promise<ProbeResult> {
    const id = this.takeId();
    let streamed: McpReply | null = null;
    const answer = await this.send(this.toExchange(id, call, manner, (reply) => (streamed = reply)));
    const { status, headers, text } = answer;
    this.requireAuthorized(status, headers);
    const head = text === null ? null : parseMessage(text);
    const reply = streamed ?? (head && text !== null ? replyTo(id, text, head, manner.era) : null);
    this.requireNoLoop(status, reply);
    return {
      status,
      reply,
      showsLoss: showsLoss(status, reply?.text ?? text, reply),
      error: () => this.statusError(answer),
    };
  }

  /** Sends a POST and ignores the body of the response. @throws UpstreamFailure */
  async post(
    url: URL,
    headers: Headers,
    body: string,
    options: Pick<ExchangeRequest, 'timeoutMs' | 'cancellation' | 'timing' | 'isAside'>,
  ): Promise<void> {
    const answer = await this.send({ ...options, url, method: 'POST', headers, body, isOneWay: true });
    const { status } = answer;
    if (status < 300) return;
    this.requireAuthorized(status, answer.headers);
    throw this.statusError(answer, url);
  }

  /** Drops the message when 256 are already pending. */
  sendOneWay(headers: Headers, body: string, url = this.url, timeoutMs = ASIDE_TIMEOUT_MS): void {
    if (this.asides >= ASIDES_MAX)
      return this.logger.debug('a message to an upstream was dropped: too many are pending');
    this.asides += 1;
    this.send({ url, method: 'POST', headers, body, timeoutMs, isAside: true, isOneWay: true })
      .catch((error: unknown) => this.logger.debug({ msg: 'a message to an upstream could not be sent', err: error }))
      .finally(() => (this.asides -= 1));
  }

  postResponse(headers: Headers, text: string, url = this.url): void {
    this.sendOneWay(headers, text, url, ANSWER_TIMEOUT_MS);
  }

  /** @param onRequest forwards requests to the caller; without it they are rejected */
  responder(headers: Headers, onRequest?: McpCall['onRequest']): UpstreamRequestResponder {
    return new UpstreamRequestResponder((text) => this.postResponse(headers, text), onRequest);
  }

  /** Takes at most 2 s to finish. The promise never rejects. */
  async endSession(headers: Headers): Promise<void> {
    const { url } = this;
    const request = {
      url,
      method: 'DELETE',
      headers,
      timeoutMs: ASIDE_TIMEOUT_MS,
      isAside: true,
      isOneWay: true,
    } as const;
    await this.send(request).catch((error: unknown) =>
      this.logger.debug({ msg: 'an upstream session could not be closed', err: error }),
    );
  }

  /** Deletes the named session that the upstream might hold. Takes at most 2 s. The promise never rejects. */
  async endNamed(profileKey: string): Promise<void> {
    if (this.target.sessions) await this.endSession({ ...uncoded, ...this.target.headers, ...this.nameOf(profileKey) });
  }

  /** Returns the header with the name of a session; none if sessions have no names. */
  nameOf(profileKey: string): Headers {
    const { sessions } = this.target;
    return sessions ? { [sessions.header]: sessions.nameOf(profileKey) } : {};
  }

  /** @throws UpstreamFailure; statuses other than 401 are not failures */
  async stream(request: Omit<StreamRequest, 'url'>): Promise<StreamAnswer> {
    const { url, onRedirect } = this;
    const answer = await this.withToken({ ...request, url, onRedirect }, (authorized) =>
      openStream(this.dispatcher, authorized),
    );
    this.requireAuthorized(answer.status, answer.headers);
    return answer;
  }

  statusError(answer: ExchangeAnswer, url = this.target.url): UpstreamError {
    const { status, headers, contentType } = answer;
    // The query of a redirect target can be secret.
    const target = typeof headers.location === 'string' ? parseUrl(headers.location, url) : null;
    const location = target ? `${target.origin}${target.pathname}` : undefined;
    const blocked = blockedBy(url.host, status, contentType);
    if (blocked && headers['retry-after'] === undefined) {
      return new UpstreamError(blocked, {
        outcomeUnknown: false,
        failure: status === 403 ? 'forbidden' : 'server error',
        status,
      });
    }
    return fromHttpStatus(status, url, location, this.wordsIn(answer, url), headers['retry-after']);
  }

  /** Redacts the credentials that the server was sent. */
  private wordsIn({ contentType, text, token }: ExchangeAnswer, url: URL): string {
    const { headers } = this.target;
    const authorization = token ?? headers.authorization ?? '';
    return wordsOf({ url, headers: { ...headers, authorization } }, contentType, text);
  }

  private toExchange(
    id: number,
    { method, params, onNotification, onListChange, cancellation, timing, invocationId, via, trace }: WireCall,
    manner: WireManner,
    onReply: (reply: McpReply) => void,
    onOdd?: (text: string) => void,
  ): ExchangeRequest {
    const { timeoutMs, era, isResumable } = manner;
    const { invocationHeader, via: ownVia } = this.target;
    const headers: Headers = { ...manner.headers };
    // Headers of the connection take precedence.
    for (const name in trace) headers[name] ??= trace[name as keyof TraceHeaders] as string;
    if (via && ownVia) headers[VIA_HEADER] = `${ownVia}, ${via}`;
    if (invocationHeader && invocationId) headers[invocationHeader] = invocationId;
    let { responder } = manner;
    return {
      url: this.url,
      onRedirect: this.onRedirect,
      account: this.target.account,
      method: 'POST',
      headers,
      body: requestText(id, method, manner.params ?? params),
      timeoutMs,
      isOpening: method === 'initialize' || method === 'server/discover',
      extendWithEvents: onNotification !== undefined,
      isHeld: responder && (() => responder?.isHolding(timeoutMs) ?? false),
      isResumable,
      cancellation,
      timing,
      list: listOf(method),
      budget: new MessageBudget(),
      onEvent: (data) => {
        const head = parseMessage(data);
        if (typeof head?.method !== 'string') {
          const reply = head && replyTo(id, data, head, era);
          if (reply) onReply(reply);
          else onOdd?.(data);
          return reply !== null;
        }
        if (head.id === undefined) {
          if (listChanges.has(head.method)) onListChange?.(data, head.method);
          onNotification?.(data, head.method);
        } else {
          responder ??= this.responder(headers);
          responder.handleRequest(data, head.method);
        }
        return false;
      },
    };
  }

  private readonly onRedirect = (to: URL): void => {
    const { origin, pathname } = this.target.url;
    this.moved = { to, until: Date.now() + MOVED_MS };
    // Queries can be secret.
    this.logger.log({
      msg: 'an upstream redirects: change mcpUrl to the new address',
      from: origin + pathname,
      to: origin + to.pathname,
    });
  };

  private send(request: ExchangeRequest): Promise<ExchangeAnswer> {
    if (!this.target.bearer) return exchange(this.dispatcher, request);
    return this.withToken(request, (authorized) => exchange(this.dispatcher, authorized));
  }

  /** Sends again with a refreshed token after 401. */
  private withToken<R extends { headers: Headers; timeoutMs: number }, A extends ExchangeAnswer>(
    request: R,
    send: (request: R) => Promise<A>,
  ): Promise<A> {
    let token: ReturnType<Bearer>;
    try {
      token = this.target.bearer?.() ?? null;
    } catch (error) {
      return Promise.reject(error);
    }
    if (token === null) return send(request);
    const timeLeft = deadlineIn(request.timeoutMs);
    if (typeof token === 'string') return this.sendAuthorized(request, token, timeLeft, send);
    return token.then((read) => (read === null ? send(request) : this.sendAuthorized(request, read, timeLeft, send)));
  }

  private sendAuthorized<R extends { headers: Headers; timeoutMs: number }, A extends ExchangeAnswer>(
    request: R,
    token: string,
    timeLeft: () => number,
    send: (request: R) => Promise<A>,
    rejected?: string,
  ): Promise<A> {
    const authorized = { ...request };
    authorized.headers = { ...request.headers };
    authorized.headers.authorization = `Bearer ${token}`;
    if (rejected !== undefined) authorized.timeoutMs = timeLeft();
    return send(authorized).then((answer) => {
      answer.token = token;
      const status = refusesToken(answer) ? 401 : answer.status;
      if (rejected !== undefined || mayResend({ method: '' }, status) !== 'new token') return answer;
      return Promise.resolve(this.target.bearer?.(token) ?? null).then((other) =>
        other === null || other === token ? answer : this.sendAuthorized(request, other, timeLeft, send, token),
      );
    });
  }

  /**
   * @throws UpstreamAuthRequiredError for 401, for 400 and 403 with a challenge that rejects the token, and for 403
   * that requires more scopes (RFC 6750 section 3.1)
   */
  private requireAuthorized(status: number, headers: IncomingHttpHeaders): void {
    if (status !== 401 && status !== 403 && status !== 400) return;
    const challenges = challengeHeaders(headers['www-authenticate']);
    const bearer = bearerChallenge(challenges);
    if (status !== 401 && bearer?.error !== 'invalid_token') {
      if (bearer?.error !== 'insufficient_scope') return;
      throw new UpstreamAuthRequiredError(authRequired.scopes, challenges, 'insufficient scope');
    }
    const hasHeaders = Object.keys(this.target.headers).length > 0;
    const isOAuth = bearer !== null && bearer.resourceMetadata.length > 0;
    const lacking = hasHeaders ? 'otherHeaders' : isOAuth ? 'oauth' : 'headers';
    throw new UpstreamAuthRequiredError(authRequired[lacking], challenges);
  }

  /** @throws UpstreamError when a service like this one reports a request loop */
  private requireNoLoop(status: number, reply: McpReply | null): void {
    const { target } = this;
    if (target.via === undefined || status !== 400 || reply?.error?.code !== rpcCode.loop) return;
    throw new UpstreamError(refusalText(target, reply.error.message), { outcomeUnknown: false, failure: 'loop' });
  }

  /**
   * @param strayText the first message of a stream that was neither the response nor a notification or request
   * @param streamed the reply, if it arrived in an event stream
   */
  private replyIn(
    answer: ExchangeAnswer,
    id: number,
    { mayLoseSession, era }: WireManner,
    strayText: string | null,
    streamed: McpReply | null = null,
  ): McpReply {
    if (streamed?.error === null && !(mayLoseSession && showsLoss(200, streamed.text, streamed))) return streamed;
    const { url } = this.target;
    const { status, contentType, text } = answer;
    if (status >= 400) this.requireAuthorized(status, answer.headers);
    const isWait = (status === 429 || status === 503) && answer.headers['retry-after'] !== undefined;
    const message = streamed?.text ?? text;
    const head = message === null ? null : parseMessage(message);
    const reply = streamed ?? (head && message !== null ? replyTo(id, message, head, era) : null);
    const isLoss = mayLoseSession === true && showsLoss(status, message, reply);
    if (isWait && !isLoss) throw this.statusError(answer);
    const isCodeOfLoss = mayLoseSession && DOUBTFUL.has(reply?.error?.code) && !BUSY.includes(status);
    if (status === 200 && reply && !isCodeOfLoss && !isLoss) return reply;
    this.requireNoLoop(status, reply);
    const isRead = numericId(head?.id) === id;
    if (mayLoseSession && isSessionLost(status, reply, isRead)) throw new SessionLostError();
    // A 404 without our request id comes from a server that has not read the message: the endpoint no longer exists.
    if (status === 404 && reply?.error && !isRead) throw endpointGone(url, reply.error.message);
    const isSuccess = status >= 200 && status < 300;
    const isInDoubt = isLoss || isCodeOfLoss || (mayLoseSession && !isSuccess && !isRead && !UNRELATED.has(status));
    const hasNotRun = (status >= 400 && status < 500) || status === 503;
    if (reply && (status < 300 || reply.error)) {
      const wasRefused = (isLoss && hasNotRun) || (isCodeOfLoss === true && status >= 400 && status < 500);
      if (isInDoubt) throw new SessionLostError(reply, wasRefused);
      return reply;
    }
    if (isInDoubt) throw new SessionLostError(this.statusError(answer), isLoss && hasNotRun);
    if (!isSuccess) throw this.statusError(answer);
    const isStream = text === null && contentType === 'text/event-stream';
    const stray = strayAnswer(`${url.origin}${url.pathname}`, id, isStream ? parseMessage(strayText ?? '') : head);
    if (stray) throw stray;
    if (!isStream) throw notMcp(url, contentType, text);
    const how = answer.isCut ? 'within an event' : 'without a reply';
    const other = strayText === null ? '' : ` It sent ${quote(strayText, 60)}, which is not a reply.`;
    const ended = `${url.host} closed its event stream ${how}: the server or a proxy cut it.${other}`;
    throw new UpstreamError(ended, { outcomeUnknown: true });
  }
}

/** Returns true for a response that rejects the token, whatever its status (RFC 6750 section 3.1). */
function refusesToken({ status, headers }: ExchangeAnswer): boolean {
  if (status === 401) return true;
  const hasChallenge = (status === 400 || status === 403) && headers['www-authenticate'] !== undefined;
  return hasChallenge && bearerChallenge(challengeHeaders(headers['www-authenticate']))?.error === 'invalid_token';
}

/** Returns true for 404, by which MCP signals a lost session, and for 400 with a generic code and without our request id. */
function isSessionLost(status: number, reply: McpReply | null, isRead: boolean): boolean {
  const code = reply?.error?.code;
  if (status === 404) return !(code === rpcCode.methodNotFound && isRead);
  return status === 400 && !isRead && (code === -32000 || code === rpcCode.invalidRequest);
}
