import { ConflictError, DomainError, errorOf, type ErrorReader } from '../../../platform/errors/domain-error.js';
import { SETUP_PAGE, UpstreamAuthRequiredError } from '../../../mcp/protocol/mcp-errors.js';
import { AuthorizationRequiredError } from '../../oauth/credentials.errors.js';
import { linkHolderOf, type LinkHolder } from '../../oauth/setup/setup.types.js';
import { McpRefusal } from '../../../mcp/server/mcp-server.errors.js';
import { didYouMean } from '../../../platform/text/nearest.js';
import { CallFailure } from '../../../mcp/protocol/failures.js';
import { InputInvalidError, InputRequiredError, type RequiredInputs } from '../../run/run.errors.js';

export interface SetupWays {
  url: (holder: LinkHolder) => string;
  /** The page opens only for a person signed in as the holder. */
  personUrl: (holder: LinkHolder) => Promise<string>;
  namespace: string;
  ownerName: string;
}

export function ownerMust(ownerName: string, state: 'auth_required' | 'input_required'): string {
  return state === 'auth_required'
    ? `The MCP server wants authorization. The owner of this connection, ${ownerName}, has to log in.`
    : `The MCP server needs values. The owner of this connection, ${ownerName}, has to enter them.`;
}

/**
 * A person must authorize: the upstream rejected the credentials, or the stored authorization is no longer valid. Only
 * {@link forReader} adds a link.
 */
class ConnectionAuthRequiredError extends UpstreamAuthRequiredError {
  constructor(
    readonly original: UpstreamAuthRequiredError | AuthorizationRequiredError,
    private readonly ways: SetupWays,
    private readonly holder?: LinkHolder,
    setupUrl = holder && ways.url(holder),
  ) {
    const page = setupUrl ?? SETUP_PAGE;
    const message = original.message.includes(SETUP_PAGE)
      ? original.message.replace(SETUP_PAGE, () => page)
      : `${original.message} Or open ${page} in a browser.`;
    super(message, 'challenges' in original ? original.challenges : [], original.failure, setupUrl);
  }

  override async forPerson(): Promise<UpstreamAuthRequiredError> {
    const { original, ways, holder } = this;
    return holder ? new ConnectionAuthRequiredError(original, ways, holder, await ways.personUrl(holder)) : this;
  }

  override forReader(reader: ErrorReader): DomainError {
    const { original, ways } = this;
    const holder = linkHolderOf(reader, ways.namespace);
    if (holder) return new ConnectionAuthRequiredError(original, ways, holder);
    return new UpstreamAuthRequiredError(ownerMust(ways.ownerName, 'auth_required'));
  }
}

/** Values are missing or invalid. Published clients match the message for missing values. Only {@link forReader} adds a link. */
export class ConnectionInputError extends McpRefusal {
  readonly failure = 'missing values';
  override readonly data: RequiredInputs & { setupUrl?: string };

  constructor(
    readonly original: InputRequiredError | InputInvalidError,
    private readonly ways: SetupWays,
    setupUrl?: string,
  ) {
    super(original.message);
    this.data = { ...original.inputs, ...(setupUrl !== undefined && { setupUrl }) };
  }

  override forReader(reader: ErrorReader): ConnectionInputError | GuestInputError {
    const { original, ways } = this;
    const holder = linkHolderOf(reader, ways.namespace);
    if (holder) return new ConnectionInputError(original, ways, ways.url(holder));
    return new GuestInputError(ownerMust(ways.ownerName, 'input_required'));
  }

  /** The message with the content of `data`, for clients that do not read `data`. */
  get fullMessage(): string {
    return `${this.original.aboutTarget} PUT the connection with them, or open ${this.data.setupUrl ?? SETUP_PAGE} in a browser.`;
  }
}

class GuestInputError extends McpRefusal {
  readonly failure = 'missing values';
}

/** Values are missing. The message names them and the setup page, for clients that do not read `data`. */
export class ConnectionInputRequiredError extends CallFailure {
  readonly failure = 'missing values';
  readonly original: Error;

  constructor(private readonly full: ConnectionInputError) {
    super(full.fullMessage);
    this.original = full.original;
  }

  override forReader(reader: ErrorReader): DomainError {
    const full = this.full.forReader(reader);
    return full instanceof ConnectionInputError ? new ConnectionInputRequiredError(full) : full;
  }
}

/**
 * The namespace, connection or tool does not exist or is hidden from the caller; both responses are equal to the byte.
 * Spec 7 fixes code and message.
 */
export class ResourceNotFoundError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'not_found';

  /** @param advice for the owner of the namespace: what is missing, and the most similar name */
  constructor(
    detail?: unknown,
    override readonly advice?: string,
  ) {
    super('Resource not found', detail);
  }

  static ofConnection(namespace: string, id: string, ids: Iterable<string>): ResourceNotFoundError {
    const advice = `Your namespace "${namespace}" has no such connection.${didYouMean(id, ids)}`;
    return new ResourceNotFoundError({ connection: id }, advice);
  }

  static ofItem(kind: 'tool' | 'trigger', connectionId: string, name: string, names: string[]): ResourceNotFoundError {
    const advice = `The connection "${connectionId}" has no such ${kind}.${didYouMean(name, names)}`;
    return new ResourceNotFoundError({ [kind]: name }, advice);
  }
}

export function targetConflict(field: 'mcpUrl' | 'transport' | 'server' | 'source'): ConflictError {
  return new ConflictError(
    `The connection exists with another ${field}: delete it and create it again, or use another id.`,
  );
}

export class ToolError extends errorOf('unprocessable', 'tool_error') {}

/** A problem of a module and its location. Lines and columns count from 1. */
export interface SourceDiagnostic {
  path: string;
  line: number;
  column: number;
  message: string;
}

/** The module of a connection does not compile, or throws while it is loaded. Published clients read this body. */
export class InvalidSourceError extends DomainError {
  readonly kind = 'invalid';
  readonly code = 'invalid_module';
  override readonly ownBody: object;

  constructor(message: string, diagnostics: SourceDiagnostic[]) {
    super(message);
    this.ownBody = { error: { code: this.code, message, diagnostics } };
  }

  static whileLoading(path: string, message: string): InvalidSourceError {
    return new InvalidSourceError(`The module ${path} cannot be loaded: ${message}`, [
      { path, line: 1, column: 1, message },
    ]);
  }
}

/** Adds the setup link to a failure, for callers that can manage the connection. */
export function withSetupUrl(failure: Error, ways: SetupWays): Error {
  if (failure instanceof UpstreamAuthRequiredError || failure instanceof AuthorizationRequiredError) {
    return new ConnectionAuthRequiredError(failure, ways);
  }
  if (failure instanceof InputRequiredError || failure instanceof InputInvalidError) {
    return new ConnectionInputError(failure, ways);
  }
  return failure;
}

export function originalOf<T>(failure: T): T | Error {
  return (failure as { original?: Error } | null)?.original ?? failure;
}
