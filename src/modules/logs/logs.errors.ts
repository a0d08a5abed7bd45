import { DomainError } from '../../platform/errors/domain-error.js';

/** A search of the logs exceeded its time limit. */
export class SearchTooLongError extends DomainError {
  readonly kind = 'timeout';
  readonly code = 'timeout';

  constructor() {
    super('The search took longer than 10 s: give a shorter range of time with from and to');
  }
}

/** The maximum number of log streams, of an account or of this process, is open. */
export class TooManyTailsError extends DomainError {
  readonly kind = 'rate_limited';
  readonly code = 'rate_limited';
  override readonly retryAfterSeconds = 5;

  constructor() {
    super('Too many logs are followed already: close one of the streams first');
  }
}

/** The buffer of log records is full: the queue is slower than the requests. */
export class LogsBusyError extends DomainError {
  readonly kind = 'unavailable';
  readonly code = 'unavailable';
  override readonly retryAfterSeconds = 5;

  constructor() {
    super('Too many log records are waiting to be written: send the same again in a few seconds');
  }
}
