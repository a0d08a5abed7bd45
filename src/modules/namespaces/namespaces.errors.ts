import { ConflictError, NotFoundError } from '../../platform/errors/domain-error.js';

export class NamespaceNotFoundError extends NotFoundError {
  constructor() {
    super('Namespace not found');
  }
}

export class NamespaceOwnedError extends ConflictError {
  constructor(name: string, to: string) {
    super(
      `The namespace "${name}" already exists and is yours: move it with PATCH /namespaces/${name} {"accountId": "${to}"}`,
    );
  }
}
