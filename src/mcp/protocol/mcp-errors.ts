import { DomainError } from '../../platform/errors/domain-error.js';
import { Serializable } from '../../platform/internal-http/error-codec.js';
import { isObject } from '../../platform/text/json.js';
import { quote, visible } from '../../platform/text/quoted.js';
import { CallFailure, type FailureName, failures } from './failures.js';

const OUTCOME_UNKNOWN = ' Whether the call was carried out is unknown; it was not repeated.';

/** A failure of an upstream. The message is for the creator of the connection: the problem and a remedy. */
export abstract class UpstreamFailure extends CallFailure {
  /** False when the request certainly did not run and can safely be repeated. */
  abstract readonly outcomeUnknown: boolean;

  ofCall(): this {
    if (this.outcomeUnknown) this.message = this.aboutTarget + OUTCOME_UNKNOWN;
    return this;
  }

  override get aboutTarget(): string {
    return this.message.replace(OUTCOME_UNKNOWN, '');
  }
}

function upstreamFailure(failure: FailureName) {
  abstract class OfRow extends UpstreamFailure {
    readonly failure: FailureName = failure;
    readonly outcomeUnknown: boolean = failures[failure].mayHaveRun;
  }
  return OfRow;
}

/** Marks the error of a tool call; errors of other methods are unchanged. */
export function asCallError<E>(error: E, { method }: { method: string }): E {
  return error instanceof UpstreamFailure && method === 'tools/call' ? error.ofCall() : error;
}

interface UpstreamErrorOptions {
  detail?: unknown;
  /** True if the request might have run; by default, as in the row. */
  outcomeUnknown?: boolean;
  /** Row of the failure; by default, that of the status, or `unreachable`. */
  failure?: FailureName;
  /** Null for failures other than a response that is not MCP. */
  status?: number | null;
  retryAfterSeconds?: number;
}

/** The upstream is unreachable, rejects Slipway, or does not speak MCP. */
@Serializable('outcomeUnknown', 'failure', 'status', 'retryAfterSeconds', 'noRetry')
export class UpstreamError extends UpstreamFailure {
  readonly failure: FailureName;
  readonly outcomeUnknown: boolean;

  /** A person or agent decides when to try again: published clients would automatically repeat a tool call. */
  override readonly noRetry = true;

  readonly status: number | null;
  override readonly retryAfterSeconds: number | undefined;

  constructor(
    message: string,
    { detail, outcomeUnknown, failure, status = null, retryAfterSeconds }: UpstreamErrorOptions = {},
  ) {
    super(message, detail);
    this.status = status;
    this.retryAfterSeconds = retryAfterSeconds;
    const ofStatus = status === 429 ? 'rate limited' : 'server error';
    this.failure = failure ?? (status === null ? 'unreachable' : ofStatus);
    this.outcomeUnknown = outcomeUnknown ?? this.row.mayHaveRun;
  }
}

@Serializable('challenges', 'failure', 'data')
export class UpstreamAuthRequiredError extends upstreamFailure('unauthorized') {
  override readonly data: { setupUrl: string } | undefined;

  /**
   * @param challenges values of its `WWW-Authenticate` headers, at most 8 KB
   * @param setupUrl Slipway's page where a user authorizes, if there is one
   */
  constructor(
    message: string,
    readonly challenges: string[] = [],
    override readonly failure: FailureName = 'unauthorized',
    setupUrl?: string,
  ) {
    super(message);
    this.data = setupUrl === undefined ? undefined : { setupUrl };
  }

  get setupUrl(): string | undefined {
    return this.data?.setupUrl;
  }

  /** Returns this error with a setup page that opens only for users signed in as the caller; unchanged without a setup page. */
  forPerson(): Promise<UpstreamAuthRequiredError> {
    return Promise.resolve(this);
  }
}

/** Stands for the setup page in a message, if its address is not known. */
export const SETUP_PAGE = 'setupUrl of the connection';

const PUT_HEADERS =
  'PUT the connection again with headers, for example {"headers": {"Authorization": "Bearer <token>"}}.';

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

/**
 * Returns a message that also lists the pages of URL elicitations, for a caller that cannot receive requests; unchanged without
 * any.
 *
 * @param elicitations `elicitations` of error -32042, or `inputRequests`
 */
export function withPages(message: string, elicitations: unknown): string {
  const urls = Object.values(elicitations ?? {}).flatMap((request: unknown) => {
    const { url } = (isObject(request) && isObject(request.params) ? request.params : (request ?? {})) as {
      url?: unknown;
    };
    return typeof url === 'string' && /^https?:\/\/[^\s\p{C}]{1,2000}$/iu.test(url) && !message.includes(url)
      ? [url]
      : [];
  });
  if (urls.length === 0) return message;
  return `${message}${message.endsWith('.') ? '' : '.'} Open ${urls.join(' and ')} , then call again.`;
}

