import { DomainError } from '../../platform/errors/domain-error.js';

/** Also the answer to deleting somebody else's server: the two look alike. */
export class ServerNotFoundError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'not_found';

  constructor() {
    super('Server not found');
  }
}

/** Spec 4.1: the text for a caller who does not own the namespace. */
export class NotServerOwnerError extends DomainError {
  readonly kind = 'forbidden';
  readonly code = 'forbidden';

  constructor() {
    super("Forbidden: You don't own this server");
  }
}
