import { NotFoundError, ForbiddenError } from '../../platform/errors/domain-error.js';

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
