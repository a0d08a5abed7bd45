import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { listen, shut } from '../upstream/upstream-net.js';

/** An MCP server with one tool, `forecast`, that answers when the test lets it. */
export interface GuardedUpstream {
  url: string;
  origin: string;
  /** Every request to the MCP endpoint, in order of arrival. */
  seen: { url: string; method: string; headers: IncomingHttpHeaders }[];
  /** Requests of its list of tools that wait for an answer. */
  held(): number;
  /** Answers what waits, and whatever comes after it. */
  letThrough(): void;
  /** Stops requiring authorization. */
  unlock(): void;
  /** Changes the behaviour from now on. */
  behave(change: GuardBehaviour): void;
  /** Number of requests for its tools. */
  lists(): number;
  close(): Promise<void>;
}

/** Behaviour of a guarded upstream that a test can change later. */
export interface GuardBehaviour {
  /** Requires authorization: `oauth` with an authorization server, `bare` with a 401 without challenge, `forbidden` with 403. */
  wants?: 'oauth' | 'bare' | 'forbidden';
  /** Whoever sends this header is let in all the same. */
  key?: [name: string, value: string];
  /** Answers everything with 503. */
  isAway?: boolean;
  /** A list of tools is answered only after `letThrough`. */
  holds?: boolean;
  tools?: object[];
}

export interface GuardOptions extends GuardBehaviour {
  /** Document at `/.well-known/mcp/server-card.json`. */
  card?: object;
  description?: string;
}

export const forecast = { name: 'forecast', description: 'Tells the weather.', inputSchema: { type: 'object' } };

/** Starts one on a free port of 127.0.0.1. */
export async function startGuarded(options: GuardOptions = {}): Promise<GuardedUpstream> {
  const { card, description } = options;
  let now: GuardBehaviour = options;
  let origin = '';
  let lists = 0;
  const seen: GuardedUpstream['seen'] = [];
  const waiting = new Set<() => void>();
  const json = (res: ServerResponse, body: object, status = 200) =>
    res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

  const refuse = (res: ServerResponse) => {
    const resource = `${origin}/.well-known/oauth-protected-resource/mcp`;
    if (now.wants === 'oauth') res.setHeader('www-authenticate', `Bearer resource_metadata="${resource}"`);
    json(res, { error: 'no' }, now.wants === 'forbidden' ? 403 : 401);
  };
  const answer = async (req: IncomingMessage, res: ServerResponse) => {
    const body = await text(req).catch(() => '');
    seen.push({ url: req.url ?? '', method: req.method ?? '', headers: req.headers });
    if (now.isAway) return res.writeHead(503).end();
    const [header = '', value] = now.key ?? [];
    if (now.wants && (header === '' || req.headers[header] !== value)) return refuse(res);
    if (body === '') return res.writeHead(405).end();
    const { id, method } = JSON.parse(body) as { id?: number; method: string };
    if (id === undefined) return res.writeHead(202).end();
    const reply = (result: object) => json(res, { jsonrpc: '2.0', id, result });
    const serverInfo = { name: 'guarded', version: '1.0.0', ...(description ? { description } : {}) };
    if (method === 'initialize')
      return reply({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo });
    if (method !== 'tools/list') return json(res, { jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } });
    lists += 1;
    const { tools = [forecast], holds = false } = now;
    if (!holds) return reply({ tools });
    const go = () => void reply({ tools });
    waiting.add(go);
    res.once('close', () => waiting.delete(go));
  };
  const server = createServer((req, res) => {
    const { pathname } = new URL(req.url ?? '', 'http://x');
    if (pathname === '/mcp') return void answer(req, res);
    const documents = {
      ...(now.wants === 'oauth' ? oauthDocuments(origin) : {}),
      '/.well-known/mcp/server-card.json': card,
    };
    const document = (documents as Record<string, object | undefined>)[pathname];
    return void (document ? json(res, document, pathname === '/register' ? 201 : 200) : res.writeHead(404).end());
  });
  origin = `http://127.0.0.1:${await listen(server)}`;
  return {
    url: `${origin}/mcp`,
    origin,
    seen,
    held: () => waiting.size,
    letThrough: () => {
      now = { ...now, holds: false };
      const due = [...waiting];
      waiting.clear();
      for (const go of due) go();
    },
    unlock: () => (now = { ...now, wants: undefined }),
    behave: (change) => (now = { ...now, ...change }),
    lists: () => lists,
    close: () => shut(server),
  };
}

function oauthDocuments(origin: string): Record<string, object> {
  return {
    '/.well-known/oauth-protected-resource/mcp': { resource: `${origin}/mcp`, authorization_servers: [origin] },
    '/.well-known/oauth-authorization-server': {
      issuer: origin,
      authorization_endpoint: `${origin}/authorize`,
      token_endpoint: `${origin}/token`,
      registration_endpoint: `${origin}/register`,
      response_types_supported: ['code'],
      grant_types_supported: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_methods_supported: ['none'],
      code_challenge_methods_supported: ['S256'],
    },
    '/register': { client_id: 'slipway-test', redirect_uris: [], token_endpoint_auth_method: 'none' },
  };
}
