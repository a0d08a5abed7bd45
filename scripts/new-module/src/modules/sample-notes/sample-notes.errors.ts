import { DomainError } from '../../platform/errors/domain-error.js';

/** Also the answer for a sample note of somebody else. */
export class SampleNoteNotFoundError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'not_found';

  constructor() {
    super('Sample note not found');
  }
}
