import { DomainError } from '../../platform/errors/domain-error.js';

/** The server does not exist, or only its owner may see the requested part. */
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

/** The target of a transfer does not belong to the caller. */
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

/** The subdomain belongs to another server, or begins with the namespace of another account. */
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

/** Spec 4.12: the server has no icon. */
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
