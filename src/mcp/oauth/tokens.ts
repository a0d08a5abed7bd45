import type { AddClientAuthentication, FetchLike, OAuthTokens } from '@modelcontextprotocol/client';
import { visible } from '../../platform/text/quoted.js';
import { clientAuthentication, otherMethod, sdkMetadata, type OAuthClientIdentity } from './client.js';
import type { AuthorizationServer } from './discovery.js';
import { readDocument } from './foreign-documents.js';
import {
  blockedBy,
  OAuthFetchError,
  TokenEndpointUnreachableError,
  TokenRefusedError,
  UnclearRefusalError,
} from './oauth-errors.js';
import { sdk } from './sdk.js';

/**
 * OAuth adapter implemented by a hosted server, for an authorization server known only to its code. Each operation may
 * take 10 s.
 */
export interface AuthAdapter {
  /**
   * Returns the URL for a PKCE challenge with S256.
   *
   * @throws TokenEndpointUnreachableError
   */
  authorizationUrl(ask: { callbackUrl: string; state: string; codeChallenge: string }): Promise<string>;
  /** @throws TokenRefusedError, TokenEndpointUnreachableError */
  exchangeCode(grant: { code: string; callbackUrl: string; codeVerifier: string }): Promise<TokenSet>;
  /** Refreshes the tokens. The returned refresh token replaces the old one. @throws TokenRefusedError, TokenEndpointUnreachableError */
  refreshToken(refreshToken: string): Promise<TokenSet>;
}

export interface TokenSet {
  accessToken: string;
  /** Null if the authorization expires with the access token. */
  refreshToken: string | null;
  /** Null if unspecified. */
  expiresInSeconds: number | null;
  /** Null if unspecified. */
  scopes: string | null;
  /** Set if the server issued them only without `resource`: later requests omit it too. */
  withoutResource?: true;
  /** Set if the server accepted an authentication method other than the client's: later requests use it. */
  authMethod?: string;
}

export interface TokenContext {
  server: AuthorizationServer;
  client: OAuthClientIdentity;
  resource: string;
  /** Scopes to name in a refresh; absent for the granted ones (RFC 6749 section 6). */
  scopes?: string;
}

const TOKEN_CHARS_MAX = 32 * 1024;

/** Upper limit of a lifetime: ten years. Larger values overflow some date types. */
const LIFETIME_SECONDS_MAX = 10 * 365 * 24 * 3_600;

/**
 * Codes of permanent rejections: RFC 6749 section 5.2, RFC 8707 section 2, OpenID Connect Core section 3.1.2.6, and
 * GitHub's own. Other codes might come from a proxy or firewall and are treated as transient.
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

/** @throws TokenRefusedError, TokenEndpointUnreachableError */
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
 * Refreshes the tokens. The result contains the refresh token to store: a rotated one, or the one sent.
 *
 * @param scopes the granted ones, for a server that rejects a refresh without them
 * @throws TokenRefusedError, TokenEndpointUnreachableError
 */
export function refreshTokens(
  fetch: FetchLike,
  context: TokenContext,
  refreshToken: string,
  scopes: string | null,
): Promise<TokenSet> {
  const refresh: TokenRequest = (issuer, options) => sdk().refreshAuthorization(issuer, { ...options, refreshToken });
  return requestTokens(fetch, context, refresh, scopes);
}

/** Sends a request of RFC 7009. False when the server was unreachable or rejected it. */
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
 * Returns the seconds from now until a token must be renewed: 60 s or a tenth of its lifetime before expiry, whichever is more;
 * half of the lifetime of a token that would otherwise be due immediately.
 */
export function dueInSeconds(expiresInSeconds: number): number {
  return expiresInSeconds - Math.min(Math.max(60, expiresInSeconds / 10), expiresInSeconds / 2);
}

export function isClientRefusal({ code }: TokenRefusedError): boolean {
  return code === 'invalid_client' || code === 'unauthorized_client' || code === 'incorrect_client_credentials';
}

type TokenRequest = (issuer: string, options: ReturnType<typeof sdkOptions>) => Promise<OAuthTokens>;

/**
 * Requests tokens. A server might reject a parameter and not the grant: `resource` (RFC 8707 section 2), a refresh without `scope`, or
 * the form of the client's credentials. The request is then sent once without it or in the other form, which the result
 * names.
 */
