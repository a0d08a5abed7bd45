import type { FetchLike, OAuthTokens } from '@modelcontextprotocol/client';
import { clientAuthentication, sdkMetadata, type OAuthClientIdentity } from './client.js';
import type { AuthorizationServer } from './discovery.js';
import { OAuthFetchError, TokenEndpointUnreachableError, TokenRefusedError } from './oauth-errors.js';
import { sdk } from './sdk.js';

/**
 * OAuth adapter implemented by a hosted server, for an authorization server that only its code knows. Each operation
 * may take 10 s.
 */
export interface AuthAdapter {
  /**
   * URL at which a person signs in, with an S256 PKCE challenge.
   *
   * @throws TokenEndpointUnreachableError
   */
  authorizationUrl(ask: { callbackUrl: string; state: string; codeChallenge: string }): Promise<string>;
  /** @throws TokenRefusedError, TokenEndpointUnreachableError */
  exchangeCode(grant: { code: string; callbackUrl: string; codeVerifier: string }): Promise<TokenSet>;
  /**
   * Refreshes tokens. The returned refresh token replaces the old one. @throws TokenRefusedError,
   * TokenEndpointUnreachableError
   */
  refreshToken(refreshToken: string): Promise<TokenSet>;
}

/** Tokens issued by an authorization server. */
export interface TokenSet {
  accessToken: string;
  /** Refresh token; without one (null) the authorization ends with the access token. */
  refreshToken: string | null;
  /** Lifetime; null if unspecified. */
  expiresInSeconds: number | null;
  /** Granted scopes; null if unspecified. */
  scopes: string | null;
}

/** Server, client and resource of a token request. */
export interface TokenContext {
  server: AuthorizationServer;
  client: OAuthClientIdentity;
  resource: string;
}

const TOKEN_CHARS_MAX = 32 * 1024;

/** Upper limit of a lifetime: ten years. Larger values overflow some date types. */
const LIFETIME_SECONDS_MAX = 10 * 365 * 24 * 3_600;

/**
 * Permanent refusals: RFC 6749 section 5.2, RFC 8707 section 2, OpenID Connect Core section 3.1.2.6, and GitHub's own.
 * Other codes may come from a proxy or firewall and count as transient.
 */
const FINAL_REFUSALS: ReadonlySet<string> = new Set([
  'invalid_grant',
  'invalid_client',
  'unauthorized_client',
  'invalid_request',
  'unsupported_grant_type',
  'invalid_scope',
  'invalid_target',
  'access_denied',
  'interaction_required',
  'login_required',
  'consent_required',
  'bad_refresh_token',
  'incorrect_client_credentials',
]);

/**
 * Exchanges an authorization code.
 *
 * @throws TokenRefusedError, TokenEndpointUnreachableError
 */
export function exchangeCode(
  fetch: FetchLike,
  context: TokenContext,
  grant: { code: string; codeVerifier: string; redirectUri: string; iss: string | undefined },
): Promise<TokenSet> {
  const { code: authorizationCode, ...rest } = grant;
  return requestTokens(fetch, context, (issuer, options) =>
    sdk().exchangeAuthorization(issuer, { ...options, ...rest, authorizationCode }),
  );
}

/**
 * Requests a new access token. The result contains the refresh token to store: a rotated one, or the one sent.
 *
 * @throws TokenRefusedError, TokenEndpointUnreachableError
 */
export function refreshTokens(fetch: FetchLike, context: TokenContext, refreshToken: string): Promise<TokenSet> {
  return requestTokens(fetch, context, (issuer, options) =>
    sdk().refreshAuthorization(issuer, { ...options, refreshToken }),
  );
}

/** Revokes a token at the server (RFC 7009). False when the server could not be reached or refused. */
export async function revokeToken(
  fetch: FetchLike,
  { server, client }: Omit<TokenContext, 'resource'>,
  token: string,
  kind: 'refresh_token' | 'access_token',
): Promise<boolean> {
  if (server.revocationEndpoint === null) return false;
  const headers = new Headers({ 'content-type': 'application/x-www-form-urlencoded' });
  const params = new URLSearchParams({ token, token_type_hint: kind });
  await clientAuthentication(client, server)(headers, params, server.revocationEndpoint);
  try {
    return (await fetch(server.revocationEndpoint, { method: 'POST', headers, body: params })).ok;
  } catch (error) {
    if (error instanceof OAuthFetchError) return false;
    throw error;
  }
}

