import { DomainError } from '../../platform/errors/domain-error.js';

export class NamespaceNotFoundError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'not_found';

  constructor() {
    super('Namespace not found');
  }
}

/** The name is taken. Published tools look for the words "already exists". */
export class NamespaceTakenError extends DomainError {
  readonly kind = 'conflict';
  readonly code = 'conflict';

  constructor(name: string) {
    super(`The namespace "${name}" already exists and belongs to another account`);
  }
}

/** Spec 4.13: the text for a caller who does not own the namespace. */
export class NotNamespaceOwnerError extends DomainError {
  readonly kind = 'forbidden';
  readonly code = 'forbidden';

  constructor() {
    super('Unauthorized');
  }
}

/** Spec 4.13: a namespace must not contain any servers when it is deleted. */
export class NamespaceHoldsServersError extends DomainError {
  readonly kind = 'conflict';
  readonly code = 'conflict';

  constructor(name: string) {
    super(`The namespace "${name}" still holds servers: delete them first`);
  }
}