/** The caller cannot answer server requests. */
@Serializable()
export class InputNeededError extends upstreamFailure('input needed') {
  /** @param requests `inputRequests` of the result */
  constructor(requests?: unknown) {
    const question = 'The MCP server asks its user for input before it continues';
    const led = withPages(question, requests);
    super(
      led === question
        ? `${question}, and this way of calling cannot pass the question on. ` +
            "Call it with an MCP client that supports elicitation, at the connection's MCP endpoint."
        : led,
    );
  }
}

export interface ExpiredTimeout {
  timeoutMs: number;
  /** True if messages restart the timeout. */
  isExtended?: boolean;
  /** True if the call has reached its maximum of an hour. */
  isOver?: boolean;
  isOpening?: boolean;
}

export function tooLate(
  { host }: { host: string },
  { timeoutMs, isExtended, isOver, isOpening }: ExpiredTimeout,
): string {
  const seconds = Number((timeoutMs / 1000).toPrecision(2));
  if (isOver) return `${host} did not answer completely within an hour, the longest time of a call.`;
  if (isOpening) {
    const late = `${host} did not open a session within ${seconds} s: it is too slow, overloaded or still starting.`;
    const isSetting = timeoutMs < PROGRAM_START_MS;
    return isSetting ? `${late} The operator of this service sets this time with UPSTREAM_CONNECT_TIMEOUT_MS.` : late;
  }
  if (isExtended) {
    return `${host} sent nothing for ${seconds} s: it is too slow or overloaded, or the request takes longer and reports no progress.`;
  }
  return `${host} did not answer completely within ${seconds} s: it is too slow or overloaded, or the request takes longer.`;
}

@Serializable('outcomeUnknown')
export class UpstreamTimeoutError extends upstreamFailure('timeout') {
  constructor(
    message: string,
    override readonly outcomeUnknown: boolean,
    detail?: unknown,
  ) {
    super(message, detail);
  }
}

const PAIR = 'The page and the status of the connection have the command that pairs one.';

/** No local server is paired, or its tunnel has closed. */
@Serializable('outcomeUnknown')
export class UplinkDisconnectedError extends upstreamFailure('no tunnel') {
  /** @param outcomeUnknown true when the tunnel closed during the request @param reason as a message; null if unknown */
  constructor(
    override readonly outcomeUnknown = false,
    reason: string | null = null,
  ) {
    super(
      outcomeUnknown
        ? `The tunnel to the local server closed before the response arrived. ${reason === null ? '' : `${reason} `}${PAIR}`
        : `No local server is paired with this connection. ${PAIR}`,
    );
  }
}

@Serializable()
export class RestartingError extends upstreamFailure('restarting') {
  constructor() {
    super('The service is restarting, and the MCP server has not answered yet.');
  }
}

/** The request was not sent. */
@Serializable()
export class UpstreamBusyError extends upstreamFailure('busy') {
  override readonly retryAfterSeconds = 1;
}

/** Hosting is off or unavailable for this kind of code. */
@Serializable()
export class NotHostedError extends upstreamFailure('not hosted') {}

/** No process takes the request right now. It was not sent. */
@Serializable('retryAfterSeconds')
export class HostedAwayError extends upstreamFailure('host away') {
  constructor(
    message: string,
    override readonly retryAfterSeconds: number,
    detail?: unknown,
  ) {
    super(message, detail);
  }
}

/** Time limit of the first response of a program, which may have to be downloaded or compiled first. */
export const PROGRAM_START_MS = 10 * 60_000;

/** The request was not sent. */
@Serializable()
export class StartingError extends upstreamFailure('host away') {
  override readonly retryAfterSeconds = 5;

  constructor() {
    super('The server is still starting: try again in a few seconds.');
  }
}

/** The caller disconnected before the response. The message is never sent. */
@Serializable()
export class CallerLeftError extends upstreamFailure('caller left') {
  constructor() {
    super('The caller disconnected before the response arrived.');
  }
}

const TLS_CODES =
  /^(ERR_TLS_|ERR_SSL_|CERT_|DEPTH_ZERO_SELF_SIGNED_CERT$|SELF_SIGNED_CERT_IN_CHAIN$|UNABLE_TO_|EPROTO$)/;

/** Converts an error of a socket. @param written true if the request might have reached the upstream */
export function fromSocketError(error: unknown, url: URL, written: boolean): UpstreamFailure {
  if (error instanceof UpstreamFailure) return error;
  if (error instanceof DomainError) {
    return new UpstreamError(error.message, {
      detail: error.detail,
      outcomeUnknown: false,
      failure: error.kind === 'upstream' ? 'unreachable' : 'blocked',
    });
  }
  const { code = '', message } = error as { code?: string; message: string };
  const { host, hostname } = url;
  const failed = (text: string, outcomeUnknown = false) => new UpstreamError(text, { detail: error, outcomeUnknown });
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
  const broken = `The connection to ${host} broke before the response was complete: the server or a proxy closed it.`;
  return new UpstreamError(broken, { detail: message, outcomeUnknown: written });
}

/** The server's own message in an error; {@link withoutWords} recognizes it. */
const SAID = / The server said: "(?:[^"\\]|\\.)*"\./g;

