import { randomInt } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { Logger } from '@nestjs/common';
import { parseUrl } from '../../../config/parse-url.js';
import type { McpCall, McpReply } from '../../protocol/channel.js';
import { deadlineIn } from '../../protocol/deadline.js';
import {
  endpointGone,
  fromHttpStatus,
  notMcp,
  UpstreamAuthRequiredError,
  UpstreamError,
} from '../../protocol/mcp-errors.js';
import { bearerChallenge, challengeHeaders } from '../../oauth/challenges.js';
import { parseMessage, replyTo, requestText, type RpcHead } from '../../protocol/messages.js';
import { rpcCode, type Era } from '../../protocol/protocol.js';
import { VIA_HEADER } from '../../protocol/via.js';
import { openStream, type StreamAnswer, type StreamRequest } from './event-stream.js';
import type { HttpDispatcher } from './http-exchange.js';
import { exchange, type ExchangeAnswer, type ExchangeRequest } from './http-exchange.js';
import { UpstreamRequestResponder } from '../upstream-request-responder.js';
import { refusalText } from '../refusal.js';
import { resumed } from './resume.js';

/** For messages whose answer nobody waits for. */
const ASIDE_TIMEOUT_MS = 2_000;

/** For answers to what an upstream asked: its call stands still until it has one. */
const ANSWER_TIMEOUT_MS = 10_000;

/** Such messages of one channel that wait at once: an upstream that asks on and takes no answers must not fill the memory. */
const ASIDES_MAX = 256;

/** Where the ids of a process begin that shares a session with others, at most: 2^47, so that no two meet in it. */
const FIRST_ID_MAX = 2 ** 47;

type Headers = Record<string, string>;

/** The upstream no longer knows the session a request was sent in: the request certainly did not run. */
export class SessionLostError extends Error {}

/** How sessions are named to an upstream that keeps them for whoever comes back. */
export interface SessionNaming {
  /**
   * The header that names a session as it opens, or ends. An upstream that keeps it by this name answers the opening with
   * the same header.
   */
  header: string;
  /** The name for a caller with this profile key, the same in every process. */
  nameOf(profileKey: string): string;
}

/** Where a wire leads and with what credentials. */
export interface HttpTarget {
  url: URL;
  /**
   * The name of the server in error messages, with its quotes, such as `"acme/weather"`. Addresses are then hidden from
   * callers. Without it errors name the URL.
   */
  name?: string;
  /**
   * Every caller gets an upstream session of its own, since the server keeps state in one. `sharedKey` is the profile key
   * of callers without a key; without it they share a session that no profile owns.
   */
  sessionPerCaller?: { sharedKey: string | undefined };
  /** The connection's own headers; lower-case names. */
  headers: Headers;
  /**
   * The token sent as bearer, asked for before every request; null for none. `rejected` is the token the upstream has just
   * answered 401 to; a different one is tried, once. What it throws is what the request throws.
   */
  bearer?: (rejected?: string) => Promise<string | null>;
  /** How long a handshake may take. */
  connectTimeoutMs: number;
  /** The mark of this service, so that a request that leads back to it is known. */
  via?: string;
  /** Takes requests there in place of the guarded way out, for what this service runs itself. */
  door?: HttpDispatcher;
  /** Callers that may have upstream sessions of their own at once; 100 when missing. */
  sessionsMax?: number;
  /** The header that tells the target which invocation a call belongs to; never for anybody outside. */
  invocationHeader?: string;
  /** For an upstream that may keep callers' own sessions by name; never for anybody outside. */
  sessions?: SessionNaming;
}

/** How a request goes over the wire, in a session or to open one. */
export interface WireManner {
  headers: Headers;
  /** How the upstream's results are to be read. */
  era: Era;
  timeoutMs: number;
  /** Sent in place of the call's own params. */
  params?: string;
  /** Answers that mean the session is gone reject with {@link SessionLostError}. */
  mayLoseSession?: boolean;
  /** A stream that breaks is taken up again where it broke. */
  isResumable?: boolean;
  /** What the upstream asks during the call; without it, it hears that nobody answers. */
  questions?: UpstreamRequestResponder;
}

/** The request of a {@link McpCall}, less its own time. */
export type WireCall = Omit<McpCall, 'timeoutMs'>;

/** What an endpoint answered, MCP or not. */
export interface Look {
  status: number;
  /** Where a redirect leads, if it does. */
  location: string | undefined;
  /** The reply, whatever its status; null for what is none. */
  reply: McpReply | null;
}

