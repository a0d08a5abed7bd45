import { DomainError } from '../../platform/errors/domain-error.js';
import { Serializable } from '../../platform/internal-http/error-codec.js';
import { visible } from '../../platform/text/quoted.js';

const OUTCOME_UNKNOWN = ' Whether the call was carried out is unknown; it was not repeated.';

/**
 * What can go wrong between us and an upstream. Each message is a sentence for the person who made the connection: what
 * happened, and what to do.
 */
export abstract class UpstreamFailure extends DomainError {
  /** False when the request certainly did not run, so that repeating it is safe. */
  readonly outcomeUnknown: boolean = false;

  /** Says so, where the request was a call that may have acted. */
  ofCall(): this {
    if (this.outcomeUnknown) this.message += OUTCOME_UNKNOWN;
    return this;
  }

  /** What is wrong with the upstream, without what that means for the call. */
  get aboutUpstream(): string {
    return this.message.replace(OUTCOME_UNKNOWN, '');
  }
}

/** The upstream is unreachable, refuses us, or does not speak MCP. */
@Serializable('outcomeUnknown', 'hint', 'status')
export class UpstreamError extends UpstreamFailure {
  readonly kind = 'upstream';
  readonly code = 'upstream_error';

  constructor(
    message: string,
    detail?: unknown,
    override readonly outcomeUnknown = false,
    /** `wrong path`: something answers there, but no MCP server. `forbidden`: it answered 403 and named no way in. `blocked`: its address is closed to us. `not our MCP`: it speaks none of our revisions. `loop`: it is this service again, or leads back to it. `unreadable`: it answered, and what cannot be read may come again. */
    readonly hint: 'wrong path' | 'forbidden' | 'blocked' | 'not our MCP' | 'loop' | 'unreadable' | null = null,
    /** The HTTP status that was no MCP answer; null when that is not what went wrong. */
    readonly status: number | null = null,
  ) {
    super(message, detail);
  }
}

/** The upstream answered 401, or 403 and named the scopes it wants. */
@Serializable('challenges', 'wantsMore', 'setupUrl')
export class UpstreamAuthRequiredError extends UpstreamFailure {
  readonly kind = 'conflict';
  readonly code = 'auth_required';

  /**
   * @param challenges the values of its `WWW-Authenticate` headers, 8 KB at most: where its authorization server is
   * @param wantsMore it knows who we are, and what we may do is not enough
   * @param setupUrl the page of ours where a person gives the authorization, if there is one
   */
  constructor(
    hasHeaders: boolean,
    readonly challenges: string[] = [],
    readonly wantsMore = false,
    readonly setupUrl: string | undefined = undefined,
  ) {
    super(wantsMore ? INSUFFICIENT_SCOPE : hasHeaders ? HEADERS_REFUSED : NO_HEADERS);
  }
}

const INSUFFICIENT_SCOPE =
  'The MCP server answered 403: the authorization of this connection does not reach far enough (insufficient_scope). ' +
  'Authorize it with the scopes it asks for, or PUT the connection again with headers that have them.';
const HEADERS_REFUSED =
  'The MCP server answered 401: it does not accept the headers of this connection. ' +
  'PUT the connection again with headers it accepts.';
const NO_HEADERS =
  'The MCP server answered 401: it wants authorization. ' +
  'PUT the connection again with headers, for example {"headers": {"Authorization": "Bearer <token>"}}.';

/** The upstream asks for input in the middle of a call, and whoever made the call cannot be asked. */
@Serializable()
export class InputNeededError extends UpstreamFailure {
  readonly kind = 'conflict';
  readonly code = 'input_required';

  constructor() {
    super(
      'The MCP server asks its user for input before it goes on, and this way of calling cannot pass the question on. ' +
        "Call it with an MCP client that supports elicitation, at the connection's MCP endpoint.",
    );
  }
}

/** That the upstream took too long, in a sentence. */
export function tooSlow({ host }: URL, timeoutMs: number): string {
  const seconds = Number((timeoutMs / 1000).toPrecision(2));
  return `${host} did not answer completely within ${seconds} s: it is too slow or overloaded.`;
}

/** The upstream did not answer in time. */
@Serializable('outcomeUnknown')
export class UpstreamTimeoutError extends UpstreamFailure {
  readonly kind = 'timeout';
  readonly code = 'timeout';

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

/** No local server is paired with an uplink connection, or its tunnel ended. */
@Serializable('outcomeUnknown')
export class UplinkDisconnectedError extends UpstreamFailure {
  readonly kind = 'unavailable';
  readonly code = 'uplink_disconnected';

  /** @param outcomeUnknown the tunnel ended while the request was under way */
  constructor(override readonly outcomeUnknown = false) {
    super(
      outcomeUnknown
        ? `The tunnel to the local server ended before the answer came. ${PAIR}`
        : `No local server is paired with this connection. ${PAIR}`,
    );
  }
}

/** The upstream has all the work it may have at once; the request was not sent. */
@Serializable()
export class UpstreamBusyError extends UpstreamFailure {
  readonly kind = 'rate_limited';
  readonly code = 'rate_limited';
  override readonly retryAfterSeconds = 1;
}

/** The local server behind an uplink is busy. */
@Serializable()
export class UplinkBusyError extends UpstreamBusyError {}

/** The upstream is code that this service would run, and it does not: hosting is off, or not for such code. */
@Serializable()
export class NotHostedError extends UpstreamFailure {
  readonly kind = 'conflict';
  readonly code = 'not_runnable';
}

/** The caller left before the answer came. Nobody reads this. */
@Serializable()
export class CallerLeftError extends UpstreamFailure {
  readonly kind = 'timeout';
  readonly code = 'timeout';
  override readonly outcomeUnknown = true;

