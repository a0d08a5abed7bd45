import { errorOf, TooManyError } from '../../platform/errors/domain-error.js';
import { Serializable } from '../../platform/internal-http/error-codec.js';
import { CallFailure } from '../protocol/failures.js';
import { rpcCode } from '../protocol/protocol.js';

/** A rejection that becomes a JSON-RPC error with the request's id and the HTTP status of the error's kind. */
export abstract class McpRefusal extends CallFailure {}

/** The request would return to this service indefinitely. */
export class McpLoopError extends McpRefusal {
  readonly failure = 'passed before';
}

/** Only sessions of this service have a GET stream, or can be deleted. */
export class McpMethodNotAllowedError extends errorOf('method_not_allowed') {
  override readonly headers = { Allow: 'POST' };

  constructor() {
    super('Send POST: there is no session of this endpoint in the request, so nothing to stream or to end');
  }
}

/**
 * The session has expired, was closed or belongs to another caller; its client must send `initialize` again (MCP
 * 2025-11-25, session management). Or the stream of a `Last-Event-ID` belongs to another session, or its events are no
 * longer stored.
 */
@Serializable()
export class McpSessionNotFoundError extends errorOf('not_found') {
  constructor(message = 'Session not found: send initialize without a session id') {
    super(message);
  }
}

/**
 * {@link McpSessionNotFoundError} for a request with `Mcp-Session-Id`: some clients open a new session only on -32001,
 * the code that servers of the official SDK send.
 */
export class McpSessionLostError extends McpSessionNotFoundError {
  override readonly rpcCode = rpcCode.sessionLost;
}

export function tooManyOpen(noun: 'requests' | 'streams'): TooManyError {
  return new TooManyError(`Too many ${noun} of this account are open: wait until some have ended`, 1);
}
