/**
 * Finds the authorization server of an MCP server.
 *
 * Order: the URLs in the challenges (`WWW-Authenticate: Bearer resource_metadata=…`), the well-known protected resource
 * metadata (RFC 9728), or the server's own origin without them (MCP 2025-03-26); then the metadata of the authorization
 * server (RFC 8414, OpenID Connect Discovery). A server without either has the default endpoints `/authorize`, `/token`
 * and `/register`, if its token endpoint responds like one.
 *
 * Every problem is an OAuthSetupError that names what is missing or invalid, and where: no PKCE with S256 (unless
 * listed in `OAUTH_PKCE_UNANNOUNCED`), an issuer other than announced, a resource that is not the called server,
 * endpoints without https, DPoP. An HTML page in place of a document is treated as a missing one; a 5xx is not, since
 * it can be temporary.
 */
import type {
  AuthorizationServerMetadata,
  FetchLike,
  OAuthProtectedResourceMetadata,
} from '@modelcontextprotocol/client';
import { toStorableText } from '../../platform/database/storable.js';
import { quote } from '../../platform/text/quoted.js';
import { parseUrl } from '../../config/parse-url.js';
import { bearerChallenge, type BearerChallenge } from './challenges.js';
import { blockedBy, NoAuthorizationServerError, OAuthFetchError, OAuthSetupError } from './oauth-errors.js';
import { readDocument } from './foreign-documents.js';
import { isPkceKnown } from './pkce.js';
import { sdk } from './sdk.js';

/** Limit of authorization servers, and of URLs of challenges, tried from a list. */
const TRIED_MAX = 4;

/** Error codes with which a token endpoint rejects a request without a code (RFC 6749 section 5.2). */
const TOKEN_ERRORS: ReadonlySet<unknown> = new Set(['invalid_request', 'invalid_client', 'invalid_grant']);

export interface AuthorizationServer {
  /** Issuer as spelled in its document, or as the owner chose it; compared as a string, never as a URL. */
  issuer: string;
  /** Issuer of its responses (RFC 9207), if its document names an issuer other than the owner's choice. */
  answersAs?: string;
  authorizationEndpoint: string;
  tokenEndpoint: string;
  registrationEndpoint: string | null;
  revocationEndpoint: string | null;
  /** Null if the server announces none. */
  tokenEndpointAuthMethods: string[] | null;
  /** True if the server supports client id metadata documents (CIMD): a URL as the client id. */
  readsClientDocuments: boolean;
  /** True if the server sends `iss` in responses (RFC 9207); a response without it is then rejected. */
  sendsIss: boolean;
  /**
   * Registry server whose hosted code replaces the authorization server, such as `acme/weather`; absent for a real one.
   * The members above are then placeholders.
   */
  adapter?: string;
}

export interface AuthorizationTarget {
  server: AuthorizationServer;
  /** `resource` parameter, byte for byte as announced (RFC 8707); empty for a server that rejects the parameter. */
  resource: string;
  /**
   * Display name of the MCP server, from its metadata (RFC 9728 section 2), at most 200 characters; null without one.
   */
  resourceName: string | null;
  /** Space-separated scopes; null leaves the choice to the authorization server. */
  scopes: string | null;
}

export interface DiscoveryRequest {
  upstreamUrl: string;
  /** `WWW-Authenticate` headers of the response that required authorization. */
  challenge: readonly string[];
  /** Returns the issuers at which Slipway already has a client; they are tried first. */
  knownAmong: (issuers: readonly string[]) => Promise<ReadonlySet<string>>;
  /** Issuers known to support PKCE without announcing it; null for the built-in list. */
  pkceUnannounced: readonly string[] | null;
  /** The owner's choice: its issuer replaces the announced ones, its scopes the required ones. */
  chosen?: { issuer?: string; scopes?: readonly string[] };
}

