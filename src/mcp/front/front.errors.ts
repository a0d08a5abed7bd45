import { DomainError } from '../../platform/errors/domain-error.js';

/** Why a request goes to no upstream: answered as a JSON-RPC error under the request's own id, with the kind's status. */
export abstract class FrontRefusal extends DomainError {
  abstract readonly rpcCode: number;
  /** The `data` of the JSON-RPC error. */
  readonly data?: unknown;
}

/** Our MCP endpoints are stateless. */
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
