import { DomainError } from '../../platform/errors/domain-error.js';

/**
 * An authorization cannot be set up, or was not completed. The message is for the person who publishes or connects the
 * server: what is wrong, at which host, and what would help.
 */
export class OAuthSetupError extends DomainError {
  readonly kind = 'unprocessable';
  readonly code = 'auth_setup_failed';
}

/** The authorization server knows no client of ours and takes none from us: somebody must get one there by hand. */
export class OAuthClientNeededError extends OAuthSetupError {
  constructor(
    /** As its metadata spells it. */
    readonly issuer: string,
    message: string,
  ) {
    super(message);
  }
}

/** A URL of OAuth cannot be read: not dialled, not reached, too slow, too large, or a redirect. A sentence with its host. */
export class OAuthFetchError extends Error {}

/** The token endpoint refused a request for a reason that stays (RFC 6749 section 5.2). Its text is never repeated. */
export class TokenRefusedError extends Error {
  constructor(
    /** Its error code, e.g. `invalid_grant`. */
    readonly code: string,
    /** Its host. */
    readonly host: string,
  ) {
    super(`${host} refused the token request: ${code}.`);
  }
}

/** The token endpoint could not be asked, or is in trouble: nothing follows for the tokens we hold. */
export class TokenEndpointAwayError extends Error {}

/** A server's own code, in the place of a token endpoint, ran and failed. It has no word for what is refused for good. */
export class AdapterFailedError extends TokenEndpointAwayError {}
