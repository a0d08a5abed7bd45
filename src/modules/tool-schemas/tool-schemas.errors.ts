import { DomainError } from '../../platform/errors/domain-error.js';

/** Spec 4.8: the text for a tool of which no answer was seen. */
export class NoSamplesError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'not_found';

  constructor() {
    super('No output samples found');
  }
}
