import { UpstreamAuthRequiredError } from '../../../mcp/protocol/mcp-errors.js';
import { AuthorizationRequiredError } from '../../oauth/credentials.errors.js';
import { McpRefusal } from '../../../mcp/server/mcp-server.errors.js';
import { rpcCode } from '../../../mcp/protocol/protocol.js';
import { DomainError } from '../../../platform/errors/domain-error.js';
import { InputInvalidError, InputRequiredError } from '../../run/run.errors.js';

/** A person must authorize: the upstream refused the credentials, or the stored authorization has ended. */
export class ConnectionAuthRequiredError extends UpstreamAuthRequiredError {
  constructor(
    readonly original: UpstreamAuthRequiredError | AuthorizationRequiredError,
    setupUrl: string,
  ) {
    const isUpstream = original instanceof UpstreamAuthRequiredError;
    super(false, isUpstream ? original.challenges : [], isUpstream && original.wantsMore, setupUrl);
    this.message = `${original.message} Or open ${setupUrl} in a browser.`;
  }
}

/** Values are missing or invalid. Published clients know the text for missing ones. */
export class ConnectionInputError extends McpRefusal {
  readonly kind = 'conflict';
  readonly code = 'input_required';
  readonly rpcCode = rpcCode.inputRequired;
  override readonly data: { http: object; missing: { headers: string[]; query: string[] }; setupUrl: string };

  constructor(
    readonly original: InputRequiredError | InputInvalidError,
    setupUrl: string,
  ) {
    super(original.message);
    const inputs = original instanceof InputRequiredError ? original.data : original.inputs;
    this.data = { ...inputs, setupUrl };
  }

  /** The message with the content of `data`, for clients that do not read it. */
  get sentence(): string {
    const what = this.original instanceof InputRequiredError ? missingText(this.original) : this.message;
    const { setupUrl } = this.data;
    return `${what} PUT the connection with them, or open ${setupUrl} in a browser.`;
  }
}

/** The names of the missing values, in a sentence. */
export function missingText({ data: { missing } }: InputRequiredError): string {
  const names = [
    ...missing.headers.map((name) => `header "${name}"`),
    ...missing.query.map((name) => `query "${name}"`),
  ];
  return `Input required: ${names.join(', ')}.`;
}

/** {@link ConnectionInputError} for clients that do not read `data`: the message names the values and the setup page. */
export class ConnectionInputRequiredError extends DomainError {
  readonly kind = 'conflict';
  readonly code = 'input_required';
  readonly original: Error;

  constructor({ sentence, original }: ConnectionInputError) {
    super(sentence);
    this.original = original;
  }
}

/** Adds the setup page to a failure that a person can end there. */
export function withSetupUrl(failure: Error, setupUrl: () => string): Error {
  if (failure instanceof UpstreamAuthRequiredError || failure instanceof AuthorizationRequiredError) {
    return new ConnectionAuthRequiredError(failure, setupUrl());
  }
  if (failure instanceof InputRequiredError || failure instanceof InputInvalidError) {
    return new ConnectionInputError(failure, setupUrl());
  }
  return failure;
}

/** The failure before {@link withSetupUrl}. Its link must not be stored. */
export function originalOf<T>(failure: T): T | Error {
  const isOurs =
    failure instanceof ConnectionAuthRequiredError ||
    failure instanceof ConnectionInputError ||
    failure instanceof ConnectionInputRequiredError;
  return isOurs ? failure.original : failure;
}
