import { DomainError, type ErrorKind } from '../../platform/errors/domain-error.js';
import { Serializable } from '../../platform/internal-http/error-codec.js';
import { quoted, visible } from '../../platform/text/quoted.js';

const OUTCOME_UNKNOWN = ' Whether the call was carried out is unknown; it was not repeated.';

/**
 * Failure between us and an upstream. The message is for the person who made the connection: the problem and a remedy.
 */
export abstract class UpstreamFailure extends DomainError {
  /** False when the request certainly did not run, so that repeating it is safe. */
  readonly outcomeUnknown: boolean = false;

  /** Adds to the message that the call may have run, if the outcome is unknown. */
  ofCall(): this {
    if (this.outcomeUnknown) this.message += OUTCOME_UNKNOWN;
    return this;
  }

  /** Message about the upstream only, without the consequence for the call. */
  get aboutUpstream(): string {
    return this.message.replace(OUTCOME_UNKNOWN, '');
  }
}

/** Base class of the upstream failures of one kind; `code` is the word that clients match on. */
function failureOf<Kind extends ErrorKind>(kind: Kind, code: string = kind) {
  abstract class OfKind extends UpstreamFailure {
    readonly kind = kind;
    readonly code = code;
  }
  return OfKind;
}

/** The error of a request for its caller: of a tool call, it states that the call may have run. */
export function asCallError<E>(error: E, { method }: { method: string }): E {
  return error instanceof UpstreamFailure && method === 'tools/call' ? error.ofCall() : error;
}

/** Kinds of failures that need advice of their own, as {@link UpstreamError} explains them. */
export type UpstreamHint =
  'wrong path' | 'forbidden' | 'blocked' | 'not our MCP' | 'loop' | 'refused' | 'unreadable' | 'broken list';

/** The upstream is unreachable, refuses us, or does not speak MCP. */
@Serializable('outcomeUnknown', 'hint', 'status')
export class UpstreamError extends failureOf('upstream', 'upstream_error') {
  constructor(
    message: string,
    detail?: unknown,
    override readonly outcomeUnknown = false,
    /**
     * `wrong path`: the host answers, but not as an MCP server. `forbidden`: 403 without a challenge. `blocked`:
     * refused by the egress policy. `not our MCP`: no supported revision. `loop`: leads back to this service.
     * `refused`: a JSON-RPC error instead of a session. `unreadable`: malformed answer, which may repeat. `broken list`:
     * one list is refused or malformed.
     */
    readonly hint: UpstreamHint | null = null,
    /** HTTP status that was not an MCP answer; null for other failures. */
    readonly status: number | null = null,
  ) {
    super(message, detail);
  }
}

/** The upstream answered 401, or 403 with required scopes. */
@Serializable('challenges', 'wantsMore', 'setupUrl')
export class UpstreamAuthRequiredError extends failureOf('conflict', 'auth_required') {
  /**
   * @param challenges values of its `WWW-Authenticate` headers, at most 8 KB
   *
   * @param wantsMore the credentials are valid but their scopes insufficient
   * @param setupUrl our page where a person authorizes, if there is one
   */
  constructor(
    message: string,
    readonly challenges: string[] = [],
    readonly wantsMore = false,
    readonly setupUrl: string | undefined = undefined,
  ) {
    super(message);
  }

  /** This error with a setup page that opens only for people signed in as this account; itself without a setup page. */
  boundTo(_accountId: string): Promise<UpstreamAuthRequiredError> {
    return Promise.resolve(this);
  }
}

/** The setup page in a message, where its address is not known. */
export const SETUP_PAGE = 'setupUrl of the connection';

const PUT_HEADERS =
  'PUT the connection again with headers, for example {"headers": {"Authorization": "Bearer <token>"}}.';

/** Messages of an {@link UpstreamAuthRequiredError}, by what the upstream requires. */
export const authRequired = {
  scopes:
    'The MCP server answered 403: the authorization of this connection does not reach far enough (insufficient_scope). ' +
    'Authorize it with the scopes it asks for, or PUT the connection again with headers that have them.',
  otherHeaders:
    'The MCP server answered 401: it does not accept the headers of this connection. ' +
    'PUT the connection again with headers it accepts.',
  oauth: `The MCP server answered 401: it wants authorization by OAuth. Open ${SETUP_PAGE} in a browser, or ${PUT_HEADERS}`,
  headers: `The MCP server answered 401: it wants authorization. ${PUT_HEADERS}`,
};

