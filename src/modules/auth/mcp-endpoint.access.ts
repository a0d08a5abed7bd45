/**
 * The MCP endpoints of the service, by their addresses. OAuth access tokens are bound to one of them, and a 401 of one of them
 * tells a client how to get a token (RFC 9728).
 *
 * Words on the wire: `/connect/{namespace}/{connectionId}/mcp` (a connection), `/connect/{namespace}/.mcp` (all connections of a
 * namespace), `/run/{slug}` and `/run/{slug}/mcp` (a registered server, one endpoint).
 */

/** Prefix of OAuth access tokens, which secret scanners recognise. */
export const TOKEN_PREFIX = 'slipway_oat_';

const CONNECTION = /^\/connect\/([^/]+)\/(?:([^/]+)\/mcp|\.mcp)$/;
const SERVER = /^\/run\/([^/]+)(?:\/mcp)?$/;

/** What an MCP endpoint leads to, by names. */
export type McpEndpoint =
  | { kind: 'connection'; namespace: string; connectionId: string }
  | { kind: 'namespace'; namespace: string }
  /** Slugs are unique in lower case. */
  | { kind: 'server'; slug: string };

/** The endpoint at a canonical path without its query; null for every other path. It says nothing about whether it exists. */
export function mcpEndpointAt(path: string): McpEndpoint | null {
  try {
    const [, namespace, connectionId] = CONNECTION.exec(path) ?? [];
    if (namespace !== undefined) {
      const owner = decodeURIComponent(namespace);
      return connectionId === undefined
        ? { kind: 'namespace', namespace: owner }
        : { kind: 'connection', namespace: owner, connectionId: decodeURIComponent(connectionId) };
    }
    const slug = SERVER.exec(path)?.[1];
    return slug === undefined ? null : { kind: 'server', slug: decodeURIComponent(slug).toLowerCase() };
  } catch {
    // Broken percent-encoding names nothing.
    return null;
  }
}

/** The one path of an endpoint: of those that lead to it, the one in tokens. */
export function pathOfEndpoint(endpoint: McpEndpoint): string {
  switch (endpoint.kind) {
    case 'connection': {
      const { namespace, connectionId } = endpoint;
      return `/connect/${encodeURIComponent(namespace)}/${encodeURIComponent(connectionId)}/mcp`;
    }
    case 'namespace':
      return `/connect/${encodeURIComponent(endpoint.namespace)}/.mcp`;
    case 'server':
      return `/run/${encodeURIComponent(endpoint.slug)}`;
  }
}
