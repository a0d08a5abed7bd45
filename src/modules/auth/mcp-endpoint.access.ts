/**
 * The addresses of Slipway's MCP endpoints: `/connect/{namespace}/{connectionId}/mcp` (a connection), `/connect/{namespace}/.mcp` (all
 * connections of a namespace), `/run/{slug}` and `/run/{slug}/mcp` (a registered server, one endpoint). OAuth access tokens are bound to
 * one of them (RFC 9728).
 *
 * A browser that opens one is redirected to its page under `/ui/`, by the path alone, so the redirect does not reveal whether the target
 * exists.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { askedUrl } from '../../platform/http/adapter.js';
import type { TargetName } from '../targets/target.types.js';
import { rootFrom, wantsPage } from '../../platform/pages/page.js';

/** Prefix of OAuth access tokens, which secret scanners recognise. */
export const TOKEN_PREFIX = 'slipway_oat_';

const CONNECTION = /^\/connect\/([^/]+)\/(?:([^/]+)\/mcp|\.mcp)$/;
const SERVER = /^\/run\/([^/]+)(?:\/mcp)?$/;

/** The target of an MCP endpoint, by name. */
export type McpEndpoint =
  | (TargetName & { kind: 'connection' | 'namespace' })
  /** Slugs are unique in lower case. */
  | { kind: 'server'; slug: string };

/** @returns null for a path that is not an endpoint's; does not check whether the endpoint exists */
export function mcpEndpointAt(path: string): McpEndpoint | null {
  try {
    const [, namespace, connectionId] = CONNECTION.exec(path) ?? [];
    if (namespace !== undefined) {
      const owner = decodeURIComponent(namespace);
      return connectionId === undefined
        ? { kind: 'namespace', namespace: owner, name: '' }
        : { kind: 'connection', namespace: owner, name: decodeURIComponent(connectionId) };
    }
    const slug = SERVER.exec(path)?.[1];
    return slug === undefined ? null : { kind: 'server', slug: decodeURIComponent(slug).toLowerCase() };
  } catch {
    // Broken percent-encoding.
    return null;
  }
}

/** Returns the canonical path of an endpoint, which tokens use. */
export function pathOfEndpoint(endpoint: McpEndpoint): string {
  switch (endpoint.kind) {
    case 'connection': {
      const { namespace, name } = endpoint;
      return `/connect/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}/mcp`;
    }
    case 'namespace':
      return `/connect/${encodeURIComponent(endpoint.namespace)}/.mcp`;
    case 'server':
      return `/run/${encodeURIComponent(endpoint.slug)}`;
  }
}

function pageOfEndpoint(endpoint: McpEndpoint): string {
  switch (endpoint.kind) {
    case 'connection':
      return `ui/c/${encodeURIComponent(endpoint.namespace)}/${encodeURIComponent(endpoint.name)}`;
    case 'namespace':
      return `ui/n/${encodeURIComponent(endpoint.namespace)}`;
    case 'server':
      return `ui/s/${encodeURIComponent(endpoint.slug)}`;
  }
}

/**
 * Redirects browsers to the page (303). MCP clients send a token or a session, or accept an event stream, and are not redirected.
 *
 * @param request with its canonical URL
 */
export function leadToPage(request: IncomingMessage, response: ServerResponse): boolean {
  const { accept = '', authorization, 'mcp-session-id': session } = request.headers;
  if (!wantsPage(request) || authorization !== undefined || session !== undefined) return false;
  if (accept.includes('text/event-stream')) return false;
  const endpoint = mcpEndpointAt((request.url ?? '').split('?')[0]);
  if (!endpoint) return false;
  response.appendHeader('vary', 'Accept');
  response.writeHead(303, {
    location: rootFrom(askedUrl(request)) + pageOfEndpoint(endpoint),
    'cache-control': 'no-store',
  });
  response.end();
  return true;
}
