/**
 * An authorization server and the MCP server that it protects, every answer of which a test may change: the quirks of public
 * providers. Registers everybody, asks nobody, and takes any token that it gave.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { listen, shut } from '../upstream/upstream-net.js';

/** Body of an answer: an object as JSON, a text as it is. */
export interface QuirkyAnswer {
  status?: number;
  type?: string;
  headers?: Record<string, string>;
  body: object | string;
}

/** Endpoint of the provider. */
export type QuirkyEndpoint = 'resource' | 'server' | 'openid' | 'register' | 'authorize' | 'token' | 'mcp';

/** A request as it came. */
export interface QuirkyRequest {
  endpoint: QuirkyEndpoint;
  /** Path and query. */
  url: string;
  params: URLSearchParams;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Changes an answer; undefined leaves it, null sends nothing but 404. */
export type Quirk = (request: QuirkyRequest, answer: QuirkyAnswer) => QuirkyAnswer | null | undefined | void;

/** A running provider. */
export interface QuirkyProvider {
  origin: string;
  mcpUrl: string;
  seen: QuirkyRequest[];
  /** The quirk in force. */
  quirk: Quirk;
  of(endpoint: QuirkyEndpoint): QuirkyRequest[];
  close(): Promise<void>;
}

const places: [RegExp, QuirkyEndpoint][] = [
  [/^\/\.well-known\/oauth-protected-resource/, 'resource'],
  [/^\/\.well-known\/oauth-authorization-server/, 'server'],
  [/openid-configuration$/, 'openid'],
  [/^\/register$/, 'register'],
  [/^\/authorize$/, 'authorize'],
  [/^\/token$/, 'token'],
];

/** Starts a provider on loopback. */
export async function startQuirky(): Promise<QuirkyProvider> {
  const server = createServer((request, response) => void serve(request, response));
  const origin = `http://127.0.0.1:${await listen(server)}`;
  const provider: QuirkyProvider = {
    origin,
    mcpUrl: `${origin}/mcp`,
    seen: [],
    quirk: () => undefined,
    of: (endpoint) => provider.seen.filter((request) => request.endpoint === endpoint),
    close: () => shut(server),
  };
  let tokens = 0;

  function sound({ endpoint, params, headers, body }: QuirkyRequest): QuirkyAnswer {
    switch (endpoint) {
      case 'resource':
        return { body: { resource: provider.mcpUrl, authorization_servers: [origin], scopes_supported: ['read'] } };
      case 'server':
      case 'openid':
        return {
          body: {
            issuer: origin,
            authorization_endpoint: `${origin}/authorize`,
            token_endpoint: `${origin}/token`,
            registration_endpoint: `${origin}/register`,
            response_types_supported: ['code'],
            code_challenge_methods_supported: ['S256'],
            token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'none'],
          },
        };
      case 'register':
        return {
          status: 201,
          body: {
            ...(JSON.parse(body) as object),
            client_id: 'the client',
            client_secret: 's+c/r=t:%',
            client_secret_expires_at: 0,
          },
        };
      case 'authorize': {
        const location = `${params.get('redirect_uri')}?${new URLSearchParams({ code: 'c', state: params.get('state') ?? '' }).toString()}`;
        return { status: 302, headers: { location }, body: '' };
      }
      case 'token':
        tokens += 1;
        return {
          body: { access_token: `at-${tokens}`, refresh_token: `rt-${tokens}`, token_type: 'Bearer', expires_in: 3600 },
        };
      case 'mcp': {
        if (!headers.authorization?.startsWith('Bearer at-')) {
          const challenge = `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`;
          return { status: 401, headers: { 'www-authenticate': challenge }, body: {} };
        }
        const { id, method } = JSON.parse(body || '{}') as { id?: number; method?: string };
        if (id === undefined) return { status: 202, body: '' };
        if (method === 'server/discover')
          return { status: 400, body: { jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } } };
        const hello = {
          protocolVersion: '2025-11-25',
          capabilities: { tools: {} },
          serverInfo: { name: 'quirky', version: '1' },
        };
        const tools = { tools: [{ name: 'run', inputSchema: { type: 'object' } }] };
        const result = method === 'initialize' ? hello : method === 'tools/list' ? tools : { content: [] };
        return { body: { jsonrpc: '2.0', id, result } };
      }
    }
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', origin);
    const body = await text(request).catch(() => '');
    const endpoint = places.find(([place]) => place.test(pathname))?.[1] ?? 'mcp';
    const params = endpoint === 'token' ? new URLSearchParams(body) : searchParams;
    const seen = { endpoint, url: request.url ?? '/', params, headers: request.headers, body };
    provider.seen.push(seen);
    const usual = sound(seen);
    const changed = provider.quirk(seen, usual);
    const answer: QuirkyAnswer = changed === null ? { status: 404, body: {} } : (changed ?? usual);
    const { status = 200, headers = {}, type = 'application/json' } = answer;
    response.writeHead(status, { 'content-type': type, ...headers });
    response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body));
  }
  return provider;
}
