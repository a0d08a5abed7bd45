/**
 * A server of one tool that writes its answers as one kind of published server does: `coded`, `ids`, `heartbeats`, `batches`,
 * `types`, `redirects`, `content` (a result without it); any other kind is plain. It knows no tasks and ignores `params.task`.
 * Given to Node on stdin, as client.mjs is.
 */
import { createServer } from 'node:http';
import process from 'node:process';
import { gzipSync } from 'node:zlib';

const [port, kind] = process.argv.slice(2);
const results = {
  initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'odd', version: '1' } },
  'tools/list': { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] },
  'tools/call': kind === 'content' ? { structuredContent: { n: 1 } } : { content: [{ type: 'text', text: 'ran' }] },
  ping: {},
};
createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request.setEncoding('utf8')) body += chunk;
  if (kind === 'redirects' && request.url === '/mcp') return response.writeHead(308, { location: '/mcp/' }).end();
  if (request.method !== 'POST') return response.writeHead(405).end();
  const { id, method } = JSON.parse(body);
  if (id === undefined) return response.writeHead(202).end();
  const result = results[method];
  const outcome = result ? { result } : { error: { code: -32601, message: 'Method not found' } };
  const message = { jsonrpc: '2.0', id: kind === 'ids' ? String(id) : id, ...outcome };
  const json = JSON.stringify(kind === 'batches' ? [message] : message);
  const isStream = ['heartbeats', 'types'].includes(kind);
  const headers = { 'content-type': isStream ? 'text/event-stream' : 'application/json' };
  if (kind === 'types') headers['content-type'] = 'Text/Event-Stream;charset=UTF-8';
  if (kind === 'coded') headers['content-encoding'] = 'gzip';
  const heartbeats = kind === 'heartbeats' ? 'data: ping\n\ndata: [DONE]\n\n' : '';
  const text = isStream ? `${heartbeats}data: ${json}\n\n` : json;
  response.writeHead(200, headers).end(kind === 'coded' ? gzipSync(text) : text);
}).listen(Number(port), '127.0.0.1');
