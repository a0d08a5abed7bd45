import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { until } from '../until.js';
import { listen, shut } from '../upstream/upstream-net.js';

/** One HTTP request as it came, and the JSON-RPC message in it. */
export interface WireMessage {
  http: string;
  path: string;
  headers: IncomingHttpHeaders;
  id?: number;
  method?: string;
  params?: Record<string, unknown>;
  result?: unknown;
  error?: unknown;
}

/** Answers one request by `res`; `nth` counts the requests of this HTTP and JSON-RPC method from 1. */
export type WireScript = (message: WireMessage, res: ServerResponse, nth: number) => unknown;

/** A server every byte of which is written by hand. */
export interface WireUpstream {
  url: string;
  seen: WireMessage[];
  /** How many messages named this JSON-RPC method, or requests without one this HTTP method. */
  count(method: string): number;
  /** Waits until that many came. */
  came(method: string, count?: number): Promise<void>;
  close(): Promise<void>;
}

/** Starts a server at `http://127.0.0.1:<port>/mcp` that follows the script, and does nothing by itself. */
export async function startWire(script: WireScript): Promise<WireUpstream> {
  const seen: WireMessage[] = [];
  const nameOf = ({ method, http }: WireMessage) => method ?? http;
  const count = (method: string) => seen.filter((message) => nameOf(message) === method).length;
  const server = createServer((req, res) => {
    void (async () => {
      const body = await text(req).catch(() => '');
      const { method: http = '', url: path = '', headers } = req;
      const message: WireMessage = { ...(body ? (JSON.parse(body) as object) : {}), http, path, headers };
      seen.push(message);
      await script(message, res, count(nameOf(message)));
    })();
  });
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    seen,
    count,
    came: async (method, least = 1) => void (await until(async () => count(method) >= least, `${method} came`)),
    close: () => shut(server),
  };
}

/** Answers with a result. */
export function answer(res: ServerResponse, { id }: WireMessage, result: object, headers = {}): void {
  res.writeHead(200, { 'content-type': 'application/json', ...headers });
  res.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
}

/** Answers with a JSON-RPC error. */
export function refuse(res: ServerResponse, id: unknown, status: number, code: number, data?: object): void {
  res.writeHead(status, { 'content-type': 'application/json' });
  res.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message: `refused with ${code}`, data } }));
}

/** Opens an event stream. */
export function stream(res: ServerResponse): void {
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  res.flushHeaders();
}

/** Sends one message on an open event stream. */
export function event(res: ServerResponse, message: object, id?: string): void {
  res.write(`${id ? `id: ${id}\n` : ''}data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
}

/** Result of `initialize` of a legacy server. */
export const legacyHello = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: { listChanged: true }, resources: { subscribe: true, listChanged: true } },
  serverInfo: { name: 'wire', version: '1.0.0' },
};

/** Result of `server/discover` of a modern server. */
export const modernHello = {
  resultType: 'complete',
  supportedVersions: ['2026-07-28'],
  capabilities: { tools: { listChanged: true }, resources: { subscribe: true } },
  ttlMs: 0,
  cacheScope: 'private',
  _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'wire', version: '1.0.0' } },
};

/** A script whose legacy handshake is sound; the session, if there is one, is `session-<n>`. */
export function legacy(script: WireScript, { sessions = true } = {}): WireScript {
  return (message, res, nth) => {
    const { http, method, id } = message;
    if (method === 'server/discover') return refuse(res, null, 400, -32000);
    if (method === 'initialize') {
      return answer(res, message, legacyHello, sessions ? { 'mcp-session-id': `session-${nth}` } : {});
    }
    if (http === 'POST' && id === undefined) return void res.writeHead(202).end();
    if (http === 'DELETE') return void res.writeHead(200).end();
    return script(message, res, nth);
  };
}

/** A script whose `server/discover` is sound. */
export function modern(script: WireScript): WireScript {
  return (message, res, nth) => {
    if (message.http !== 'POST') return void res.writeHead(405).end();
    if (message.method === 'initialize') return refuse(res, message.id, 400, -32022, { supported: ['2026-07-28'] });
    if (message.method === 'server/discover') return answer(res, message, modernHello);
    return script(message, res, nth);
  };
}
