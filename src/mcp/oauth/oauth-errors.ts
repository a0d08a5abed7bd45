import { errorOf } from '../../platform/errors/domain-error.js';

/**
 * An authorization cannot be set up, or was not completed. The message is for the person who publishes or connects the
 * server: the problem, the host, and a remedy.
 */
export class OAuthSetupError extends errorOf('unprocessable', 'auth_setup_failed') {}

/** The authorization server has no client of ours and does not register one; an administrator must create it there. */
export class OAuthClientNeededError extends OAuthSetupError {
  constructor(
    /** Issuer as spelled in its metadata. */
    readonly issuer: string,
    message: string,
  ) {
    super(message);
  }
}

/**
 * An OAuth URL cannot be fetched: egress refused, unreachable, timeout, too large, or a redirect. The message names the
 * host.
 */
export class OAuthFetchError extends Error {}

/** The token endpoint refused a request permanently (RFC 6749 section 5.2). The error description is never repeated. */
export class TokenRefusedError extends Error {
  constructor(
    /** Error code, such as `invalid_grant`. */
    readonly code: string,
    /** Host of the token endpoint. */
    readonly host: string,
  ) {
    super(`${host} refused the token request: ${code}.`);
  }
}

/** The token endpoint is unreachable or failing. Stored tokens stay valid. */
export class TokenEndpointUnreachableError extends Error {}

/** A hosted auth adapter failed. Adapters cannot signal permanent refusals by this error. */
export class AdapterFailedError extends TokenEndpointUnreachableError {}
