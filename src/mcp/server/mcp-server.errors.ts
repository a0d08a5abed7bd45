import { DomainError } from '../../platform/errors/domain-error.js';
import { rpcCode } from '../protocol/protocol.js';

/** Why a request goes to no upstream: answered as a JSON-RPC error under the request's own id, with the kind's status. */
export abstract class McpRefusal extends DomainError {
  abstract readonly rpcCode: number;
  /** The `data` of the JSON-RPC error. */
  readonly data?: unknown;
}

/** A request that would come back here, and so never end. */
export class McpLoopError extends McpRefusal {
  readonly kind = 'invalid';
  readonly code = 'loop';
  readonly rpcCode = rpcCode.loop;
}

/** Only sessions of ours have a stream to open, or can be ended. */
export class McpMethodNotAllowedError extends DomainError {
  readonly kind = 'method_not_allowed';
  readonly code = 'method_not_allowed';

  constructor() {
    super('Send POST: there is no session of this endpoint in the request, so nothing to stream or to end');
  }
}

/** The session is over, or was never this caller's; its client initializes anew (MCP 2025-11-25, session management). */
export class McpSessionNotFoundError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'not_found';

  constructor() {
    super('Session not found: send initialize without a session id');
  }
}

/** A session has one stream of its own. */
export class McpStreamOpenError extends DomainError {
  readonly kind = 'conflict';
  readonly code = 'conflict';

  constructor() {
    super('The session has its stream already: close it first');
  }
}

/** The account has as much under way as it may. */
export class McpTooManyError extends DomainError {
  readonly kind = 'rate_limited';
  readonly code = 'rate_limited';
  override readonly retryAfterSeconds = 1;

  /** @param what in the plural */
  constructor(what: 'requests' | 'streams') {
    super(`Too many ${what} of this account are under way: wait until some are over`);
  }
}

/** A web page of another origin must not reach a local service through its visitor's browser (DNS rebinding). */
export class OriginRefusedError extends DomainError {
  readonly kind = 'forbidden';
  readonly code = 'forbidden';

  constructor() {
    super('The Origin header names a web site that is not this service');
  }
}
