import { DomainError } from '../../platform/errors/domain-error.js';

/** The sample note does not exist or belongs to another owner. */
export class SampleNoteNotFoundError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'not_found';

  constructor() {
    super('Sample note not found');
  }
}
