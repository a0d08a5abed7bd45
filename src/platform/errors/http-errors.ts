import { DomainError } from './domain-error.js';

/** No route for this path and method. */
export class RouteNotFoundError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'not_found';

  constructor(method: string, path: string) {
    super(`Nothing answers ${method} ${path}. GET /docs lists every operation.`);
  }
}

/** The request body is larger than its route accepts. */
export class BodyTooLargeError extends DomainError {
  readonly kind = 'too_large';
  readonly code = 'validation_error';

  constructor(bytesMax: number) {
    super(`The request body is larger than ${bytesMax} bytes.`);
  }
}
