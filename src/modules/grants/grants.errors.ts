import { ConflictError, InvalidInputError, NotFoundError } from '../../platform/errors/domain-error.js';

/** No grant of this target has this id. */
export class GrantNotFoundError extends NotFoundError {
  constructor() {
    super('Grant not found');
  }
}

/** The body names an account that does not exist. */
export class GranteeNotFoundError extends NotFoundError {
  constructor() {
    super('No account has this id or name: its owner finds both at GET /accounts/me');
  }
}

/** The body names the caller's own account. */
export class OwnGrantError extends InvalidInputError {
  constructor() {
    super('account is your own, which owns this already: name another account');
  }
}

/** The server or connection has as many grants as one may have. */
export class TooManyGrantsError extends ConflictError {
  constructor(max: number) {
    super(`This has ${max} grants, as many as a server or a connection may have: withdraw one first`);
  }
}