/**
 * JSON-RPC over HTTP POST to one upstream. Ids are ours: one counter, never derived from a caller's id, so callers that
 * all use `id: 1` cannot cross. Where other processes may send in the same session, it begins somewhere of its own.
 */
export class HttpWire {
  /** What every request carries: the headers of the target, and by which way it came. */
  readonly headers: Headers;
  private readonly logger = new Logger('mcp');
  private lastId: number;
  private asides = 0;

  constructor(
    private readonly door: HttpDispatcher,
    readonly target: HttpTarget,
  ) {
    this.headers = { ...target.headers, ...(target.via === undefined ? {} : { [VIA_HEADER]: target.via }) };
    this.lastId = target.sessions ? randomInt(FIRST_ID_MAX) : 0;
  }

  /** The id of the next request: what its cancellation must name. */
  get nextId(): number {
    return this.lastId + 1;
  }

  /** An id for a request that goes out by other means than {@link ask}. */
  takeId(): number {
    return (this.lastId += 1);
  }

  /**
   * Sends a request and returns its reply, which may be a JSON-RPC error, with the headers it came with.
   *
   * @throws UpstreamFailure, SessionLostError
   */
  async ask(call: WireCall, manner: WireManner): Promise<{ reply: McpReply; headers: IncomingHttpHeaders }> {
    const id = this.takeId();
    let found: McpReply | null = null;
    const sent = this.toExchange(id, call, manner, (reply) => (found = reply));
    let answer = await this.send(sent);
    if (manner.isResumable && found === null && answer.resume) {
      answer = await resumed((again) => this.send(again), sent, answer);
    }
    return { reply: found ?? this.replyIn(answer, id, manner), headers: answer.headers };
  }

  /**
   * Sends a request to find out what answers there.
   *
   * @throws UpstreamFailure when nothing does, or it wants authorization
   */
  async look(call: WireCall, manner: WireManner): Promise<Look> {
    const id = this.takeId();
    let found: McpReply | null = null;
    const { status, headers, text } = await this.send(this.toExchange(id, call, manner, (reply) => (found = reply)));
    this.requireAuthorized(status, headers);
    const head = text === null ? null : parseMessage(text);
    const reply = found ?? (head && text !== null ? replyTo(id, text, head, manner.era) : null);
    this.requireNoLoop(status, reply);
    return { status, location: locationOf(headers.location, this.target.url), reply };
  }

  /** Sends a notification and waits until it was taken. @throws UpstreamFailure */
  async tell(headers: Headers, method: string, timeoutMs: number): Promise<void> {
    await this.post(this.target.url, headers, requestText(null, method, undefined), { timeoutMs });
  }

  /** Posts a message whose answer is no answer: any body is passed over. @throws UpstreamFailure */
  async post(
    url: URL,
    headers: Headers,
    body: string,
    options: Pick<ExchangeRequest, 'timeoutMs' | 'cancellation' | 'timing' | 'isAside'>,
  ): Promise<void> {
    const { status, headers: answered } = await this.send({ ...options, url, method: 'POST', headers, body });
    this.requireAuthorized(status, answered);
    if (status >= 300) throw fromHttpStatus(status, url, locationOf(answered.location, url));
  }

  /** Sends a message that nothing depends on, or drops it when 256 wait already. */
  aside(headers: Headers, body: string, url = this.target.url, timeoutMs = ASIDE_TIMEOUT_MS): void {
    if (this.asides >= ASIDES_MAX) return this.logger.debug('a message to an upstream that takes none was dropped');
    this.asides += 1;
    this.send({ url, method: 'POST', headers, body, timeoutMs, isAside: true })
      .catch((error: unknown) => this.logger.debug({ msg: 'a message to an upstream was lost', err: error }))
      .finally(() => (this.asides -= 1));
  }

  /** What takes the answers to an upstream's questions there. */
  answers(headers: Headers, url = this.target.url): (text: string) => void {
    return (text) => this.aside(headers, text, url, ANSWER_TIMEOUT_MS);
  }

  /** Ends a session upstream, in 2 s at most. Never rejects. */
  async endSession(headers: Headers): Promise<void> {
    const { url } = this.target;
    const request = { url, method: 'DELETE', headers, timeoutMs: ASIDE_TIMEOUT_MS, isAside: true } as const;
    await this.send(request).catch((error: unknown) =>
      this.logger.debug({ msg: 'an upstream session could not be ended', err: error }),
    );
  }

  /** Ends the session that the upstream keeps for a caller profile, if it keeps any, in 2 s at most. Never rejects. */
  async endNamed(profileKey: string): Promise<void> {
    if (this.target.sessions) await this.endSession({ ...this.target.headers, ...this.nameOf(profileKey) });
  }