/** @throws OAuthSetupError */
export async function discoverTarget(fetch: FetchLike, request: DiscoveryRequest): Promise<AuthorizationTarget> {
  const upstream = new URL(request.upstreamUrl);
  const challenge = bearerChallenge(request.challenge);
  const faults: string[] = [];
  const chosen = request.chosen?.issuer;
  const resourceMetadata = await findResource(fetch, upstream, challenge, faults).catch((error: unknown) => {
    // The owner's choice needs no metadata.
    if (chosen !== undefined && error instanceof OAuthSetupError) return null;
    throw error;
  });
  if (resourceMetadata?.dpop_bound_access_tokens_required === true) {
    throw new OAuthSetupError(`${upstream.host} takes only tokens bound to a key (DPoP), which Slipway cannot make.`);
  }
  const resource = resourceMetadata?.resource ?? canonicalUrl(upstream);
  const issuers = chosen === undefined ? (resourceMetadata?.authorization_servers ?? []) : [chosen];
  const candidates = issuers.length > 0 ? issuers.slice(0, TRIED_MAX) : [`${upstream.origin}/`];
  const knownIssuers = candidates.length > 1 ? await request.knownAmong(candidates) : new Set<string>();
  const sorted = candidates.toSorted((a, b) => Number(knownIssuers.has(b)) - Number(knownIssuers.has(a)));
  let server: AuthorizationServer | null = null;
  let metadata: AuthorizationServerMetadata | null = null;
  let firstError: OAuthSetupError | null = null;
  for (const issuer of sorted) {
    try {
      metadata = await findServer(fetch, issuer, faults, chosen !== undefined);
      if (metadata) {
        server = checkedServer(metadata, request.pkceUnannounced);
        // Clients belong to the chosen issuer: a document must not claim those of another issuer.
        if (chosen !== undefined && server.issuer !== chosen)
          server = { ...server, issuer: chosen, answersAs: server.issuer };
      } else if (issuers.length === 0) server = await defaultServer(fetch, upstream);
      if (server) break;
      const isAnnounced = issuers.length > 0 || resourceMetadata !== null || faults.length > 0;
      throw new (isAnnounced ? OAuthSetupError : NoAuthorizationServerError)(
        `No authorization server was found for ${upstream.host}: there is no metadata at ${quote(issuer, 200)}. ` +
          (faults[0] ??
            'The MCP server must publish protected resource metadata that names one, and that one its own metadata.'),
      );
    } catch (error) {
      if (!(error instanceof OAuthSetupError)) throw error;
      firstError ??= error;
    }
  }
  if (!server) throw firstError as OAuthSetupError;
  const requested = request.chosen?.scopes?.join(' ') ?? null;
  const scopes =
    requested ?? scopesOf(challenge?.scope ?? null) ?? scopesOf(resourceMetadata?.scopes_supported?.join(' ') ?? null);
  // If the server supports it, it is required for a refresh token (OpenID Connect Core section 11).
  const isOfflineMissing =
    requested === null &&
    scopes !== null &&
    metadata?.scopes_supported?.includes('offline_access') &&
    !scopes.split(' ').includes('offline_access');
  return {
    server,
    resource,
    resourceName:
      toStorableText(resourceMetadata?.resource_name ?? '')
        .trim()
        .slice(0, 200) || null,
    scopes: isOfflineMissing ? `${scopes} offline_access` : scopes,
  };
}

/**
 * Reads the URLs in the challenges, otherwise the well-known URLs, and uses the first document that describes this
 * resource. Relative URLs are resolved at the upstream's origin.
 */
async function findResource(
  fetch: FetchLike,
  upstream: URL,
  challenge: BearerChallenge | null,
  faults: string[],
): Promise<OAuthProtectedResourceMetadata | null> {
  const documents = onlyDocuments(fetch, 'resource', faults);
  const advertised = (challenge?.resourceMetadata ?? []).flatMap((text) => {
    const url = parseUrl(text) ?? parseUrl(text, upstream);
    return url && (url.origin === upstream.origin || parseUrl(text)) ? [url.href] : [];
  });
  let fault: OAuthSetupError | null = null;
  for (const url of [...[...new Set(advertised)].slice(0, TRIED_MAX), undefined]) {
    try {
      const attempt = { resourceMetadataUrl: url };
      const metadata = await sdk().discoverOAuthProtectedResourceMetadata(upstream, attempt, documents);
      return { ...metadata, resource: checkedResource(metadata.resource, upstream) };
    } catch (error) {
      if (error instanceof OAuthSetupError) fault ??= error;
      else if (error instanceof OAuthFetchError) {
        fault ??= new OAuthSetupError(`How to authorize at ${upstream.host} cannot be read: ${error.message}`);
      }
    }
  }
  if (fault) throw fault;
  return null;
}

/**
 * Returns null without metadata. Tries all URLs: a document with PKCE can exist next to one without it. An issuer announced
 * with a trailing slash whose metadata has none, or the other way round, gets the spelling of its metadata.
 *
 * @param isChosen true if the document may name any issuer
 */
