import { CallFailure } from '../../mcp/protocol/failures.js';
import { ConflictError, NotFoundError, ForbiddenError } from '../../platform/errors/domain-error.js';

/** The server does not exist, or the requested part is visible only to its owner. */
export class ServerNotFoundError extends NotFoundError {
  /** @param advice for the owner of the namespace: the nearest name */
  constructor(override readonly advice?: string) {
    super('Server not found');
  }
}

/** Spec 4.1: the message for a caller who does not own the namespace. */
export class NotServerOwnerError extends ForbiddenError {
  constructor() {
    super("Forbidden: You don't own this server");
  }
}

/** Everybody can find the server, but the account cannot call it until its owner grants access. The same for every account. */
export class AccessRequiredError extends CallFailure {
  readonly failure = 'access required';

  constructor(name: string) {
    super(
      `Forbidden: the server ${name} is restricted, and its owner has not granted your account access. ` +
        `Ask for it: POST /servers/${encodeURIComponent(name)}/access-requests.`,
    );
  }
}

export class NotGrantableError extends ForbiddenError {
  constructor(name: string) {
    super(
      `Forbidden: only the owner of the server ${name} grants it to others, even through a connection. ` +
        'Ask its owner to grant it to them.',
    );
  }
}

/** Only owners can make the server more visible: neither a grant nor the role of an editor is enough. */
export class OpenedByOwnersError extends ForbiddenError {
  constructor() {
    super(
      'Forbidden: only the owner of a server, or an owner of its organization, makes it more visible. Ask one of them.',
    );
  }
}

/** The server has secrets, and its owner must first confirm that every caller uses them. */
export class SecretsNotConfirmedError extends ConflictError {
  constructor() {
    super(
      'The server has secrets: once it is public, every account calls it with them. PATCH it with visibility "public" and ' +
        'confirmSecrets true if that is right, or delete its secrets first.',
    );
  }
}
