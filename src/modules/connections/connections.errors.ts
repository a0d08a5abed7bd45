import { UpstreamFailure } from '../../mcp/mcp-errors.js';
import { DomainError } from '../../platform/errors/domain-error.js';

/**
 * No such namespace, connection or tool, or not the caller's: the two look alike, byte for byte. Spec 7 fixes code and
 * message.
 */
export class ResourceNotFoundError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'not_found';

  constructor(detail?: unknown) {
    super('Resource not found', detail);
  }
}

/** A connection keeps its target for life. */
export class ConnectionTargetError extends DomainError {
  readonly kind = 'conflict';
  readonly code = 'conflict';

  constructor(what: 'mcpUrl' | 'transport' | 'server' | 'source') {
    super(`The connection exists with another ${what}: delete it and create it anew, or use another id.`);
  }
}

/** A connection with a module of its own runs once hosting is there. */
export class SourceNotRunnableError extends UpstreamFailure {
  readonly kind = 'conflict';
  readonly code = 'not_runnable';

  constructor() {
    super('The module of this connection is stored, but hosting is not enabled on this service, so it does not run.');
  }
}

/** The upstream answered a tool call with a JSON-RPC error. */
export class ToolError extends DomainError {
  readonly kind = 'unprocessable';
  readonly code = 'tool_error';
}
