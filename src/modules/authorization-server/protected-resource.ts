/**
 * The documents by which clients discover the authorization server (RFC 9728, RFC 8414), and the addresses of the MCP endpoints as OAuth
 * resources. The `resource` of protected resource metadata is the requested address exactly. Hosts come from `PUBLIC_URL`, never from
 * `Host`; while `PUBLIC_URL` is local, the loopback names with its port are accepted as well.
 */
import type { IncomingMessage } from 'node:http';
import { LOOPBACK_HOST, type Env } from '../../config/env.js';
import { parseUrl } from '../../config/parse-url.js';
import { askedUrl } from '../../platform/http/adapter.js';
import { canonicalPath } from '../../platform/http/canonical-path.js';
import { mcpEndpointAt, pathOfEndpoint, type McpEndpoint } from '../auth/mcp-endpoint.access.js';
import { MCP_SCOPE, paths } from './authorization-server.types.js';

const RESOURCE_METADATA = '/.well-known/oauth-protected-resource';

/** Returns the issuer, an origin: issuers with a path fail in some clients. */
export function issuerOf({ baseUrl }: Env): string {
  return new URL(baseUrl).origin;
}

/** @returns null if there is an authorization server */
export function offReason(env: Env): string | null {
  const { oauth, publicUrl, isLocalOnly, baseUrl } = env;
  if (oauth === 'off') return 'OAUTH=off.';
  const url = new URL(baseUrl);
  if (url.pathname !== '/')
    return `PUBLIC_URL has a path (${url.pathname}): MCP clients log in only at a host of its own.`;
  if (oauth === 'on' || isLocalOnly) return null;
  if (publicUrl === null) return 'PUBLIC_URL is not set: clients elsewhere need an https address of the service.';
  // Logins at a loopback address do not leave this machine. The listening address says nothing: containers listen on all.
  return url.protocol === 'https:' || LOOPBACK_HOST.test(url.hostname)
    ? null
    : 'PUBLIC_URL is not https: browsers and clients would send logins in clear text.';
}

function isOwnOrigin(url: URL, env: Env): boolean {
  const base = new URL(env.baseUrl);
  if (url.origin === base.origin) return true;
  return env.isLocalOnly && url.protocol === 'http:' && url.port === base.port && LOOPBACK_HOST.test(url.hostname);
}

function askedOrigin({ headers }: IncomingMessage, env: Env): string {
  const url = parseUrl(`http://${headers.host ?? ''}`);
  return env.isLocalOnly && url && isOwnOrigin(url, env) ? url.origin : issuerOf(env);
}

/** Returns the endpoint of a resource indicator (RFC 8707); null for anything else. Ignores one trailing slash. */
export function endpointOfResource(resource: string, env: Env): McpEndpoint | null {
  const url = parseUrl(resource);
  return url && isOwnOrigin(url, env) ? mcpEndpointAt(canonicalPath(url.pathname)) : null;
}

export function resourceOf(endpoint: McpEndpoint, env: Env): string {
  return issuerOf(env) + pathOfEndpoint(endpoint);
}

/** Returns the URL of the metadata, with the host as spelt in the request; it is safe in a quoted value of a header. */
export function metadataUrl(request: IncomingMessage, env: Env): string {
  const [path = ''] = askedUrl(request).split('?');
  return askedOrigin(request, env) + RESOURCE_METADATA + path.replace(/["\\]/g, encodeURIComponent);
}

export function wellKnown(request: IncomingMessage, env: Env): object | null {
  const [path = '', query] = (request.url ?? '').split('?');
  if (path.startsWith(`${RESOURCE_METADATA}/`)) {
    const resourcePath = path.slice(RESOURCE_METADATA.length);
    if (!mcpEndpointAt(canonicalPath(resourcePath))) return null;
    return {
      resource: askedOrigin(request, env) + resourcePath + (query === undefined ? '' : `?${query}`),
      authorization_servers: [issuerOf(env)],
      scopes_supported: [MCP_SCOPE],
      bearer_methods_supported: ['header'],
      resource_documentation: `${env.baseUrl}/docs/guides/log-in-by-url.md`,
    };
  }
  if (path === '/.well-known/oauth-authorization-server') return serverMetadata(env);
  if (path !== '/.well-known/openid-configuration') return null;
  // Members that parsers of this document demand; ID tokens are never issued.
  return {
    ...serverMetadata(env),
    jwks_uri: issuerOf(env) + paths.jwks,
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
  };
}

function serverMetadata(env: Env): object {
  const issuer = issuerOf(env);
  const methods = ['none', 'client_secret_post', 'client_secret_basic', 'private_key_jwt'];
  const algorithms = ['RS256', 'ES256', 'PS256'];
  return {
    issuer,
    authorization_endpoint: issuer + paths.authorize,
    token_endpoint: issuer + paths.token,
    registration_endpoint: issuer + paths.register,
    revocation_endpoint: issuer + paths.revoke,
    scopes_supported: [MCP_SCOPE, 'offline_access'],
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_methods_supported: methods,
    token_endpoint_auth_signing_alg_values_supported: algorithms,
    revocation_endpoint_auth_methods_supported: methods,
    revocation_endpoint_auth_signing_alg_values_supported: algorithms,
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: true,
    service_documentation: `${env.baseUrl}/docs/guides/log-in-by-url.md`,
  };
}
