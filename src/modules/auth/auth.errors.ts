import { CallFailure } from '../../mcp/protocol/failures.js';
import { DomainError, ForbiddenError } from '../../platform/errors/domain-error.js';
import { rootFrom } from '../../platform/pages/page.js';
import type { Action, GrantLevel, Role } from './access.types.js';

export class UnauthenticatedError extends DomainError {
  readonly kind = 'unauthenticated';
  readonly code = 'unauthorized';
  override readonly registryText = 'Unauthorized';

  /** True when the request carried a key, which might be one of many guesses. */
  isAttempt = true;

  /** @param challenge parameters of `WWW-Authenticate` that tell clients where to log in */
  constructor(
    message: string,
    override readonly challenge?: string,
  ) {
    super(message);
  }

  static missing(challenge?: string): UnauthenticatedError {
    const message = 'The API key is missing: send it as "Authorization: Bearer <API key>".';
    return Object.assign(new UnauthenticatedError(message, challenge), { isAttempt: false });
  }
  static invalid(challenge?: string): UnauthenticatedError {
    const message = 'The API key is not valid: it is misspelt, revoked or from another service.';
    return new UnauthenticatedError(message, challenge);
  }
  static malformed(challenge?: string): UnauthenticatedError {
    const message = 'The Authorization header must be "Authorization: Bearer <API key>".';
    return new UnauthenticatedError(message, challenge);
  }
  static expired(): UnauthenticatedError {
    return new UnauthenticatedError('The API key has expired: make a new one.');
  }
  static suspended(): UnauthenticatedError {
    return new UnauthenticatedError('This API key is suspended until its owner signs in again with a browser.');
  }

  static disabled(): UnauthenticatedError {
    return new UnauthenticatedError('The account of this API key is disabled: ask the operator.');
  }
}

/** A page was requested without a session. The browser is redirected to the sign-in page, and from there back. */
export class SignedOutError extends UnauthenticatedError {
  override isAttempt = false;
  override readonly location: string;

  constructor(url: string, page: string) {
    super('Nobody is signed in.');
    this.location = `${rootFrom(url)}login?next=${encodeURIComponent(page).replaceAll('%2F', '/')}`;
  }
}

export class KeyScopeError extends ForbiddenError {
  /** @param namespace null for an action on the whole account */
  constructor(action: Action, namespace: string | null) {
    const scope = action === 'own' || action === 'administer' ? 'manage' : action;
    const needed = namespace === null ? `"${scope}"` : `"${scope}" or "${scope}:${namespace}"`;
    super(
      `Forbidden: this API key lacks the scope ${needed}. Use another key of the account: GET /accounts/me/access says what this one may do.`,
    );
  }
}

export class GrantLevelError extends ForbiddenError {
  constructor(level: GrantLevel, action: Action) {
    const needed =
      action === 'own' || action === 'administer'
        ? 'only the owner may do this'
        : 'this needs "manage": ask the owner for it';
    super(`Forbidden: the owner granted your account "${level}" here, and ${needed}.`);
  }
}

export class ToolsOnlyError extends ForbiddenError {
  constructor(tools: readonly string[]) {
    const names = tools.slice(0, 10).join(', ');
    super(
      `Forbidden: the owner granted your account only these tools here: ${names}${tools.length > 10 ? ', …' : ''}.`,
    );
  }
}

export class RoleError extends ForbiddenError {
  constructor(role: Role) {
    super(`Forbidden: your role in the organization is "${role}", which does not include this: ask one of its owners.`);
  }
}

export class NotOperatorError extends ForbiddenError {
  constructor() {
    super('Forbidden: only the operator manages accounts');
  }
}

/** A quota is exceeded. Clients must not retry automatically. */
export class QuotaExceededError extends DomainError {
  readonly kind = 'rate_limited';
  readonly code = 'quota_exceeded';
  override readonly noRetry = true;

  constructor(name: string, used: number, limit: number) {
    super(
      `This account is at its limit of ${name}: ${used} of ${limit} are used. Delete what is not needed, or ask the ` +
        'operator for more. GET /accounts/me/usage lists all limits.',
    );
  }
}

export class SuspendedError extends CallFailure {
  readonly failure = 'suspended';

  constructor(kind: string, reason: string) {
    super(`Forbidden: the operator suspended this ${kind}: ${reason}`);
  }
}
