import { UpstreamAuthRequiredError } from '../../../mcp/protocol/mcp-errors.js';
import { AuthorizationRequiredError } from '../../oauth/credentials.errors.js';
import { McpRefusal } from '../../../mcp/server/mcp-server.errors.js';
import { rpcCode } from '../../../mcp/protocol/protocol.js';
import { DomainError } from '../../../platform/errors/domain-error.js';
import { InputInvalidError, InputRequiredError } from '../../run/run.errors.js';

/** Somebody must authorize: the upstream refused what it was sent, or the stored authorization has ended. */
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

/** Values lack or are wrong. The text of the first is the one that published clients know. */
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

  /** The same in one sentence, for those who read no `data`. */
  get sentence(): string {
    const what = this.original instanceof InputRequiredError ? missingText(this.original) : this.message;
    const { setupUrl } = this.data;
    return `${what} PUT the connection with them, or open ${setupUrl} in a browser.`;
  }
}

/** What lacks, by where it is sent, in a sentence. */
export function missingText({ data: { missing } }: InputRequiredError): string {
  const names = [
    ...missing.headers.map((name) => `header "${name}"`),
    ...missing.query.map((name) => `query "${name}"`),
  ];
  return `Input required: ${names.join(', ')}.`;
}

/** {@link ConnectionInputError} for those who read no `data`; the message names what lacks, and where to give it. */
export class ConnectionInputRequiredError extends DomainError {
  readonly kind = 'conflict';
  readonly code = 'input_required';
  readonly original: Error;

  constructor({ sentence, original }: ConnectionInputError) {
    super(sentence);
    this.original = original;
  }
}

/** A failure as those who call the connection hear it: with the page where a person can end it, if there is one. */
export function withSetupUrl(failure: Error, setupUrl: () => string): Error {
  if (failure instanceof UpstreamAuthRequiredError || failure instanceof AuthorizationRequiredError) {
    return new ConnectionAuthRequiredError(failure, setupUrl());
  }
  if (failure instanceof InputRequiredError || failure instanceof InputInvalidError) {
    return new ConnectionInputError(failure, setupUrl());
  }
  return failure;
}

/** What {@link withSetupUrl} was given: without the link, which is nobody's to keep. */
export function originalOf<T>(failure: T): T | Error {
  const isOurs =
    failure instanceof ConnectionAuthRequiredError ||
    failure instanceof ConnectionInputError ||
    failure instanceof ConnectionInputRequiredError;
  return isOurs ? failure.original : failure;
}
