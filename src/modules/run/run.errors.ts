import { McpRefusal } from '../../mcp/server/mcp-server.errors.js';
import { visible } from '../../platform/text/quoted.js';
import { UpstreamAuthRequiredError, UpstreamFailure } from '../../mcp/protocol/mcp-errors.js';

/**
 * The server has no release, or one that cannot be called over HTTP; the message names the reason and the next step.
 */
export class NotRunnableError extends McpRefusal {
  readonly failure = 'not runnable';
}

export interface InputField {
  label: string;
  description?: string;
  required?: boolean;
}

/**
 * The configuration values of a server by the location where they are sent, and the names of the missing or invalid ones.
 */
export interface RequiredInputs {
  http: { headers?: Record<string, InputField>; query?: Record<string, InputField> };
  missing: { headers: string[]; query: string[] };
}

/** Values are missing. Published clients match on the message. */
export class InputRequiredError extends McpRefusal {
  readonly failure = 'missing values';
  override readonly data: RequiredInputs;

  constructor(readonly inputs: RequiredInputs) {
    super('Input required');
    this.data = inputs;
  }

  /** Adds the titles that the schema gives the values. */
  override get aboutTarget(): string {
    const { http, missing } = this.inputs;
    const nameOf = (kind: 'header' | 'query', name: string, label = name) =>
      label === name ? `${kind} "${name}"` : `${visible(label, 100)} (${kind} "${name}")`;
    const headers = missing.headers.map((name) => nameOf('header', name, http.headers?.[name]?.label));
    const query = missing.query.map((name) => nameOf('query', name, http.query?.[name]?.label));
    return `Input required: ${[...headers, ...query].join(', ')}.`;
  }
}

/** Configuration values of the wrong type were sent. */
export class InputInvalidError extends McpRefusal {
  readonly failure = 'invalid values';

  /** @param inputs `missing` names the invalid ones */
  constructor(
    message: string,
    readonly inputs: RequiredInputs,
  ) {
    super(message);
  }
}

/**
 * The server of a connection was deleted, or is now private and hidden. A new server with the same name is another one.
 */
export class ServerGoneError extends UpstreamFailure {
  readonly failure = 'server deleted';
  readonly outcomeUnknown = false;

  constructor(name: string) {
    super(
      // The wording of the trigger of the table `servers`.
      `The server ${name} was deleted. One that is registered anew under this name is another server: connect to it.`,
    );
  }
}

/** The caller does not use a connection that could store an authorization. */
export class ServerAuthRequiredError extends UpstreamAuthRequiredError {
  /** @param inputs names of the configuration values; empty without any */
  constructor(server: string, inputs: string, challenges: string[]) {
    const message =
      `The server ${server} requires its own authorization and rejected the request. Your key for this ` +
      `service is never sent to it. ${inputs === '' ? 'Ask its publisher for access.' : `Check the values in ${inputs}.`}`;
    super(message, challenges);
  }
}

export class AdapterAuthRequiredError extends UpstreamAuthRequiredError {
  constructor(server: string) {
    super(
      `The server ${server} authorizes its users itself, and nobody has authorized this connection yet. ` +
        'PUT the connection with an authorization header if you have a token.',
    );
  }
}
