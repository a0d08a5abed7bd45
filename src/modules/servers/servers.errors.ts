import { DomainError } from '../../platform/errors/domain-error.js';

/** Also the answer to what only the owner of a server may know of: the two look alike. */
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

/** A server cannot be given to a namespace that the caller does not own too. */
export class TransferTargetError extends DomainError {
  readonly kind = 'forbidden';
  readonly code = 'forbidden';

  constructor() {
    super('Forbidden: targetNamespace must belong to you, and targetOrganizationId must be your account');
  }
}

/** The namespace has a server of this name. */
export class ServerTakenError extends DomainError {
  readonly kind = 'conflict';
  readonly code = 'conflict';

  constructor(qualifiedName: string) {
    super(`The server "${qualifiedName}" exists: choose another targetSlug or delete that one first`);
  }
}

/** The subdomain leads to another server, or speaks for somebody else's namespace. */
export class SubdomainTakenError extends DomainError {
  readonly kind = 'conflict';
  readonly code = 'conflict';

  constructor(subdomain: string) {
    super(`The subdomain "${subdomain}" is taken: choose another one`);
  }
}

export class DomainNotFoundError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'not_found';

  constructor() {
    super('Domain not found');
  }
}

export class SecretNotFoundError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'not_found';

  constructor() {
    super('Secret not found');
  }
}

/** Spec 4.12: the text for an icon that nobody brought. */
export class IconNotFoundError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'not_found';

  constructor() {
    super('Icon not found');
  }
}

/** Spec 4.12: an icon over the size limit, uploaded or the only one the server names. */
export class IconTooLargeError extends DomainError {
  readonly kind = 'too_large';
  readonly code = 'validation_error';

  constructor() {
    super('File too large');
  }
}
