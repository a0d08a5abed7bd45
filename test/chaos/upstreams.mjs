/**
 * MCP servers for the chaos run, each a process of its own: `node upstreams.mjs <kind> <JSON job>`. The tool `act` appends its
 * token to the job's file before it answers, so that the file says what was executed however the process ends.
 *
 *   sessions  2025-11-25 with sessions in memory, which a restart loses; answers in JSON or as an event stream
 *   modern    2026-07-28, stateless
 *   local     behind an uplink: dials an api process, and the next one when the tunnel closes
 *   ledger    no MCP: `POST /<token>` for the hosted programs
 */
import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { randomFrom } from '../support/seed.mjs';

const [kind, json] = process.argv.slice(2);
const { port, file, urls, path, key } = JSON.parse(json);

/** Longest gap between two attempts to open a tunnel. */
const redialMs = 200;

const tool = {
  name: 'act',
  description: 'Executes a token',
  inputSchema: {
    type: 'object',
    properties: { token: { type: 'string' }, ms: { type: 'number' } },
    required: ['token', 'ms'],
  },
};

function execute(token) {
  appendFileSync(file, `${token}\n`);
}

const isModern = kind === 'modern';
const complete = isModern ? { resultType: 'complete' } : {};
const lists = isModern ? { ttlMs: 60_000, cacheScope: 'private' } : {};

/** Answers one JSON-RPC request. */
async function answer({ id, method, params }) {
  const result = (value) => ({ jsonrpc: '2.0', id, result: { ...value, ...complete } });
  const serverInfo = { name: `chaos-${kind}`, version: '1.0.0' };
  switch (method) {
    case 'initialize':
      if (isModern) break;
      return result({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo });
    case 'server/discover':
      if (!isModern) break;
      return result({
        supportedVersions: ['2026-07-28'],
        capabilities: { tools: {} },
        ...lists,
        _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo },
      });
    case 'ping':
      return result({});
    case 'tools/list':
      return result({ tools: [tool], ...lists });
    case 'tools/call': {
      const { token, ms } = params.arguments;
      execute(token);
      await wait(ms);
      return result({ content: [{ type: 'text', text: `done ${token}` }] });
    }
  }
  return { jsonrpc: '2.0', id, error: { code: -32601, message: `unknown method: ${method}` } };
}

// ---- Over HTTP.

const sessions = new Set();
const random = randomFrom(kind);

async function serve(request, response) {
  if (request.method !== 'POST') return response.writeHead(request.method === 'DELETE' ? 200 : 405).end();
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += chunk;
  if (kind === 'ledger') {
    execute(request.url.slice(1));
    return response.end('ok');
  }
  const message = JSON.parse(text);
  const session = request.headers['mcp-session-id'];
  if (kind === 'sessions' && message.method !== 'initialize' && !sessions.has(session)) {
    const error = { code: -32001, message: 'Session not found' };
    return send(response, session ? 404 : 400, { jsonrpc: '2.0', id: message.id ?? null, error });
  }
  if (message.id === undefined) return response.writeHead(202).end();
  const reply = await answer(message);
  if (isModern && reply.error) {
    const data = { supported: ['2026-07-28'] };
    const error = message.method === 'initialize' ? { code: -32022, message: 'Unsupported', data } : reply.error;
    return send(response, message.method === 'initialize' ? 400 : 404, { ...reply, error });
  }
  const headers = {};
  if (kind === 'sessions' && message.method === 'initialize') {
    headers['mcp-session-id'] = randomUUID();
    sessions.add(headers['mcp-session-id']);
  }
  const isStream = message.method === 'tools/call' && random() < 0.5;
  send(response, 200, reply, headers, isStream);
}

function send(response, status, reply, headers = {}, isStream = false) {
  const text = JSON.stringify(reply);
  const contentType = isStream ? 'text/event-stream' : 'application/json';
  response.writeHead(status, { ...headers, 'content-type': contentType });
  response.end(isStream ? `event: message\ndata: ${text}\n\n` : text);
}

// ---- Behind an uplink.

/** Keeps a tunnel open: to the next process each time one closes. */
async function dial() {
  for (let turn = 0; ; turn += 1) {
    const base = urls[turn % urls.length].replace('http', 'ws');
    const socket = new WebSocket(`${base}${path}`, {
      headers: { authorization: `Bearer ${key}` },
      perMessageDeflate: false,
      handshakeTimeout: 2_000,
    });
    socket.on('message', async (data) => {
      const message = JSON.parse(data.toString());
      if (message.method === undefined || message.id === undefined) return;
      const reply = await answer(message);
      if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(reply));
    });
    socket.on('error', () => undefined);
    await new Promise((resolve) => socket.once('close', resolve));
    await wait(redialMs);
  }
}

if (kind === 'local') {
  process.stdout.write('ready\n');
  void dial();
} else {
  const server = createServer((request, response) => {
    serve(request, response).catch(() => response.destroy());
  });
  server.keepAliveTimeout = 60_000;
  server.listen(port, '127.0.0.1', () => process.stdout.write('ready\n'));
}
process.on('SIGTERM', () => process.exit(0));
