import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { text } from 'node:stream/consumers';
import { selfSignedCertificate } from './faulty-tls.js';
import { listen, shut } from '../upstream/upstream-net.js';

/** The ways an endpoint may fail to be an MCP server; each line describes the answer to every request, on every path. */
export type FaultKind =
  /** 200 with a web page. */
  | 'html'
  /** 404 with a web page. */
  | 'not-found'
  /** 401, with a challenge by default. */
  | 'needs-auth'
  /** 403. */
  | 'forbidden'
  /** The request is read, an answer never comes. */
  | 'silent'
  /** 200 and headers at once, then one byte of JSON every 100 ms, for ever. */
  | 'slow-body'
  /** The connection is destroyed as soon as it is accepted. */
  | 'hangs-up'
  /** 200 without a body. */
  | 'empty'
  /** 200 with broken JSON. */
  | 'garbage'
  /** 200 with JSON that is not JSON-RPC. */
  | 'not-rpc'
  /** 302 to `location`. */
  | 'redirect'
  /** 200 with a JSON body that never ends, as fast as it is read. */
  | 'too-big'
  /** 500. */
  | 'server-error'
  /** A correct MCP handshake behind a certificate that is not trusted: a hit means the client did not check it. */
  | 'tls-self-signed'
  /** 429. */
  | 'too-busy'
  /** A JSON-RPC error. */
  | 'refuses'
  /** `initialize` answers protocol version 1999-01-01. */
  | 'bad-protocol-version'
  /** 503 with `Retry-After: 7`. */
  | 'unavailable';

/** Details of some kinds. */
export interface FaultOptions {
  /** `needs-auth`: the `WWW-Authenticate` value, or false for none. Default: Bearer with `resource_metadata`. */
  challenge?: string | false;
  /** `redirect`: where to. Default `http://127.0.0.1:1/mcp`. */
  location?: string;
  /** `redirect`: which 3xx. Default 302. */
  redirectStatus?: 301 | 302 | 303 | 307 | 308;
}

/** A running endpoint that fails. */
export interface FaultyUpstream {
  /** The supposed MCP endpoint; https for `tls-self-signed`. */
  url: string;
  /** Requests read so far; for `hangs-up` the connections accepted. */
  hits(): number;
  /** Stops at once and cuts what is open. */
  close(): Promise<void>;
}

type Answer = (req: IncomingMessage, res: ServerResponse) => unknown;

/** The URL of a host that does not resolve. */
export const deadHost = 'http://no-such-host.invalid/mcp';

/**
 * A URL, different each time, of a port without a listener. A free port could be taken by another test; port 4 is assigned
 * to no service and never chosen by the system.
 */
export function refusedPort(): Promise<string> {
  return Promise.resolve(`http://127.0.0.1:4/mcp?${randomBytes(4).toString('hex')}`);
}

/** Starts an endpoint on a free port of 127.0.0.1 that fails in the given way. */
export async function startFaulty(kind: FaultKind, options: FaultOptions = {}): Promise<FaultyUpstream> {
  const isTls = kind === 'tls-self-signed';
  const answer = answers(options)[kind];
  let hits = 0;
  const handle: Answer = (req, res) => {
    hits++;
    return answer(req, res);
  };
  const server = isTls ? createTlsServer(selfSignedCertificate(), handle) : createServer(handle);
  if (kind === 'hangs-up') {
    server.on('connection', (socket) => {
      hits++;
      socket.destroy();
    });
  }
  const port = await listen(server);
  return { url: `${isTls ? 'https' : 'http'}://127.0.0.1:${port}/mcp`, hits: () => hits, close: () => shut(server) };
}

function answers(options: FaultOptions): Record<FaultKind, Answer> {
  return {
    html: page(200, 'Welcome'),
    'not-found': page(404, 'Not Found'),
    'needs-auth': (req, res) => {
      const metadata = `http://${req.headers.host}/.well-known/oauth-protected-resource/mcp`;
      const challenge = options.challenge ?? `Bearer resource_metadata="${metadata}"`;
      if (challenge) res.setHeader('www-authenticate', challenge);
      sendJson(res, 401, { error: 'invalid_token' });
    },
    forbidden: (_req, res) => sendJson(res, 403, { error: 'forbidden' }),
    silent: (req) => req.resume(),
    'slow-body': (_req, res) => dribble(res),
    'hangs-up': (req) => req.socket.destroy(),
    empty: (_req, res) => res.writeHead(200).end(),
    garbage: (_req, res) => res.writeHead(200, { 'content-type': 'application/json' }).end('{"jsonrpc":"2.0","id":1,'),
    'not-rpc': (_req, res) => sendJson(res, 200, { hello: 'world' }),
    redirect: (_req, res) => {
      const location = options.location ?? 'http://127.0.0.1:1/mcp';
      res.writeHead(options.redirectStatus ?? 302, { location }).end();
    },
    'too-big': (_req, res) => flood(res),
    'server-error': (_req, res) => sendJson(res, 500, { error: 'internal' }),
    'too-busy': (_req, res) => sendJson(res, 429, { error: 'slow down' }),
    refuses: async (req, res) => {
      const { id } = JSON.parse(await text(req)) as { id?: unknown };
      sendJson(res, 200, { jsonrpc: '2.0', id, error: { code: -32603, message: 'no licence' } });
    },
    'tls-self-signed': handshake('2025-11-25'),
    'bad-protocol-version': handshake('1999-01-01'),
    unavailable: (_req, res) => {
      res.setHeader('retry-after', '7');
      sendJson(res, 503, { error: 'unavailable' });
    },
  };
}

function sendJson(res: ServerResponse, status: number, body: object): void {
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function page(status: number, title: string): Answer {
  const html = `<!doctype html><html><head><title>${title}</title></head><body><h1>${title}</h1></body></html>`;
  return (_req, res) => res.writeHead(status, { 'content-type': 'text/html; charset=utf-8' }).end(html);
}

function dribble(res: ServerResponse): void {
  res.writeHead(200, { 'content-type': 'application/json' }).write('{');
  const timer = setInterval(() => res.write(' '), 100);
  res.once('close', () => clearInterval(timer));
}

function flood(res: ServerResponse): void {
  const chunk = 'x'.repeat(64 * 1024);
  const pour = (): void => {
    while (!res.destroyed && res.write(chunk));
  };
  res.on('drain', pour);
  res.writeHead(200, { 'content-type': 'application/json' });
  res.write('{"jsonrpc":"2.0","id":1,"result":{"pad":"');
  pour();
}

/** Answers `initialize` with the given version, takes notifications, and knows no other method. */
function handshake(protocolVersion: string): Answer {
  return async (req, res) => {
    const body = await text(req).catch(() => '');
    if (!body) return res.writeHead(405).end();
    const { id, method } = JSON.parse(body) as { id?: unknown; method?: string };
    if (id === undefined) return res.writeHead(202).end();
    const serverInfo = { name: 'faulty', version: '1.0.0' };
    const result = { protocolVersion, capabilities: { tools: {} }, serverInfo };
    const error = { code: -32601, message: 'Method not found' };
    sendJson(res, 200, { jsonrpc: '2.0', id, ...(method === 'initialize' ? { result } : { error }) });
  };
}
