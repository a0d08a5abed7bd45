import { DomainError } from '../../../platform/errors/domain-error.js';

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

/** The target of a connection cannot change. */
export class ConnectionTargetError extends DomainError {
  readonly kind = 'conflict';
  readonly code = 'conflict';

  constructor(what: 'mcpUrl' | 'transport' | 'server' | 'source') {
    super(`The connection exists with another ${what}: delete it and create it anew, or use another id.`);
  }
}

/** The upstream answered a tool call with a JSON-RPC error. */
export class ToolError extends DomainError {
  readonly kind = 'unprocessable';
  readonly code = 'tool_error';
}

/** A fault of a module and its place. Lines and columns count from 1. */
export interface SourceDiagnostic {
  path: string;
  line: number;
  column: number;
  message: string;
}

/** The module of a connection does not compile, or throws while it is loaded. The body is the one published clients read. */
export class InvalidSourceError extends DomainError {
  readonly kind = 'invalid';
  readonly code = 'invalid_module';
  override readonly ownBody: object;

  constructor(message: string, diagnostics: SourceDiagnostic[]) {
    super(message);
    this.ownBody = { error: { code: this.code, message, diagnostics } };
  }

  /** The compiled module failed, so the place in its source is unknown. */
  static whileLoading(path: string, { message }: Error): InvalidSourceError {
    return new InvalidSourceError(`The module ${path} cannot be loaded: ${message}`, [
      { path, line: 1, column: 1, message },
    ]);
  }
}
