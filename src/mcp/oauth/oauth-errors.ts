import { errorOf } from '../../platform/errors/domain-error.js';
import { mediaTypeOf } from '../../platform/text/media-type.js';

/**
 * An authorization cannot be set up, or was not completed. The message is for the user who publishes or connects the
 * server: the problem, the host, and a remedy.
 */
export class OAuthSetupError extends errorOf('unprocessable', 'auth_setup_failed') {}

/** Nothing announces an authorization server: the MCP server might accept only keys. */
export class NoAuthorizationServerError extends OAuthSetupError {}

/**
 * The authorization server has no client of Slipway and does not register one; an administrator must create it there.
 */
export class OAuthClientNeededError extends OAuthSetupError {
  constructor(
    readonly issuer: string,
    message: string,
  ) {
    super(message);
  }
}

/**
 * An OAuth URL cannot be fetched: blocked by the egress policy, unreachable, timeout, too large, or a redirect. The
 * message names the host.
 */
export class OAuthFetchError extends Error {}

/**
 * The token endpoint rejected a request permanently (RFC 6749 section 5.2). The error description is never repeated.
 */
export class TokenRefusedError extends Error {
  constructor(
    readonly code: string,
    readonly host: string,
    /** The code, and the server's own message if it sent one. */
    readonly words = code,
  ) {
    super(`${host} refused the token request: ${code}.`);
  }
}

/** The token endpoint is unreachable or failing. Stored tokens remain valid. */
export class TokenEndpointUnreachableError extends Error {}

/**
 * A rejection that might not be permanent: of a hosted auth adapter, which has no code for it, or a 4xx of a token
 * endpoint with a non-standard code.
 */
export class UnclearRefusalError extends TokenEndpointUnreachableError {}

/**
 * Returns the message about a page with status 403 or 503 in place of a response of OAuth or MCP; null for other
 * responses.
 */
export function blockedBy(host: string, status: number, contentType: string | null): string | null {
  if ((status !== 403 && status !== 503) || mediaTypeOf(contentType ?? '') !== 'text/html') return null;
  return `${host} answered ${status} with a web page: a firewall or proxy answered in its place. Ask whoever runs it to let Slipway through.`;
}
