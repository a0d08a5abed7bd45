import { NotFoundError } from '../../platform/errors/domain-error.js';

/** No grant of this target has this id. */
export class GrantNotFoundError extends NotFoundError {
  constructor() {
    super('Grant not found');
  }
}