  /** The header that names the session of a caller profile; none where sessions have no names. */
  nameOf(profileKey: string): Headers {
    const { sessions } = this.target;
    return sessions ? { [sessions.header]: sessions.nameOf(profileKey) } : {};
  }

  /** Opens an event stream of its own. @throws UpstreamFailure; another status than 401 is not a failure */
  async stream(request: Omit<StreamRequest, 'url'>): Promise<StreamAnswer> {
    const { url } = this.target;
    const answer = await this.withToken({ ...request, url }, (authorized) => openStream(this.door, authorized));
    this.requireAuthorized(answer.status, answer.headers);
    return answer;
  }

  private toExchange(
    id: number,
    { method, params, onNotification, cancellation, timing, invocationId, via }: WireCall,
    manner: WireManner,
    onReply: (reply: McpReply) => void,
  ): ExchangeRequest {
    const { timeoutMs, era, isResumable } = manner;
    const { invocationHeader, via: own } = this.target;
    const headers = via && own ? { ...manner.headers, [VIA_HEADER]: `${own}, ${via}` } : manner.headers;
    let { questions } = manner;
    return {
      url: this.target.url,
      method: 'POST',
      headers: invocationHeader && invocationId ? { ...headers, [invocationHeader]: invocationId } : headers,
      body: requestText(id, method, manner.params ?? params),
      timeoutMs,
      extendWithEvents: onNotification !== undefined,
      isHeld: questions && (() => questions?.isHolding(timeoutMs) ?? false),
      isResumable,
      cancellation,
      timing,
      onEvent: (data) => {
        const head = parseMessage(data);
        if (!head) throw notMcp(this.target.url, '', data);
        if (typeof head.method !== 'string') {
          const reply = replyTo(id, data, head, era);
          if (reply) onReply(reply);
          return reply !== null;
        }
        if (head.id === undefined) onNotification?.(data, head.method);
        else {
          questions ??= new UpstreamRequestResponder(this.answers(headers), this.target.url.host);
          questions.take(data, head.method);
        }
        return false;
      },
    };
  }

  private send(request: ExchangeRequest): Promise<ExchangeAnswer> {
    if (!this.target.bearer) return exchange(this.door, request);
    return this.withToken(request, (authorized) => exchange(this.door, authorized));
  }

  /** With the token of this moment, and once more with another one when it is refused: a 401 proves that nothing ran. */
  private async withToken<R extends { headers: Headers; timeoutMs: number }, A extends { status: number }>(
    request: R,
    send: (request: R) => Promise<A>,
  ): Promise<A> {
    const { bearer } = this.target;
    if (!bearer) return send(request);
    const left = deadlineIn(request.timeoutMs);
    const token = await bearer();
    const answer = await send(authorizedWith(request, token));
    if (answer.status !== 401 || token === null) return answer;
    const other = await bearer(token);
    if (other === null || other === token) return answer;
    return send(authorizedWith({ ...request, timeoutMs: left() }, other));
  }

  /** @throws UpstreamAuthRequiredError for a 401, and for a 403 that asks for more scopes (RFC 6750 section 3.1) */
  private requireAuthorized(status: number, headers: IncomingHttpHeaders): void {
    if (status !== 401 && status !== 403) return;
    const challenges = challengeHeaders(headers['www-authenticate']);
    const wantsMore = status === 403 && bearerChallenge(challenges)?.error === 'insufficient_scope';
    if (status === 403 && !wantsMore) return;
    throw new UpstreamAuthRequiredError(Object.keys(this.target.headers).length > 0, challenges, wantsMore);
  }

  /** @throws UpstreamError when a service like this one says that the request has come through it before */
  private requireNoLoop(status: number, reply: McpReply | null): void {
    const { target } = this;
    if (target.via === undefined || status !== 400 || reply?.error?.code !== rpcCode.loop) return;
    throw new UpstreamError(refusalText(target, reply.error.message), undefined, false, 'loop');
  }

  private replyIn(answer: ExchangeAnswer, id: number, { mayLoseSession, era }: WireManner): McpReply {
    const { url } = this.target;
    const { status, contentType, text } = answer;
    this.requireAuthorized(status, answer.headers);
    const head = text === null ? null : parseMessage(text);
    const reply = head && text !== null ? replyTo(id, text, head, era) : null;
    this.requireNoLoop(status, reply);
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

function authorizedWith<R extends { headers: Headers }>(request: R, token: string | null): R {
  return token === null ? request : { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } };
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
