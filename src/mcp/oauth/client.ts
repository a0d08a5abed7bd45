import type {
  AddClientAuthentication,
  AuthorizationServerMetadata,
  FetchLike,
  OAuthClientMetadata,
} from '@modelcontextprotocol/client';
import { visible } from '../../platform/text/quoted.js';
import type { AuthorizationServer, AuthorizationTarget } from './discovery.js';
import { readDocument } from './foreign-documents.js';
import { blockedBy, OAuthClientNeededError, OAuthFetchError, OAuthSetupError } from './oauth-errors.js';
import { sdk } from './sdk.js';

interface AuthorizationRequest extends Pick<AuthorizationTarget, 'server' | 'resource' | 'scopes'> {
  client: OAuthClientIdentity;
  redirectUri: string;
  state: string;
}

export interface OAuthClientIdentity {
  clientId: string;
  clientSecret: string | null;
  /** Client authentication method at the token endpoint; null to select one from the server's metadata. */
  authMethod: string | null;
  /** Expiry of the secret; null without one. */
  secretExpiresAt: Date | null;
}

const LOOPBACK = /^(localhost|.+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/** `client_secret_basic` without the encoding of RFC 6749 section 2.3.1, for servers that compare the bytes. */
const RAW_BASIC = 'client_secret_basic, not encoded';

const KNOWN_METHODS: ReadonlySet<string> = new Set(['none', 'client_secret_post', 'client_secret_basic', RAW_BASIC]);

export function clientMetadata(redirectUri: string, authMethod: string): OAuthClientMetadata {
  return {
    client_name: 'Slipway',
    redirect_uris: [redirectUri],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: authMethod,
    application_type: LOOPBACK.test(new URL(redirectUri).hostname) ? 'native' : 'web',
  };
}

/**
 * Registers the client by RFC 7591.
 *
 * @throws OAuthClientNeededError when the server does not offer registration or rejects this client; OAuthSetupError
 * when it cannot be reached now. Both contain the server's reason
 */
export async function registerAt(
  fetch: FetchLike,
  server: AuthorizationServer,
  redirectUri: string,
): Promise<OAuthClientIdentity> {
  const { issuer, registrationEndpoint } = server;
  if (registrationEndpoint === null) {
    throw new OAuthClientNeededError(
      issuer,
      `The authorization server ${issuer} registers no clients by itself, and does not read client metadata documents ` +
        'that Slipway could offer: ask whoever runs it to switch one of the two on.',
    );
  }
  // Basic if offered or nothing is announced (RFC 8414 section 2), then form fields, then none.
  const { tokenEndpointAuthMethods: offered } = server;
  const supported = ['client_secret_basic', 'client_secret_post', 'none'];
  const submitted = clientMetadata(
    redirectUri,
    (offered && supported.find((method) => offered.includes(method))) ?? 'client_secret_basic',
  );
  try {
    const registered = await sdk().registerClient(issuer, {
      metadata: sdkMetadata(server),
      clientMetadata: submitted,
      fetchFn: async (url, init) => {
        const response = await fetch(url, init);
        const blocked = blockedBy(new URL(url).host, response.status, response.headers.get('content-type'));
        if (blocked) throw new OAuthFetchError(blocked);
        if (!response.ok) return response;
        const document = readDocument('registration', await response.text());
        const { status } = response;
        // The library requires this field, which many servers do not repeat in the response.
        return new Response(JSON.stringify({ ...document, redirect_uris: submitted.redirect_uris }), { status });
      },
    });
    const expiresAt = registered.client_secret_expires_at ?? 0;
    return {
      clientId: registered.client_id,
      clientSecret: registered.client_secret ?? null,
      authMethod: registered.token_endpoint_auth_method ?? submitted.token_endpoint_auth_method ?? null,
      secretExpiresAt: expiresAt > 0 && expiresAt < 1e11 ? new Date(expiresAt * 1000) : null,
    };
  } catch (error) {
    const message = `The authorization server ${issuer} did not register Slipway: ${refusalReason(error)}`;
    const status = error instanceof sdk().RegistrationRejectedError ? error.status : 0;
    // 408, 429 and 5xx are transient.
    const isFinal = status >= 400 && status < 500 && status !== 408 && status !== 429;
    throw isFinal ? new OAuthClientNeededError(issuer, message) : new OAuthSetupError(message);
  }
}

/** Returns `error_description` and `error` of RFC 7591 section 3.2.2; otherwise only the status. */
function refusalReason(error: unknown): string {
  if (error instanceof OAuthFetchError) return error.message;
  if (!(error instanceof sdk().RegistrationRejectedError)) return 'its response is not a client registration.';
  let reason = '';
  try {
    const { error: code, error_description: text } = JSON.parse(error.body) as Record<string, unknown>;
    reason = [code, text].filter((part) => typeof part === 'string' && part !== '').join(': ');
  } catch {
    // A proxy's HTML page contains nothing useful.
  }
  return reason === '' ? `it answered ${error.status}.` : `${visible(reason, 300)} (status ${error.status}).`;
}

/** Replaces the SDK's authentication, which does not encode id and secret as RFC 6749 section 2.3.1 requires. */
export function clientAuthentication(
  client: OAuthClientIdentity,
  server: AuthorizationServer,
): AddClientAuthentication {
  const { clientId, clientSecret, authMethod } = client;
  // The registration response decides, not the metadata (RFC 7591 section 3.2.1).
  const method =
    authMethod !== null && KNOWN_METHODS.has(authMethod)
      ? authMethod
      : sdk().selectClientAuthMethod(
          { client_id: clientId, ...(clientSecret === null ? {} : { client_secret: clientSecret }) },
          server.tokenEndpointAuthMethods ?? [],
        );
  return (headers, params) => {
    if ((method === 'client_secret_basic' || method === RAW_BASIC) && clientSecret !== null) {
      const encoded = method === RAW_BASIC ? (text: string) => text : formEncoded;
      const credentials = `${encoded(clientId)}:${encoded(clientSecret)}`;
      headers.set('authorization', `Basic ${Buffer.from(credentials, 'utf8').toString('base64')}`);
      return;
    }
    params.set('client_id', clientId);
    if (method === 'client_secret_post' && clientSecret !== null) params.set('client_secret', clientSecret);
  };
}

/**
 * Returns null without another method. Some servers accept the secret by Basic only without encoding, and some only in the
 * form.
 */
export function otherMethod({ clientId, clientSecret, authMethod }: OAuthClientIdentity, server: AuthorizationServer) {
  const isBasic = authMethod === null || authMethod === 'client_secret_basic';
  if (clientSecret === null || !isBasic) return null;
  if (server.tokenEndpointAuthMethods?.includes('client_secret_post')) return 'client_secret_post';
  return formEncoded(clientId) === clientId && formEncoded(clientSecret) === clientSecret ? null : RAW_BASIC;
}

function formEncoded(text: string): string {
  return new URLSearchParams({ t: text }).toString().slice('t='.length);
}

export function sdkMetadata(server: AuthorizationServer): AuthorizationServerMetadata {
  return {
    issuer: server.answersAs ?? server.issuer,
    authorization_endpoint: server.authorizationEndpoint,
    token_endpoint: server.tokenEndpoint,
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: server.sendsIss,
    ...(server.registrationEndpoint === null ? {} : { registration_endpoint: server.registrationEndpoint }),
    ...(server.tokenEndpointAuthMethods === null
      ? {}
      : { token_endpoint_auth_methods_supported: server.tokenEndpointAuthMethods }),
  };
}

/** Returns the URL, and the PKCE verifier that proves that the code was issued to Slipway (RFC 7636). */
export async function authorizationUrl(request: AuthorizationRequest): Promise<{ url: string; codeVerifier: string }> {
  const { server, client, redirectUri, resource, scopes, state } = request;
  const { authorizationUrl: url, codeVerifier } = await sdk().startAuthorization(server.issuer, {
    metadata: sdkMetadata(server),
    clientInformation: { client_id: client.clientId },
    redirectUrl: redirectUri,
    scope: scopes ?? undefined,
    state,
    resource: resource === '' ? undefined : resource,
  });
  return { url: url.href, codeVerifier };
}

/** Returns true when `iss` of a response matches the issuer, or is absent and not announced (RFC 9207 section 2.4). */
export function isFromServer(
  server: Pick<AuthorizationServer, 'issuer' | 'answersAs' | 'sendsIss'>,
  iss: string | undefined,
): boolean {
  try {
    sdk().validateAuthorizationResponseIssuer({
      iss,
      expectedIssuer: server.answersAs ?? server.issuer,
      issParameterSupported: server.sendsIss,
    });
    return true;
  } catch (error) {
    if (error instanceof sdk().IssuerMismatchError) return false;
    throw error;
  }
}