/** The upstream requires input during a call, and the caller cannot answer server requests. */
@Serializable()
export class InputNeededError extends failureOf('conflict', 'input_required') {
  constructor() {
    super(
      'The MCP server asks its user for input before it goes on, and this way of calling cannot pass the question on. ' +
        "Call it with an MCP client that supports elicitation, at the connection's MCP endpoint.",
    );
  }
}

/** The timeout of a call that expired. */
export interface ExpiredTimeout {
  timeoutMs: number;
  /** True if messages restart the timeout. */
  isExtended?: boolean;
  /** True if the call has lasted for the hour that it may last in all. */
  isOver?: boolean;
  /** True for the first contact and for opening a session. */
  isOpening?: boolean;
}

/** Message about an upstream timeout. */
export function tooLate(
  { host }: { host: string },
  { timeoutMs, isExtended, isOver, isOpening }: ExpiredTimeout,
): string {
  const seconds = Number((timeoutMs / 1000).toPrecision(2));
  if (isOver) return `${host} did not answer completely within an hour, the longest time of a call.`;
  if (isOpening) {
    return (
      `${host} did not open a session within ${seconds} s: it is too slow, overloaded or still starting. ` +
      'The operator of this service sets this time with UPSTREAM_CONNECT_TIMEOUT_MS.'
    );
  }
  if (isExtended) {
    return `${host} sent nothing for ${seconds} s: it is too slow or overloaded, or the request takes longer and reports no progress.`;
  }
  return `${host} did not answer completely within ${seconds} s: it is too slow or overloaded, or the request takes longer.`;
}

/** The upstream did not answer in time. */
@Serializable('outcomeUnknown')
export class UpstreamTimeoutError extends failureOf('timeout') {
  constructor(
    message: string,
    override readonly outcomeUnknown: boolean,
    detail?: unknown,
  ) {
    super(message, detail);
  }
}

const PAIR =
  'Pair one with `smithery mcp add --id <connectionId> -- <command that starts the server>` and keep it running.';

/** No local server is paired with an uplink connection, or its tunnel has closed. */
@Serializable('outcomeUnknown')
export class UplinkDisconnectedError extends failureOf('unavailable', 'uplink_disconnected') {
  /** @param outcomeUnknown true when the tunnel closed during the request */
  constructor(override readonly outcomeUnknown = false) {
    super(
      outcomeUnknown
        ? `The tunnel to the local server ended before the answer came. ${PAIR}`
        : `No local server is paired with this connection. ${PAIR}`,
    );
  }
}

/** This process stops before the upstream has answered. */
@Serializable()
export class RestartingError extends failureOf('unavailable') {
  override readonly outcomeUnknown = true;

  constructor() {
    super('The service is restarting, and the MCP server has not answered yet.');
  }
}

/** The upstream has reached its limit of concurrent requests; the request was not sent. */
@Serializable()
export class UpstreamBusyError extends failureOf('rate_limited') {
  override readonly retryAfterSeconds = 1;
}

/** The upstream is hosted code that does not run: hosting is off, or not available for this kind of code. */
@Serializable()
export class NotHostedError extends failureOf('conflict', 'not_runnable') {}

/** The upstream is hosted code, and no process takes the request right now. It was not sent. */
@Serializable('retryAfterSeconds')
export class HostedAwayError extends failureOf('unavailable') {
  constructor(
    message: string,
    override readonly retryAfterSeconds: number,
    detail?: unknown,
  ) {
    super(message, detail);
  }
}

/** The caller left before the answer. The message is never sent. */
@Serializable()
export class CallerLeftError extends failureOf('timeout') {
  override readonly outcomeUnknown = true;

  constructor() {
    super('The caller left before the answer came.');
  }
}

const TLS_CODES =
  /^(ERR_TLS_|ERR_SSL_|CERT_|DEPTH_ZERO_SELF_SIGNED_CERT$|SELF_SIGNED_CERT_IN_CHAIN$|UNABLE_TO_|EPROTO$)/;

