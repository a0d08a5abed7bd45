import { CallFailure } from '../../mcp/protocol/failures.js';
import { ConflictError, NotFoundError, ForbiddenError } from '../../platform/errors/domain-error.js';

/** The server does not exist, or only its owner may see the requested part. */
export class ServerNotFoundError extends NotFoundError {
  /** @param advice for the owner of the namespace: the nearest name */
  constructor(override readonly advice?: string) {
    super('Server not found');
  }
}

/** Spec 4.1: the text for a caller who does not own the namespace. */
export class NotServerOwnerError extends ForbiddenError {
  constructor() {
    super("Forbidden: You don't own this server");
  }
}

/** Everybody may find the server, and the account may not call it: its owner lets it in. The same for every account. */
export class AccessRequiredError extends CallFailure {
  readonly failure = 'access required';

  /** @param name its qualified name */
  constructor(name: string) {
    super(
      `Forbidden: the server ${name} is restricted, and its owner has not granted your account access. ` +
        `Ask for it: POST /servers/${encodeURIComponent(name)}/access-requests.`,
    );
  }
}

/** A connection lets others call a server that its owner can call, but not grant. */
export class NotGrantableError extends ForbiddenError {
  /** @param name the qualified name of the server */
  constructor(name: string) {
    super(
      `Forbidden: only the owner of the server ${name} grants it to others, even through a connection. ` +
        'Ask its owner to grant it to them.',
    );
  }
}

/** Neither a grant nor the role of an editor lets an account open a server to others. */
export class OpenedByOwnersError extends ForbiddenError {
  constructor() {
    super(
      'Forbidden: only the owner of a server, or an owner of its organization, makes it more visible. Ask one of them.',
    );
  }
}

/** A server with secrets may not become public unless its owner confirms what that means. */
export class SecretsNotConfirmedError extends ConflictError {
  constructor() {
    super(
      'The server has secrets: once it is public, every account calls it with them. PATCH it with visibility "public" and ' +
        'confirmSecrets true if that is right, or delete its secrets first.',
    );
  }
}
