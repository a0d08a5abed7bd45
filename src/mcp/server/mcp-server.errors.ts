import { DomainError, errorOf } from '../../platform/errors/domain-error.js';
import { Serializable } from '../../platform/internal-http/error-codec.js';
import { rpcCode } from '../protocol/protocol.js';

/**
 * Reason not to call the upstream, answered as a JSON-RPC error with the request's id and the HTTP status of the
 * error's kind.
 */
export abstract class McpRefusal extends DomainError {
  abstract readonly rpcCode: number;
  /** The `data` of the JSON-RPC error. */
  readonly data?: unknown;
}

/** The request would return to this service and never end. */
export class McpLoopError extends McpRefusal {
  readonly kind = 'invalid';
  readonly code = 'loop';
  readonly rpcCode = rpcCode.loop;
}

/** Only sessions of this service have a GET stream, or can be deleted. */
export class McpMethodNotAllowedError extends errorOf('method_not_allowed') {
  override readonly headers = { Allow: 'POST' };

  constructor() {
    super('Send POST: there is no session of this endpoint in the request, so nothing to stream or to end');
  }
}

/**
 * The session has ended or belongs to another caller; its client must send `initialize` again (MCP 2025-11-25, session
 * management).
 */
@Serializable()
export class McpSessionNotFoundError extends errorOf('not_found') {
  constructor() {
    super('Session not found: send initialize without a session id');
  }
}

/** The stream of a `Last-Event-ID` belongs to another session, or its events are no longer stored. */
@Serializable()
export class McpStreamGoneError extends errorOf('not_found') {
  constructor() {
    super('The stream of this Last-Event-ID cannot be resumed: open a new one without it');
  }
}

/** The session has an open GET stream already. */
export class McpStreamOpenError extends errorOf('conflict') {
  constructor() {
    super('The session has its stream already: close it first');
  }
}

/** The account has reached its limit of concurrent requests or streams. */
export class McpTooManyError extends errorOf('rate_limited') {
  override readonly retryAfterSeconds = 1;

  /** @param what in the plural */
  constructor(what: 'requests' | 'streams') {
    super(`Too many ${what} of this account are open: wait until some have ended`);
  }
}

/** A web page of another origin must not reach a local service through its visitor's browser (DNS rebinding). */
export class OriginRefusedError extends errorOf('forbidden') {
  constructor() {
    super('The Origin header names a web site that is not this service');
  }
}