async function findServer(
  fetch: FetchLike,
  issuer: string,
  faults: string[],
  isChosen: boolean,
  isRespelled = false,
): Promise<AuthorizationServerMetadata | null> {
  const visited = new Set<string>();
  let first: AuthorizationServerMetadata | null = null;
  for (;;) {
    let served: string | null = null;
    const documents = onlyDocuments(fetch, 'server', faults);
    const fetchFn: FetchLike = async (url, init) => {
      if (visited.has(String(url))) return new Response(null, { status: 404 });
      const response = await documents(url, init);
      if (response.ok) served = String(url);
      return response;
    };
    let metadata: AuthorizationServerMetadata | undefined;
    try {
      metadata = await sdk().discoverAuthorizationServerMetadata(issuer, { fetchFn, skipIssuerValidation: isChosen });
    } catch (error) {
      if (first) return first;
      const name = quote(issuer, 200);
      if (error instanceof sdk().IssuerMismatchError) {
        const { received } = error;
        if (received && !isRespelled && isSameButSlash(received, issuer)) {
          return findServer(fetch, received, faults, false, true);
        }
        throw new OAuthSetupError(
          `The metadata of the authorization server ${name} name another issuer, ${quote(error.received ?? 'none', 200)}: ` +
            'the two must be spelled alike, to the slash at the end, unless the owner of the connection sets "oauth": {"issuer": …}.',
        );
      }
      const reason = error instanceof OAuthFetchError ? error.message : 'it is not a valid metadata document.';
      throw new OAuthSetupError(`The metadata of the authorization server ${name} cannot be read: ${reason}`);
    }
    if (!metadata || served === null) return first;
    if (metadata.code_challenge_methods_supported) return metadata;
    first ??= metadata;
    visited.add(served);
  }
}

/**
 * Returns the default endpoints of MCP 2025-03-26, which requires PKCE of every server; null unless the token endpoint rejects
 * a request as RFC 6749 describes.
 */
async function defaultServer(fetch: FetchLike, { origin }: URL): Promise<AuthorizationServer | null> {
  const tokenEndpoint = `${origin}/token`;
  const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' };
  try {
    const response = await fetch(tokenEndpoint, { method: 'POST', headers, body: 'grant_type=authorization_code' });
    const { error } = (await response.json()) as { error?: unknown };
    if (response.ok || !TOKEN_ERRORS.has(error)) return null;
  } catch {
    return null;
  }
  return {
    issuer: origin,
    authorizationEndpoint: checkedEndpoint(`${origin}/authorize`, origin),
    tokenEndpoint: checkedEndpoint(tokenEndpoint, origin),
    registrationEndpoint: checkedEndpoint(`${origin}/register`, origin),
    revocationEndpoint: null,
    tokenEndpointAuthMethods: null,
    readsClientDocuments: false,
    sendsIss: false,
  };
}

function checkedServer(
  metadata: AuthorizationServerMetadata,
  pkceUnannounced: readonly string[] | null,
): AuthorizationServer {
  const { issuer } = metadata;
  const methods = metadata.code_challenge_methods_supported;
  if (methods ? !methods.includes('S256') : !isPkceKnown(issuer, pkceUnannounced)) {
    throw new OAuthSetupError(
      `The authorization server ${quote(issuer, 200)} does not announce PKCE with S256, which MCP requires. ` +
        'If it supports it all the same, an operator can list it in OAUTH_PKCE_UNANNOUNCED.',
    );
  }
  if (!metadata.response_types_supported.includes('code')) {
    throw new OAuthSetupError(`The authorization server ${quote(issuer, 200)} does not give authorization codes.`);
  }
  return {
    issuer: checkedText(issuer, 'issuer'),
    authorizationEndpoint: checkedEndpoint(metadata.authorization_endpoint, issuer),
    tokenEndpoint: checkedEndpoint(metadata.token_endpoint, issuer),
    registrationEndpoint: optionalEndpoint(metadata.registration_endpoint, issuer),
    revocationEndpoint: optionalEndpoint((metadata as { revocation_endpoint?: string }).revocation_endpoint, issuer),
    tokenEndpointAuthMethods:
      metadata.token_endpoint_auth_methods_supported?.map((method) => method.slice(0, 100)) ?? null,
    readsClientDocuments: metadata.client_id_metadata_document_supported === true,
    sendsIss: metadata.authorization_response_iss_parameter_supported === true,
  };
}

