import { ConflictError, DomainError, errorOf } from '../../../platform/errors/domain-error.js';
import { SETUP_PAGE, UpstreamAuthRequiredError } from '../../../mcp/protocol/mcp-errors.js';
import { AuthorizationRequiredError } from '../../oauth/credentials.errors.js';
import { McpRefusal } from '../../../mcp/server/mcp-server.errors.js';
import { didYouMean } from '../../../platform/text/nearest.js';
import { CallFailure } from '../../../mcp/protocol/failures.js';
import { InputInvalidError, InputRequiredError, type RequiredInputs } from '../../run/run.errors.js';

/** Where the person can settle a failure who may set a connection up, and the name of that person for all others. */
export interface SetupWays {
  /** The setup page, for whoever has the link. */
  url: () => string;
  /** The page for people signed in as this account only. */
  urlFor: (accountId: string) => Promise<string>;
  /** The name of the account that owns the connection. */
  ownerName: string;
}

/** Who has to settle a state of a connection, for people who may only call it. */
export function ownerMust(ownerName: string, state: 'auth_required' | 'input_required'): string {
  return state === 'auth_required'
    ? `The MCP server wants authorization. The owner of this connection, ${ownerName}, has to log in.`
    : `The MCP server needs values. The owner of this connection, ${ownerName}, has to enter them.`;
}

/** A person must authorize: the upstream refused the credentials, or the stored authorization has ended. */
class ConnectionAuthRequiredError extends UpstreamAuthRequiredError {
  constructor(
    readonly original: UpstreamAuthRequiredError | AuthorizationRequiredError,
    private readonly ways: SetupWays,
    setupUrl = ways.url(),
  ) {
    const message = original.message.includes(SETUP_PAGE)
      ? original.message.replace(SETUP_PAGE, () => setupUrl)
      : `${original.message} Or open ${setupUrl} in a browser.`;
    super(message, 'challenges' in original ? original.challenges : [], original.failure, setupUrl);
  }

  override async boundTo(accountId: string): Promise<UpstreamAuthRequiredError> {
    return new ConnectionAuthRequiredError(this.original, this.ways, await this.ways.urlFor(accountId));
  }

  override forGuest(): DomainError {
    return new UpstreamAuthRequiredError(ownerMust(this.ways.ownerName, 'auth_required'));
  }
}

/** Values are missing or invalid. Published clients know the text for missing ones. */
export class ConnectionInputError extends McpRefusal {
  readonly failure = 'missing values';
  override readonly data: RequiredInputs & { setupUrl: string };

  constructor(
    readonly original: InputRequiredError | InputInvalidError,
    private readonly ways: SetupWays,
  ) {
    super(original.message);
    this.data = { ...original.inputs, setupUrl: ways.url() };
  }

  override forGuest(): DomainError {
    return new GuestInputError(ownerMust(this.ways.ownerName, 'input_required'));
  }

  /** The message with the content of `data`, for clients that do not read it. */
  get sentence(): string {
    return `${this.original.aboutTarget} PUT the connection with them, or open ${this.data.setupUrl} in a browser.`;
  }
}

/** Values are missing or invalid that only others may enter. */
class GuestInputError extends McpRefusal {
  readonly failure = 'missing values';
}

/** {@link ConnectionInputError} for clients that do not read `data`: the message names the values and the setup page. */
export class ConnectionInputRequiredError extends CallFailure {
  readonly failure = 'missing values';
  readonly original: Error;

  constructor(private readonly full: ConnectionInputError) {
    super(full.sentence);
    this.original = full.original;
  }

  override forGuest(): DomainError {
    return this.full.forGuest();
  }
}

/**
 * No such namespace, connection or tool, or not the caller's: the two look alike, byte for byte. Spec 7 fixes code and
 * message.
 */
export class ResourceNotFoundError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'not_found';

  /** @param advice for the owner of the namespace: the missing thing and the nearest name */
  constructor(
    detail?: unknown,
    override readonly advice?: string,
  ) {
    super('Resource not found', detail);
  }

  /** No connection of this id in a namespace of the caller. */
  static ofConnection(namespace: string, id: string, others: Iterable<string>): ResourceNotFoundError {
    const advice = `Your namespace "${namespace}" has no such connection.${didYouMean(id, others)}`;
    return new ResourceNotFoundError({ connection: id }, advice);
  }

  /** No tool or trigger of this name in a connection of the caller. */
  static ofItem(kind: 'tool' | 'trigger', connectionId: string, name: string, others: string[]): ResourceNotFoundError {
    const advice = `The connection "${connectionId}" has no such ${kind}.${didYouMean(name, others)}`;
    return new ResourceNotFoundError({ [kind]: name }, advice);
  }
}

/** The target of a connection cannot change. */
export function targetConflict(what: 'mcpUrl' | 'transport' | 'server' | 'source'): ConflictError {
  return new ConflictError(
    `The connection exists with another ${what}: delete it and create it anew, or use another id.`,
  );
}

/** The upstream answered a tool call with a JSON-RPC error. */
export class ToolError extends errorOf('unprocessable', 'tool_error') {}

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
  static whileLoading(path: string, message: string): InvalidSourceError {
    return new InvalidSourceError(`The module ${path} cannot be loaded: ${message}`, [
      { path, line: 1, column: 1, message },
    ]);
  }
}

/** Adds the setup page to a failure that a person can end there. */
export function withSetupUrl(failure: Error, ways: SetupWays): Error {
  if (failure instanceof UpstreamAuthRequiredError || failure instanceof AuthorizationRequiredError) {
    return new ConnectionAuthRequiredError(failure, ways);
  }
  if (failure instanceof InputRequiredError || failure instanceof InputInvalidError) {
    return new ConnectionInputError(failure, ways);
  }
  return failure;
}

/** The failure before {@link withSetupUrl}. Its link must not be stored. */
export function originalOf<T>(failure: T): T | Error {
  return (failure as { original?: Error } | null)?.original ?? failure;
}