  constructor() {
    super('The caller left before the answer came.');
  }
}

const TLS_CODES =
  /^(ERR_TLS_|ERR_SSL_|CERT_|DEPTH_ZERO_SELF_SIGNED_CERT$|SELF_SIGNED_CERT_IN_CHAIN$|UNABLE_TO_|EPROTO$)/;

/** A failure of the socket, in a sentence. `written`: the request may have reached the upstream. */
export function fromSocketError(error: unknown, url: URL, written: boolean): UpstreamFailure {
  if (error instanceof UpstreamFailure) return error;
  if (error instanceof DomainError) return new UpstreamError(error.message, error.detail, false, 'blocked');
  const { code = '', message } = error as { code?: string; message: string };
  const host = url.hostname;
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN' || code === 'EAI_NODATA') {
    return new UpstreamError(`The host "${host}" has no address in DNS: is its name spelled right?`, error);
  }
  if (code === 'ECONNREFUSED') {
    return new UpstreamError(`Nothing listens on ${url.host}: is the server running, and is the port right?`, error);
  }
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'ETIMEDOUT' || code === 'EHOSTUNREACH' || code === 'ENETUNREACH') {
    return new UpstreamError(
      `The host "${host}" cannot be reached: it does not answer on its address.`,
      error,
      written,
    );
  }
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER') {
    return new UpstreamError(`${url.host} does not speak TLS: does its URL start with http:// instead?`, error);
  }
  if (TLS_CODES.test(code)) {
    return new UpstreamError(
      `The TLS connection to "${host}" failed (${code}): its certificate must be valid for this host.`,
      error,
      written,
    );
  }
  if (code.startsWith('HPE_')) {
    return new UpstreamError(`${url.host} does not speak HTTP: is the port right?`, error);
  }
  return new UpstreamError(
    `The connection to ${url.host} broke before the answer was complete: the server or a proxy closed it.`,
    message,
    written,
  );
}

/** An HTTP status that is no MCP answer, in a sentence. */
export function fromHttpStatus(status: number, url: URL, location: string | undefined): UpstreamError {
  const where = `${url.origin}${url.pathname}`;
  if (status >= 300 && status < 400) {
    return new UpstreamError(
      location === undefined
        ? `${where} answered ${status}, a redirect to nowhere.`
        : `${where} redirects to ${location}: connect to that address instead.`,
      undefined,
      false,
      'wrong path',
      status,
    );
  }
  if (status === 404) {
    return new UpstreamError(
      `${where} answered 404: is the path right? MCP servers often answer at ${triedPath(url)}.`,
      undefined,
      false,
      'wrong path',
      status,
    );
  }
  if (status === 403) {
    const message = `${where} answered 403: the headers it was sent do not give access.`;
    return new UpstreamError(message, undefined, false, 'forbidden', status);
  }
  if (status === 405 || status === 501) {
    const message = `${where} answered ${status}: it does not take POST, so it is no MCP endpoint.`;
    return new UpstreamError(message, undefined, false, 'wrong path', status);
  }
  if (status === 429) {
    const message = `${where} answered 429: it receives too many requests. Try again later.`;
    return new UpstreamError(message, undefined, false, null, status);
  }
  if (status >= 500) {
    return new UpstreamError(
      `${where} answered ${status}: the MCP server failed or is down.`,
      undefined,
      status !== 503,
      null,
      status,
    );
  }
  return new UpstreamError(`${where} answered ${status}, which is no MCP answer.`, undefined, false, null, status);
}

/** A 404 in which the endpoint itself says, as a JSON-RPC error to no request, that nothing is behind it. */
export function endpointGone(url: URL, reason: string): UpstreamError {
  const where = `${url.origin}${url.pathname}`;
  return new UpstreamError(
    `${where} answered 404: ${visible(reason.replace(/[.\s]+$/, ''), 200)}. What was there is gone or has another address now.`,
  );
}

function triedPath(url: URL): string {
  return url.pathname.endsWith('/mcp') ? '/ or /sse' : '/mcp';
}

/** A 2xx answer that is not MCP, in a sentence. */
export function notMcp(url: URL, contentType: string, text: string | null): UpstreamError {
  const where = `${url.origin}${url.pathname}`;
  if (contentType.includes('html')) {
    return new UpstreamError(
      `${where} is a web page, not an MCP endpoint: is the path right? MCP servers often answer at ${triedPath(url)}.`,
      undefined,
      false,
      'wrong path',
    );
  }
  if (!text?.trim()) {
    return unreadable(`${where} answered with nothing: is it an MCP endpoint, and is the path right?`);
  }
  if (isJson(text)) {
    const message = `${where} answered with JSON that is no JSON-RPC: it is an API, but no MCP endpoint. Is the path right?`;
    return new UpstreamError(message, undefined, true, 'wrong path');
  }
  return unreadable(
    `${where} answered with text that is no whole JSON: is it an MCP endpoint, or does a proxy cut its answers?`,
  );
}

/** An answer came, so what was asked may have been done; asked again, the upstream would hardly say it better. */
export function unreadable(message: string): UpstreamError {
  return new UpstreamError(message, undefined, true, 'unreadable');
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