/** Requires https or a loopback host without user info, since Slipway sends credentials and users there. */
function checkedEndpoint(endpoint: string, issuer: string): string {
  try {
    sdk().assertSecureTokenEndpoint(endpoint);
  } catch {
    throw new OAuthSetupError(
      `The authorization server ${quote(issuer, 200)} names the endpoint ${quote(endpoint, 200)}, which is not https.`,
    );
  }
  const { username, password } = new URL(endpoint);
  if (username !== '' || password !== '') {
    throw new OAuthSetupError(
      `The authorization server ${quote(issuer, 200)} names the endpoint ${quote(endpoint, 200)}, which carries a user name or password.`,
    );
  }
  return checkedText(endpoint, 'endpoint');
}

function optionalEndpoint(endpoint: string | undefined, issuer: string): string | null {
  return endpoint === undefined ? null : checkedEndpoint(endpoint, issuer);
}

/** Accepts a parent path of the called server on the same origin, too. */
function checkedResource(resource: string, upstream: URL): string {
  let isAllowed = false;
  try {
    isAllowed = sdk().checkResourceAllowed({ requestedResource: upstream, configuredResource: resource });
  } catch {
    // This is not a URL of a host.
  }
  // Servers mounted under a path name it with a trailing slash.
  if (isAllowed || isSameButSlash(resource, canonicalUrl(upstream))) return checkedText(resource, 'resource');
  throw new OAuthSetupError(
    `${upstream.host} announces the resource ${quote(resource, 200)}, which is not ${quote(canonicalUrl(upstream), 200)} or a path above it: ` +
      'a token for it would be a token for another server.',
  );
}

function isSameButSlash(url: string, other: string): boolean {
  return url === `${other}/` || other === `${url}/`;
}

/** Returns the canonical resource URI of RFC 8707: no fragment and no added trailing slash. */
function canonicalUrl(upstream: URL): string {
  const url = new URL(upstream);
  url.hash = '';
  return url.pathname === '/' && url.search === '' ? url.origin : url.href;
}

/** Returns the scopes in the syntax of RFC 6749; null when none remain. */
function scopesOf(text: string | null): string | null {
  const scopes = (text ?? '').split(/\s+/).filter((scope) => /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/.test(scope));
  return [...new Set(scopes)].slice(0, 100).join(' ') || null;
}

const required = { resource: ['resource'], server: ['issuer', 'authorization_endpoint', 'token_endpoint'] } as const;

/**
 * Converts a 200 without such a document to a 404, so that the next URL is tried, and records the problem in `faults`.
 * Throws for server errors: a temporary failure must not be treated as missing metadata.
 */
function onlyDocuments(fetch: FetchLike, kind: keyof typeof required, faults: string[]): FetchLike {
  return async (url, init) => {
    const response = await fetch(url, init);
    const { host, pathname } = new URL(url);
    const blocked = blockedBy(host, response.status, response.headers.get('content-type'));
    if (response.status >= 500 && response.status !== 502) {
      throw new OAuthFetchError(blocked ?? `${host} answered ${response.status}.`);
    }
    if (blocked) faults.push(blocked);
    if (!response.ok) return response;
    const text = await response.text();
    const document = readDocument<'resource' | 'server'>(kind, text);
    const missing = document && required[kind].filter((name) => !Object.hasOwn(document, name));
    if (!document || missing === null || missing.length > 0) {
      if (missing) faults.push(`${host} answers ${pathname} with a document that lacks ${missing.join(', ')}.`);
      return new Response(null, { status: 404 });
    }
    // The library requires these fields, which are unused.
    const unused = { jwks_uri: `https://${host}/`, subject_types_supported: ['public'] };
    const ofOpenId = {
      ...unused,
      id_token_signing_alg_values_supported: ['RS256'],
      response_types_supported: ['code'],
    };
    const { status, headers } = response;
    return new Response(JSON.stringify(kind === 'server' ? { ...ofOpenId, ...document } : document), {
      status,
      headers,
    });
  };
}

function checkedText(text: string, field: string): string {
  // eslint-disable-next-line no-control-regex -- control characters are what it looks for
  if (text.length > 2_000 || /[\u0000-\u0020\u007f]/.test(text)) {
    throw new OAuthSetupError(`The ${field} of the authorization server is not a valid URL: ${quote(text, 200)}.`);
  }
  return text;
}
