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

/** Kinds of reasons why a request fails. */
export type ErrorKind = keyof typeof statusOf;

/** The reader of an error, which decides the visible details. */
export interface ErrorReader {
  accountId: string;
  keyId: string;
  grant?: HoldingGrant;
  /** Rights of the credential; null: all rights of the account. */
  scopes: readonly { level: string; namespace: string | null }[] | null;
  /** Incremented when the client authorizations of the account are revoked; links contain it. */
  loginsEpoch?: number;
}

/**
 * An error with a message for the caller. `detail` goes only to the log.
 *
 * Domain code throws only these; the error filter turns them into a status and one of the bodies.
 */
export abstract class DomainError extends Error {
  /** Kind of the error, which decides the status ({@link statusOf}). */
  abstract readonly kind: ErrorKind;
  /** The code that clients match on (`not_found`, `validation_error`, …). */
  abstract readonly code: string;
  /**
   * Text of the one-field body if the contract fixes it: the message is then the hint. Otherwise the body has the
   * message.
   */
  readonly registryText?: string;
  /** The whole body if the contract fixes another one for this failure alone; otherwise that of the route's family. */
  readonly ownBody?: object;
  /** Set when the same request can succeed after this long: sent as `Retry-After`. */
  readonly retryAfterSeconds?: number;
  /** Advice for the header `Slipway-Hint` if the contract fixes the text. Otherwise the message contains the advice. */
  readonly advice?: string;
  /** For a page: the address to which the browser is redirected instead. */
  readonly location?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Code of the JSON-RPC body if clients know one; otherwise the status decides. */
  readonly rpcCode?: number;
  /** The field of a page's form that the error concerns, by default the one whose name starts the message. */
  field?: string;
  /** For a 401: further parameters of `WWW-Authenticate`, such as `scope="mcp"`. */
  readonly challenge?: string;
  /** True with `retryAfterSeconds` when clients must nevertheless not repeat the request automatically. */
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

  /** Returns this error with the parts that only some callers can read, if this caller can; otherwise without them. */
  forReader(_reader: ErrorReader): DomainError {
    return this;
  }
}

/** Returns the base class of the errors of one kind; clients match on `code`. */
export function errorOf<Kind extends ErrorKind>(kind: Kind, code: string = kind) {
  abstract class OfKind extends DomainError {
    readonly kind = kind;
    readonly code = code;
  }
  return OfKind;
}

/** The input does not have the promised form; the message names the invalid part and the expected form. */
export class InvalidInputError extends errorOf('invalid', 'validation_error') {}

/** The target does not exist or is hidden from the caller. */
export class NotFoundError extends errorOf('not_found') {}

/** The caller is not allowed to do this. */
export class ForbiddenError extends errorOf('forbidden') {}

/** The request contradicts the state of the target; repeating it does not help. */
export class ConflictError extends errorOf('conflict') {}

export function routeNotFound(method: string, path: string): NotFoundError {
  return new NotFoundError(`Nothing answers ${method} ${path}. GET /docs lists every operation.`);
}

/** The path has no route for this method. `Allow` names the methods of its routes (RFC 9110 section 15.5.6). */
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

/** The media type or content coding of the request is not supported (RFC 9110 section 15.5.16). */
export class UnsupportedMediaError extends errorOf('unsupported', 'validation_error') {
  override readonly headers: Record<string, string>;

  /** @param codings the supported content codings, if the request uses another one */
  constructor(message: string, codings?: string) {
    super(message);
    this.headers = codings === undefined ? {} : { 'accept-encoding': codings };
  }
}

export class TooSlowError extends errorOf('too_slow') {
  constructor(msMax: number) {
    super(`The request did not arrive within ${msMax / 1_000} s.`);
  }
}

export class TooManyError extends errorOf('rate_limited') {
  constructor(
    message: string,
    override readonly retryAfterSeconds: number,
  ) {
    super(message);
  }
}

export class UnavailableError extends errorOf('unavailable') {
  constructor(
    message: string,
    override readonly retryAfterSeconds: number,
    detail?: unknown,
  ) {
    super(message, detail);
  }
}
