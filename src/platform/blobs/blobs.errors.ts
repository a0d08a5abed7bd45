import { DomainError } from '../errors/domain-error.js';

/** A file is larger than its kind may be. */
export class BlobTooLargeError extends DomainError {
  readonly kind = 'too_large';
  readonly code = 'validation_error';

  constructor(bytesMax: number) {
    super(`The file is larger than ${bytesMax} bytes (${Math.floor(bytesMax / 1024 / 1024)} MB).`);
  }
}
