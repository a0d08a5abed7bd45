import { DomainError } from '../../platform/errors/domain-error.js';

/** Response of Spec 4.8 for a tool without samples. */
export class NoSamplesError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'not_found';

  constructor() {
    super('No output samples found');
  }
}
