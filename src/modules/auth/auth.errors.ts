import { DomainError } from '../../platform/errors/domain-error.js';

/** No credentials, or none that count. */
export class UnauthenticatedError extends DomainError {
  readonly kind = 'unauthenticated';
  readonly code = 'unauthorized';
  override readonly registryText = 'Unauthorized';

  static missing(): UnauthenticatedError {
    return new UnauthenticatedError('The API key is missing: send it as "Authorization: Bearer <API key>".');
  }
  static invalid(): UnauthenticatedError {
    return new UnauthenticatedError('The API key is not valid: it is misspelt, revoked or from another service.');
  }
  static expired(): UnauthenticatedError {
    return new UnauthenticatedError('The API key has expired: make a new one.');
  }
}

/** The key is valid, and not enough. */
export class ForbiddenError extends DomainError {
  readonly kind = 'forbidden';
  readonly code = 'forbidden';
}

/** Also the answer for an account that is somebody else's. */
export class AccountNotFoundError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'not_found';

  constructor() {
    super('Account not found');
  }
}

/** Also the answer for a key of another account. */
export class ApiKeyNotFoundError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'not_found';

  constructor() {
    super('API key not found');
  }
}

/** Account names are unique. */
export class AccountExistsError extends DomainError {
  readonly kind = 'conflict';
  readonly code = 'conflict';

  constructor(name: string) {
    super(`An account named "${name}" already exists`);
  }
}