/** Converts a socket error. `written`: the request may have reached the upstream. */
export function fromSocketError(error: unknown, url: URL, written: boolean): UpstreamFailure {
  if (error instanceof UpstreamFailure) return error;
  if (error instanceof DomainError) {
    return new UpstreamError(error.message, error.detail, false, error.kind === 'upstream' ? null : 'blocked');
  }
  const { code = '', message } = error as { code?: string; message: string };
  const { host, hostname } = url;
  const failed = (text: string, outcomeUnknown = false) => new UpstreamError(text, error, outcomeUnknown);
  switch (code) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'EAI_NODATA':
      return failed(`The host "${hostname}" has no address in DNS: is its name spelled right?`);
    case 'ECONNREFUSED':
      return failed(`Nothing listens on ${host}: is the server running, and is the port right?`);
    case 'UND_ERR_CONNECT_TIMEOUT':
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return failed(`The host "${hostname}" cannot be reached: it does not answer on its address.`, written);
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
      return failed(`${host} does not speak TLS: does its URL start with http:// instead?`);
  }
  if (TLS_CODES.test(code)) {
    return failed(
      `The TLS connection to "${hostname}" failed (${code}): its certificate must be valid for this host.`,
      written,
    );
  }
  if (code.startsWith('HPE_')) return failed(`${host} does not speak HTTP: is the port right?`, written);
  const broken = `The connection to ${host} broke before the answer was complete: the server or a proxy closed it.`;
  return new UpstreamError(broken, message, written);
}

/** Text of the server's own words in an error; {@link withoutWords} recognizes it. */
const SAID = / The server said: "(?:[^"\\]|\\.)*"\./g;

/** An error message without the server's own words, which only its connection's owner may read. */
export function withoutWords(message: string): string {
  return message.replace(SAID, '');
}

/**
 * Converts an HTTP status that is not an MCP answer.
 *
 * @param words the server's own words, without secrets; empty without any
 */
export function fromHttpStatus(status: number, url: URL, location: string | undefined, words = ''): UpstreamError {
  const said = words === '' ? '' : ` The server said: ${quoted(words.replace(/\.$/, ''), 200)}.`;
  const where = `${url.origin}${url.pathname}`;
  const failed = (text: string, hint: UpstreamError['hint'] = null, outcomeUnknown = false) =>
    new UpstreamError(`${where} ${text}${said}`, undefined, outcomeUnknown, hint, status);
  if (status >= 300 && status < 400) {
    return location === undefined
      ? failed(`answered ${status}, a redirect to nowhere.`, 'wrong path')
      : failed(`redirects to ${location}: connect to that address instead.`, 'wrong path');
  }
  if (status === 404) {
    return failed(`answered 404: is the path right? MCP servers often answer at ${triedPath(url)}.`, 'wrong path');
  }
  if (status === 403) return failed('answered 403: the headers it was sent do not give access.', 'forbidden');
  if (status === 405 || status === 501) {
    return failed(`answered ${status}: it does not take POST, so it is not an MCP endpoint.`, 'wrong path');
  }
  if (status === 429) return failed('answered 429: it receives too many requests. Try again later.');
  if (status >= 500) return failed(`answered ${status}: the MCP server failed or is down.`, null, status !== 503);
  return failed(`answered ${status}, which is not an MCP answer.`);
}

/** A 404 in which the endpoint reports, as a JSON-RPC error without an id, that it no longer exists. */
export function endpointGone(url: URL, reason: string): UpstreamError {
  const where = `${url.origin}${url.pathname}`;
  return new UpstreamError(
    `${where} answered 404: ${visible(reason.replace(/[.\s]+$/, ''), 200)}. What was there is gone or has another address now.`,
  );
}

function triedPath(url: URL): string {
  return url.pathname.endsWith('/mcp') ? '/ or /sse' : '/mcp';
}

/** Error for a 2xx answer that is not MCP. */
export function notMcp(url: URL, contentType: string, text: string | null): UpstreamError {
  const where = `${url.origin}${url.pathname}`;
  if (contentType.includes('html')) {
    const message = `${where} is a web page, not an MCP endpoint: is the path right? MCP servers often answer at ${triedPath(url)}.`;
    return new UpstreamError(message, undefined, false, 'wrong path');
  }
  if (!text?.trim()) {
    return unreadable(`${where} answered with nothing: is it an MCP endpoint, and is the path right?`);
  }
  try {
    JSON.parse(text);
  } catch {
    return unreadable(
      `${where} answered with text that is no whole JSON: is it an MCP endpoint, or does a proxy cut its answers?`,
    );
  }
  const message = `${where} answered with JSON that is not JSON-RPC: it is an API, but not an MCP endpoint. Is the path right?`;
  return new UpstreamError(message, undefined, true, 'wrong path');
}

/** Error for a malformed answer: the request may have run, and repeating it would hardly help. */
export function unreadable(message: string): UpstreamError {
  return new UpstreamError(message, undefined, true, 'unreadable');
}