async function requestTokens(
  fetch: FetchLike,
  context: TokenContext,
  request: TokenRequest,
  scopes: string | null = null,
): Promise<TokenSet> {
  try {
    return await requestOnce(fetch, context, request);
  } catch (error) {
    if (!(error instanceof TokenRefusedError)) throw error;
    const { code } = error;
    const { client, server, resource } = context;
    if (resource !== '' && (code === 'invalid_target' || code === 'invalid_request')) {
      const tokens = await requestOnce(fetch, { ...context, resource: '' }, request);
      return { ...tokens, withoutResource: true };
    }
    if (code === 'invalid_scope' && scopes) return requestOnce(fetch, { ...context, scopes }, request);
    const authMethod = code === 'invalid_client' ? otherMethod(client, server) : null;
    if (authMethod === null) throw error;
    const tokens = await requestOnce(fetch, { ...context, client: { ...client, authMethod } }, request);
    return { ...tokens, authMethod };
  }
}

async function requestOnce(fetch: FetchLike, context: TokenContext, request: TokenRequest): Promise<TokenSet> {
  const { server } = context;
  const { host } = new URL(server.tokenEndpoint);
  let answer: OAuthTokens;
  try {
    answer = await request(server.issuer, sdkOptions(fetch, context));
  } catch (error) {
    if (error instanceof sdk().OAuthError) {
      const description =
        error.message === '' || error.message === error.code ? '' : `: ${visible(error.message, 200)}`;
      const words = visible(error.code, 100) + description;
      if (FINAL_REFUSALS.has(error.code)) throw new TokenRefusedError(error.code, host, words);
      throw new UnclearRefusalError(`${host} refused the token request: ${words.replace(/\.$/, '')}.`);
    }
    // The response is not quoted: it can contain tokens.
    throw new TokenEndpointUnreachableError(
      error instanceof OAuthFetchError ? error.message : `${host} did not return a token response.`,
    );
  }
  const { access_token: accessToken, refresh_token: refreshToken, token_type: type, expires_in: expiresIn } = answer;
  const tokens = tokenSetOf({ accessToken, refreshToken, expiresIn });
  if (!tokens || type.toLowerCase() !== 'bearer') {
    throw new TokenEndpointUnreachableError(`${host} returned a token that is not a bearer token of at most 32 KB.`);
  }
  return { ...tokens, scopes: /^[\x20-\x7e]{1,4000}$/.test(answer.scope ?? '') ? (answer.scope ?? null) : null };
}

const UNKNOWN_CLIENT =
  /client[\s_-]*(?:id)?[\s_-]*(?:was|is)?[\s_-]*(?:not[\s_-]*found|unknown|unrecognized)|(?:unknown|unrecognized|invalid|no such)[\s_-]*client/i;

function sdkOptions(fetch: FetchLike, { server, client, resource, scopes }: TokenContext) {
  const authenticate = clientAuthentication(client, server);
  const addClientAuthentication: AddClientAuthentication = (headers, params, url) => {
    if (scopes !== undefined) params.set('scope', scopes);
    return authenticate(headers, params, url);
  };
  return {
    metadata: sdkMetadata(server),
    clientInformation: { client_id: client.clientId },
    resource,
    addClientAuthentication,
    // 5xx throws before the SDK parses: a failing server can send anything.
    fetchFn: async (url: string | URL, init?: RequestInit) => {
      const response = await fetch(url, init);
      const { host } = new URL(url);
      const { status } = response;
      const blocked = blockedBy(host, response.status, response.headers.get('content-type'));
      if (blocked) throw new OAuthFetchError(blocked);
      if (status >= 500 || status === 429 || status === 408) throw new OAuthFetchError(`${host} answered ${status}.`);
      const document = readDocument('tokens', await response.text());
      if (!document) throw new OAuthFetchError(`${host} did not return a token response.`);
      // Some servers report errors with status 200.
      if (response.ok && document.access_token !== undefined) {
        return Response.json({ token_type: 'Bearer', ...document });
      }
      const { error = 'no_code', error_description: words = '', message = '' } = document;
      const isClient = !FINAL_REFUSALS.has(error) && UNKNOWN_CLIENT.test(`${error} ${words} ${message}`);
      return Response.json({ error: isClient ? 'invalid_client' : error, error_description: words }, { status: 400 });
    },
  };
}

/**
 * Returns null when the access token does not fit a header, or a token is longer than 32 KB. A lifetime that is not a positive
 * number is treated as unspecified.
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
