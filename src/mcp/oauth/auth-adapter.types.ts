import type { TokenSet } from './tokens.js';

/**
 * Code of a hosted server that stands between its users and an authorization server only it knows. Everything may take
 * 10 s at most.
 */
export interface AuthAdapter {
  /**
   * Where a person signs in, with an S256 challenge of PKCE.
   *
   * @throws TokenEndpointAwayError
   */
  authorizationUrl(ask: { callbackUrl: string; state: string; codeChallenge: string }): Promise<string>;
  /** @throws TokenRefusedError, TokenEndpointAwayError */
  exchangeCode(grant: { code: string; callbackUrl: string; codeVerifier: string }): Promise<TokenSet>;
  /** The refresh token in the answer is the one to keep. @throws TokenRefusedError, TokenEndpointAwayError */
  refreshToken(refreshToken: string): Promise<TokenSet>;
}
