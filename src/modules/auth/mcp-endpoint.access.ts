/**
 * The MCP endpoints of the service, by their addresses. OAuth access tokens are bound to one of them, and a 401 of one of them
 * tells a client how to get a token (RFC 9728).
 *
 * Words on the wire: `/connect/{namespace}/{connectionId}/mcp` (a connection), `/connect/{namespace}/.mcp` (all connections of a
 * namespace), `/run/{slug}` and `/run/{slug}/mcp` (a registered server, one endpoint).
 *
 * A browser that opens one of them is led to its page below `/ui/`, by the path alone: alike for what exists and what does not.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { askedUrl } from '../../platform/http/adapter.js';
import type { TargetName } from '../targets/target.types.js';
import { rootFrom, wantsPage } from '../../platform/pages/page.js';

/** Prefix of OAuth access tokens, which secret scanners recognise. */
export const TOKEN_PREFIX = 'slipway_oat_';

const CONNECTION = /^\/connect\/([^/]+)\/(?:([^/]+)\/mcp|\.mcp)$/;
const SERVER = /^\/run\/([^/]+)(?:\/mcp)?$/;

/** What an MCP endpoint leads to, by names. */
export type McpEndpoint =
  | (TargetName & { kind: 'connection' | 'namespace' })
  /** Slugs are unique in lower case. */
  | { kind: 'server'; slug: string };

/** The endpoint at a canonical path without its query; null for every other path. It says nothing about whether it exists. */
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
    // Broken percent-encoding names nothing.
    return null;
  }
}

/** The one path of an endpoint: of those that lead to it, the one in tokens. */
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

/** The page of an endpoint, relative to the root of the service. */
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
 * Leads a browser from an MCP address to its page (303). A client of MCP sends a token, a session, or accepts an event stream:
 * it never gets this response.
 *
 * @param request with its canonical URL
 * @returns false for every other request, which is not answered
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
