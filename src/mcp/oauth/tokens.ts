import {
  exchangeAuthorization,
  OAuthError,
  refreshAuthorization,
  type FetchLike,
  type OAuthTokens,
} from '@modelcontextprotocol/client';
import { clientAuthentication, sdkMetadata, type OAuthClientIdentity } from './client.js';
import type { AuthorizationServer } from './discovery.js';
import { OAuthFetchError, TokenEndpointAwayError, TokenRefusedError } from './oauth-errors.js';

/** What an authorization server gave us. */
export interface TokenSet {
  accessToken: string;
  /** Null when none was given: the end of the access token is then the end of the authorization. */
  refreshToken: string | null;
  /** Null when the server does not say. */
  expiresInSeconds: number | null;
  /** What was granted, if it says so. */
  scopes: string | null;
}

/** Where and as whom tokens are asked for. */
export interface TokenContext {
  server: AuthorizationServer;
  client: OAuthClientIdentity;
  resource: string;
}

const TOKEN_CHARS_MAX = 32 * 1024;

/** A lifetime beyond ten years is as good as this, and does not fit every calendar. */
const LIFETIME_SECONDS_MAX = 10 * 365 * 24 * 3_600;

/**
 * Refusals that no repetition changes: RFC 6749 section 5.2, RFC 8707 section 2, OpenID Connect Core section 3.1.2.6, and
 * GitHub's own. Any other word may come from a proxy or firewall in between, and changes nothing.
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
 * @throws TokenRefusedError, TokenEndpointAwayError
 */
export function exchangeCode(
  fetch: FetchLike,
  { server, client, resource }: TokenContext,
  grant: { code: string; codeVerifier: string; redirectUri: string; iss: string | undefined },
): Promise<TokenSet> {
  return asked(server, () =>
    exchangeAuthorization(server.issuer, {
      metadata: sdkMetadata(server),
      clientInformation: { client_id: client.clientId },
      authorizationCode: grant.code,
      codeVerifier: grant.codeVerifier,
      redirectUri: grant.redirectUri,
      iss: grant.iss,
      resource,
      addClientAuthentication: clientAuthentication(client, server),
      fetchFn: tokenFetch(fetch),
    }),
  );
}

/**
 * Asks for a new access token. The refresh token in the answer is the one to keep: a rotated one, or the one sent.
 *
 * @throws TokenRefusedError, TokenEndpointAwayError
 */
export function refreshTokens(
  fetch: FetchLike,
  { server, client, resource }: TokenContext,
  refreshToken: string,
): Promise<TokenSet> {
  return asked(server, () =>
    refreshAuthorization(server.issuer, {
      metadata: sdkMetadata(server),
      clientInformation: { client_id: client.clientId },
      refreshToken,
      resource,
      addClientAuthentication: clientAuthentication(client, server),
      fetchFn: tokenFetch(fetch),
    }),
  );
}

/** Tells the server that a token is no longer used (RFC 7009). False when it cannot be told. */
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
 * When a token must be renewed, counted from now: 60 s or a tenth of its life before it ends, whichever is more; half of its
 * life for one so short that it would be due at once.
 */
export function dueInSeconds(expiresInSeconds: number): number {
  return expiresInSeconds - Math.min(Math.max(60, expiresInSeconds / 10), expiresInSeconds / 2);
}

/** A server in trouble may answer anything, so its errors are not read. */
function tokenFetch(fetch: FetchLike): FetchLike {
  return async (url, init) => {
    const response = await fetch(url, init);
    if (response.status < 500 && response.status !== 429 && response.status !== 408) return response;
    throw new OAuthFetchError(`${new URL(url).host} answered ${response.status}.`);
  };
}

/** True when it is us who are refused, not the grant. */
export function isClientRefusal({ code }: TokenRefusedError): boolean {
  return code === 'invalid_client' || code === 'unauthorized_client' || code === 'incorrect_client_credentials';
}

async function asked(server: AuthorizationServer, request: () => Promise<OAuthTokens>): Promise<TokenSet> {
  const { host } = new URL(server.tokenEndpoint);
  let answer: OAuthTokens;
  try {
    answer = await request();
  } catch (error) {
    if (error instanceof OAuthError && FINAL_REFUSALS.has(error.code)) throw new TokenRefusedError(error.code, host);
    // What the endpoint said is not repeated: it may quote the tokens it was sent.
    throw new TokenEndpointAwayError(
      error instanceof OAuthFetchError ? error.message : `${host} gave no answer that RFC 6749 describes.`,
    );
  }
  const { access_token: accessToken, refresh_token: refreshToken, token_type: type, expires_in: expiresIn } = answer;
  const tokens = tokenSetOf({ accessToken, refreshToken, expiresIn });
  if (!tokens || type.toLowerCase() !== 'bearer') {
    throw new TokenEndpointAwayError(`${host} gave a token that is no bearer token of up to 32 KB.`);
  }
  return { ...tokens, scopes: /^[\x20-\x7e]{1,4000}$/.test(answer.scope ?? '') ? (answer.scope ?? null) : null };
}

/**
 * Tokens as they came from outside, of unknown scopes; null when the access token is none that fits a header, or one of
 * them is longer than 32 KB. A lifetime that is no positive number of seconds counts as not said.
 */
export function tokenSetOf(given: {
  accessToken?: unknown;
  refreshToken?: unknown;
  expiresIn?: unknown;
}): TokenSet | null {
  const { accessToken, refreshToken, expiresIn } = given;
  if (typeof accessToken !== 'string' || accessToken.length > TOKEN_CHARS_MAX) return null;
  if (!/^[\x21-\x7e]+$/.test(accessToken)) return null;
  const isLasting = typeof refreshToken === 'string' && refreshToken !== '';
  if (isLasting && refreshToken.length > TOKEN_CHARS_MAX) return null;
  return {
    accessToken,
    refreshToken: isLasting ? refreshToken : null,
    expiresInSeconds: lifetimeOf(expiresIn),
    scopes: null,
  };
}

function lifetimeOf(expiresIn: unknown): number | null {
  if (typeof expiresIn !== 'number' || !Number.isFinite(expiresIn) || expiresIn <= 0) return null;
  return Math.min(Math.floor(expiresIn), LIFETIME_SECONDS_MAX);
}
