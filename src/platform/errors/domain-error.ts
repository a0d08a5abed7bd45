import type { HoldingGrant } from '../http/revocation-registry.js';

/** The HTTP status of each kind of error. The contract names no statuses (Spec 7). */
export const statusOf = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  too_slow: 408,
  conflict: 409,
  gone: 410,
  too_large: 413,
  unsupported: 415,
  unprocessable: 422,
  rate_limited: 429,
  internal: 500,
  upstream: 502,
  unavailable: 503,
  timeout: 504,
  storage_full: 507,
};

/** Why a request failed. */
export type ErrorKind = keyof typeof statusOf;

/** The caller that an error is written for: the parts of it that say what it may read. */
export interface ErrorReader {
  accountId: string;
  /** Id of its credential. */
  keyId: string;
  grant?: HoldingGrant;
  /** Rights of the credential; null: all of the account. */
  scopes: readonly { level: string; namespace: string | null }[] | null;
  /** Counts what ended the logins of the account: links carry it. */
  loginsEpoch?: number;
}

/**
 * An error with a message for the caller. `detail` goes to the log only.
 *
 * Domain code throws these and nothing else; the error filter turns them into a status and one of the bodies.
 */
export abstract class DomainError extends Error {
  /** Decides the status, in {@link statusOf}. */
  abstract readonly kind: ErrorKind;
  /** The word clients match on (`not_found`, `validation_error`, …). */
  abstract readonly code: string;
  /** Text of the one-field body where the contract fixes it, the message then being the hint; the message otherwise. */
  readonly registryText?: string;
  /** The whole body where the contract fixes another one for this failure alone; that of the route's family otherwise. */
  readonly ownBody?: object;
  /** Set when the same request may work after this long: sent as `Retry-After`. */
  readonly retryAfterSeconds?: number;
  /** Advice for the header `Slipway-Hint` where the contract fixes the text. Elsewhere the message contains the advice. */
  readonly advice?: string;
  /** Of a page: the address that the browser is led to instead. */
  readonly location?: string;
  /** Headers of the response. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Code of the JSON-RPC body where clients know one; otherwise the status decides. */
  readonly rpcCode?: number;
  /** The field of a page's form that the error concerns, by default the one whose name the message begins with. */
  field?: string;
  /** Of a 401: further parameters of `WWW-Authenticate`, such as `scope="mcp"`. */
  readonly challenge?: string;
  /** True with `retryAfterSeconds` when clients must still not repeat the request by themselves. */
  readonly noRetry?: boolean;

  constructor(
    message: string,
    readonly detail?: unknown,
  ) {
    super(message);
    this.name = new.target.name;
  }

  /** Returns this error as one that concerns a field of the form of a page. */
  atField(field: string): this {
    this.field = field;
    return this;
  }

  /** Returns this error with what only some callers can read, if this one can, and otherwise without. */
  forReader(_reader: ErrorReader): DomainError {
    return this;
  }
}

/** Base class of the errors of one kind; `code` is the word that clients match on. */
export function errorOf<Kind extends ErrorKind>(kind: Kind, code: string = kind) {
  abstract class OfKind extends DomainError {
    readonly kind = kind;
    readonly code = code;
  }
  return OfKind;
}

/** The input does not have the promised form; the message says which part and what was expected. */
export class InvalidInputError extends errorOf('invalid', 'validation_error') {}

/** The thing does not exist, or the caller cannot see it. */
export class NotFoundError extends errorOf('not_found') {}

/** The caller may not do this. */
export class ForbiddenError extends errorOf('forbidden') {}

/** The request contradicts the state of the thing; repeating it does not help. */
export class ConflictError extends errorOf('conflict') {}

/** No route for this path and method. */
export function routeNotFound(method: string, path: string): NotFoundError {
  return new NotFoundError(`Nothing answers ${method} ${path}. GET /docs lists every operation.`);
}

/** The path has routes, none of them for this method. `Allow` names theirs (RFC 9110 section 15.5.6). */
export class MethodNotAllowedError extends errorOf('method_not_allowed') {
  override readonly headers: { Allow: string };

  constructor(method: string, allowed: readonly string[]) {
    const served = allowed.filter((verb) => verb !== 'HEAD' && verb !== 'OPTIONS');
    super(`${method} is not allowed: this path takes ${served.join(', ')}.`);
    this.headers = { Allow: allowed.join(', ') };
  }
}

/** The request brings more bytes than are accepted. */
export class TooLargeError extends errorOf('too_large', 'validation_error') {}

/** The media type or content coding of the request is not taken (RFC 9110 section 15.5.16). */
export class UnsupportedMediaError extends errorOf('unsupported', 'validation_error') {
  override readonly headers: Record<string, string>;

  /** @param codings the content codings that are taken, of a request in another one */
  constructor(message: string, codings?: string) {
    super(message);
    this.headers = codings === undefined ? {} : { 'accept-encoding': codings };
  }
}

/** The request did not arrive in its time. */
export class TooSlowError extends errorOf('too_slow') {
  constructor(msMax: number) {
    super(`The request did not arrive within ${msMax / 1_000} s.`);
  }
}

/** The caller, or all callers together, have as many as they may. */
export class TooManyError extends errorOf('rate_limited') {
  constructor(
    message: string,
    override readonly retryAfterSeconds: number,
  ) {
    super(message);
  }
}

/** The service cannot do this right now. */
export class UnavailableError extends errorOf('unavailable') {
  constructor(
    message: string,
    override readonly retryAfterSeconds: number,
    detail?: unknown,
  ) {
    super(message, detail);
  }
}
