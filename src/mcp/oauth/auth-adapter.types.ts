import type { TokenSet } from './tokens.js';

/**
 * OAuth adapter implemented by a hosted server, for an authorization server that only its code knows. Each operation
 * may take 10 s.
 */
export interface AuthAdapter {
  /**
   * URL at which a person signs in, with an S256 PKCE challenge.
   *
   * @throws TokenEndpointAwayError
   */
  authorizationUrl(ask: { callbackUrl: string; state: string; codeChallenge: string }): Promise<string>;
  /** @throws TokenRefusedError, TokenEndpointAwayError */
  exchangeCode(grant: { code: string; callbackUrl: string; codeVerifier: string }): Promise<TokenSet>;
  /**
   * Refreshes tokens. The returned refresh token replaces the old one. @throws TokenRefusedError,
   * TokenEndpointAwayError
   */
  refreshToken(refreshToken: string): Promise<TokenSet>;
}
