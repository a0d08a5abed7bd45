import { McpRefusal } from '../../mcp/server/mcp-server.errors.js';
import { UpstreamAuthRequiredError, UpstreamFailure } from '../../mcp/protocol/mcp-errors.js';
import { rpcCode } from '../../mcp/protocol/protocol.js';
import { DomainError } from '../../platform/errors/domain-error.js';

/** The server's current release cannot be called over HTTP, or there is none; the message says which and what to do. */
export class NotRunnableError extends McpRefusal {
  readonly kind = 'conflict';
  readonly code = 'not_runnable';
  readonly rpcCode = rpcCode.notRunnable;
}

/** Values the server wants from each caller were not sent. The text is the one published clients know. */
export class InputRequiredError extends McpRefusal {
  readonly kind = 'conflict';
  readonly code = 'input_required';
  readonly rpcCode = rpcCode.inputRequired;

  /** @param data `http`: every value the server takes, by where it is sent; `missing`: the names of those that lack */
  constructor(override readonly data: { http: object; missing: { headers: string[]; query: string[] } }) {
    super('Input required');
  }
}

/** Values were sent that are not of the kind the server wants. */
export class InputInvalidError extends McpRefusal {
  readonly kind = 'invalid';
  readonly code = 'validation_error';
  readonly rpcCode = rpcCode.invalidParams;

  /** @param inputs as in {@link InputRequiredError}; `missing` names those that must be given anew */
  constructor(
    message: string,
    readonly inputs: { http: object; missing: { headers: string[]; query: string[] } },
  ) {
    super(message);
  }
}

/** The server a connection is bound to was deleted; one registered anew under its name is another one. */
export class ServerGoneError extends UpstreamFailure {
  readonly kind = 'upstream';
  readonly code = 'upstream_error';

  constructor(name: string) {
    super(
      `The server ${name} was deleted. One that is registered anew under this name is another server: connect to it.`,
    );
  }
}

/** The current release answers MCP and nothing else. */
export class RunPathNotFoundError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'not_found';

  constructor(server: string, endpoint: string) {
    super(`${server} speaks MCP at ${endpoint} and has no other paths: its release runs elsewhere.`);
  }
}

/** What is asked for is between this service and the code that runs here. */
export class RunPathReservedError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'not_found';

  constructor(server: string, endpoint: string) {
    super(
      `There is nothing below ${endpoint} whose path holds a segment "__smithery": ${server} answers at other paths.`,
    );
  }
}

/** The upstream wants authorization, and there is no connection whose headers could be put right. */
export class ServerAuthRequiredError extends UpstreamAuthRequiredError {
  /** @param given what the caller may configure, in words; empty when there is nothing */
  constructor(server: string, given: string, challenges: string[]) {
    super(false, challenges);
    this.message =
      `The server ${server} wants authorization of its own: it refused what it was sent, and your key for this ` +
      `service is never passed on to it. ${given === '' ? 'Its publisher can say how to get access.' : `Check what you send in ${given}.`}`;
  }
}

/** The code of a hosted server authorizes its users itself, and has not authorized this connection. */
export class AdapterAuthRequiredError extends UpstreamAuthRequiredError {
  constructor(server: string) {
    super(false);
    this.message =
      `The server ${server} authorizes its users itself, and nobody has authorized this connection yet. ` +
      'PUT the connection with an authorization header if you have a token.';
  }
}

/** The code of a hosted server authorizes its users itself, and at the run endpoint it is told of nobody. */
export class AdapterConnectionNeededError extends UpstreamAuthRequiredError {
  /** @param address of the run endpoint */
  constructor(server: string, address: string) {
    super(false);
    this.message =
      `The server ${server} authorizes its users itself, and nobody is authorized at its run endpoint. Make a connection ` +
      `and authorize there: PUT /connect/{namespace}/{connectionId} with {"mcpUrl": "${address}"} answers with a link for that.`;
  }
}
