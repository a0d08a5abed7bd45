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

  constructor(what: 'mcpUrl' | 'transport') {
    super(`The connection exists with another ${what}: delete it and create it anew, or use another id.`);
  }
}

/** The upstream answered a tool call with a JSON-RPC error. */
export class ToolError extends DomainError {
  readonly kind = 'unprocessable';
  readonly code = 'tool_error';
}

/** The MCP endpoint is stateless. */
export class McpMethodNotAllowedError extends DomainError {
  readonly kind = 'method_not_allowed';
  readonly code = 'method_not_allowed';

  constructor() {
    super('This MCP endpoint is stateless: send POST');
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