/** Removes the server's own message, which only the owner of a connection can read. */
export function withoutWords(message: string): string {
  return message.replace(SAID, '');
}

/**
 * @param location of a redirect; the `detail` of the error
 * @param words the server's own message, without secrets; empty without any
 * @param retryAfter its `Retry-After`: seconds or a date
 */
export function fromHttpStatus(
  status: number,
  url: URL,
  location: string | undefined,
  words = '',
  retryAfter?: string,
): UpstreamError {
  const detail = words === '' ? '' : ` The server said: ${quote(words.replace(/\.$/, ''), 200)}.`;
  const where = `${url.origin}${url.pathname}`;
  const failed = (text: string, failure?: FailureName, outcomeUnknown?: boolean) =>
    new UpstreamError(`${where} ${text}${detail}`, { detail: location, outcomeUnknown, failure, status });
  if (status >= 300 && status < 400) {
    return location === undefined
      ? failed(`answered ${status}, a redirect to nowhere.`, 'wrong path')
      : failed(redirected(status, url, location), 'wrong path');
  }
  if (status === 404) {
    return failed(`answered 404: is the path right? MCP servers often answer at ${triedPath(url)}.`, 'wrong path');
  }
  if (status === 403) return failed('answered 403: the headers it was sent do not give access.', 'forbidden');
  if (status === 405 || status === 501) {
    return failed(`answered ${status}: it does not take POST, so it is not an MCP endpoint.`, 'wrong path');
  }
  if ((status === 429 || status === 503) && retryAfter !== undefined) {
    const seconds = Math.ceil(
      /^\s*\d+\s*$/.test(retryAfter) ? +retryAfter : (Date.parse(retryAfter) - Date.now()) / 1000,
    );
    if (Number.isSafeInteger(seconds)) {
      const wait = Math.max(seconds, 1);
      const cause = status === 429 ? 'it receives too many requests' : 'it is down or overloaded';
      const text = `${where} answered ${status}: ${cause}. Try again in ${wait} s.${detail}`;
      return new UpstreamError(text, {
        outcomeUnknown: false,
        failure: status === 429 ? 'told to wait' : 'away for now',
        status,
        retryAfterSeconds: wait,
      });
    }
  }
  if (status === 429) return failed('answered 429: it receives too many requests. Try again later.');
  if (status >= 500) return failed(`answered ${status}: the MCP server failed or is down.`, undefined, status !== 503);
  return failed(`answered ${status}, which is not an MCP answer.`);
}

/** Returns the message for a redirect that is not followed: only 307 and 308 within an origin are, at most three times. */
function redirected(status: number, { origin }: URL, location: string): string {
  const isKept = (status === 307 || status === 308) && location.startsWith(`${origin}/`);
  return isKept
    ? `redirects more than three times, at last to ${location}: fix the redirects of the server, which might form a loop.`
    : `redirects to ${location}: connect to that address instead.`;
}

/** Returns the error for an endpoint that reports, as a JSON-RPC error without an id, that it no longer exists. */
export function endpointGone(url: URL, reason: string): UpstreamError {
  const where = `${url.origin}${url.pathname}`;
  return new UpstreamError(
    `${where} answered 404: ${visible(reason.replace(/[.\s]+$/, ''), 200)}. The endpoint was deleted or has moved.`,
  );
}

function triedPath(url: URL): string {
  return url.pathname.endsWith('/mcp') ? '/ or /sse' : '/mcp';
}

export function notMcp(url: URL, contentType: string, text: string | null): UpstreamError {
  const where = `${url.origin}${url.pathname}`;
  if (contentType.includes('html')) {
    const message = `${where} is a web page, not an MCP endpoint: is the path right? MCP servers often answer at ${triedPath(url)}.`;
    return new UpstreamError(message, { outcomeUnknown: false, failure: 'wrong path' });
  }
  if (!text?.trim()) {
    return unreadable(`${where} answered with nothing: is it an MCP endpoint, and is the path right?`);
  }
  try {
    JSON.parse(text);
  } catch {
    return unreadable(
      `${where} answered with text that is not complete JSON: is it an MCP endpoint, or does a proxy cut its responses?`,
    );
  }
  const message = `${where} answered with JSON that is not JSON-RPC: it is an API, but not an MCP endpoint. Is the path right?`;
  return new UpstreamError(message, { outcomeUnknown: true, failure: 'wrong path' });
}

/**
 * Returns null for messages other than responses.
 *
 * @param where name of the server @param id of the request
 */
export function strayAnswer(where: string, id: number, head: object | null): UpstreamError | null {
  if (head === null || 'method' in head || !('result' in head || 'error' in head)) return null;
  const idText = 'id' in head ? `with the id ${JSON.stringify(head.id).slice(0, 40)}` : 'without an id';
  return unreadable(`${where} answered request ${id} ${idText}: a server must repeat the id of the request.`);
}

/** Returns the error for an unreadable response: the request might have run, and repeating it would hardly help. */
export function unreadable(message: string): UpstreamError {
  return new UpstreamError(message, { failure: 'unreadable' });
}