/**
 * Seconds from now until a token must be renewed: 60 s or a tenth of its lifetime before expiry, whichever is more;
 * half of its lifetime for one so short that it would be due at once.
 */
export function dueInSeconds(expiresInSeconds: number): number {
  return expiresInSeconds - Math.min(Math.max(60, expiresInSeconds / 10), expiresInSeconds / 2);
}

/** True when the client was refused, not the grant. */
export function isClientRefusal({ code }: TokenRefusedError): boolean {
  return code === 'invalid_client' || code === 'unauthorized_client' || code === 'incorrect_client_credentials';
}

async function requestTokens(
  fetch: FetchLike,
  context: TokenContext,
  request: (issuer: string, options: ReturnType<typeof sdkOptions>) => Promise<OAuthTokens>,
): Promise<TokenSet> {
  const { server } = context;
  const { host } = new URL(server.tokenEndpoint);
  let answer: OAuthTokens;
  try {
    answer = await request(server.issuer, sdkOptions(fetch, context));
  } catch (error) {
    if (error instanceof sdk().OAuthError && FINAL_REFUSALS.has(error.code))
      throw new TokenRefusedError(error.code, host);
    // The response is not quoted: it may contain the tokens.
    throw new TokenEndpointUnreachableError(
      error instanceof OAuthFetchError ? error.message : `${host} gave no answer of a token endpoint.`,
    );
  }
  const { access_token: accessToken, refresh_token: refreshToken, token_type: type, expires_in: expiresIn } = answer;
  const tokens = tokenSetOf({ accessToken, refreshToken, expiresIn });
  if (!tokens || type.toLowerCase() !== 'bearer') {
    throw new TokenEndpointUnreachableError(`${host} gave a token that is no bearer token of up to 32 KB.`);
  }
  return { ...tokens, scopes: /^[\x20-\x7e]{1,4000}$/.test(answer.scope ?? '') ? (answer.scope ?? null) : null };
}

/** Options of every token request of the SDK. */
function sdkOptions(fetch: FetchLike, { server, client, resource }: TokenContext) {
  return {
    metadata: sdkMetadata(server),
    clientInformation: { client_id: client.clientId },
    resource,
    addClientAuthentication: clientAuthentication(client, server),
    // 5xx throws before the SDK parses: a failing server may answer anything.
    fetchFn: async (url: string | URL, init?: RequestInit) => {
      const response = await fetch(url, init);
      if (response.status < 500 && response.status !== 429 && response.status !== 408) return response;
      throw new OAuthFetchError(`${new URL(url).host} answered ${response.status}.`);
    },
  };
}

/**
 * Validates tokens from outside; scopes are unknown. Null when the access token does not fit a header, or a token is
 * longer than 32 KB. A lifetime that is not a positive number counts as unspecified.
 */
export function tokenSetOf(response: {
  accessToken?: unknown;
  refreshToken?: unknown;
  expiresIn?: unknown;
}): TokenSet | null {
  const { accessToken, refreshToken, expiresIn } = response;
  if (typeof accessToken !== 'string' || accessToken.length > TOKEN_CHARS_MAX) return null;
  if (!/^[\x21-\x7e]+$/.test(accessToken)) return null;
  const isLasting = typeof refreshToken === 'string' && refreshToken !== '';
  if (isLasting && refreshToken.length > TOKEN_CHARS_MAX) return null;
  return {
    accessToken,
    refreshToken: isLasting ? refreshToken : null,
    expiresInSeconds:
      typeof expiresIn !== 'number' || !Number.isFinite(expiresIn) || expiresIn <= 0
        ? null
        : Math.min(Math.floor(expiresIn), LIFETIME_SECONDS_MAX),
    scopes: null,
  };
}
