import { rewriteMembers } from '../protocol/json-edit.js';

/** Scheme that hosts of MCP Apps require for a tool's page. */
const SCHEME = 'ui://';

/** Members of a tool's `_meta` that name its page, besides `ui.resourceUri`. */
const PAGE_KEYS = new Set(['ui/resourceUri', 'openai/outputTemplate']);

/** Rewrites the URIs of the pages that `_meta` names (MCP Apps). */
export function rewriteAppUris(tool: string, rewrite: (uri: string) => string): string {
  // Most tools have none, and are not parsed.
  if (!tool.includes('esourceUri') && !tool.includes('outputTemplate')) return tool;
  const uri = (value: string) => {
    const page: unknown = JSON.parse(value);
    const next = typeof page === 'string' ? rewrite(page) : page;
    return next === page ? value : JSON.stringify(next);
  };
  const members = (value: string, change: (key: string, member: string) => string) =>
    value.startsWith('{') ? rewriteMembers(value, change) : value;
  const inUi = (value: string) => members(value, (key, member) => (key === 'resourceUri' ? uri(member) : member));
  const inMeta = (value: string) =>
    members(value, (key, member) => (key === 'ui' ? inUi(member) : PAGE_KEYS.has(key) ? uri(member) : member));
  return members(tool, (name, value) => (name === '_meta' ? inMeta(value) : value));
}

export function appUrisOf(tools: readonly { text: string }[]): Set<string> {
  const uris = new Set<string>();
  for (const { text } of tools) {
    rewriteAppUris(text, (uri) => {
      uris.add(uri);
      return uri;
    });
  }
  return uris;
}

/** Returns a URI that differs from those of all other connections. */
export function uniqueAppUri(connectionId: string, uri: string): string {
  return `${SCHEME}${connectionId}/${uri}`;
}

export function readAppUri(uri: string): { connectionId: string; rest: string } | null {
  const slash = uri.startsWith(SCHEME) ? uri.indexOf('/', SCHEME.length) : -1;
  const rest = uri.slice(slash + 1);
  if (slash < 0 || !/^[a-z][a-z0-9+.-]*:/i.test(rest)) return null;
  return { connectionId: uri.slice(SCHEME.length, slash), rest };
}
