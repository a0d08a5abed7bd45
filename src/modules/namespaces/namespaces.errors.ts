import { NotFoundError } from '../../platform/errors/domain-error.js';

export class NamespaceNotFoundError extends NotFoundError {
  constructor() {
    super('Namespace not found');
  }
}
