#!/usr/bin/env node
// The MCP server behind every target of the bench: one tool, `echo`, over streamable HTTP.
// The server keeps no session and does little, so that the bench measures the path to it. With --era modern it is a
// stateless server of 2026-07-28 that knows no `initialize`; with --sessions it hands out session ids and looks at none.
//
//   node bench/echo-server.mjs --port 3901 [--sse] [--delay-ms 20] [--era modern] [--sessions]

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';

const { values: options } = parseArgs({
  options: {
    port: { type: 'string', default: '3901' },
    sse: { type: 'boolean', default: false },
    'delay-ms': { type: 'string', default: '0' },
    era: { type: 'string', default: 'legacy' },
    sessions: { type: 'boolean', default: false },
  },
});
const delayMs = Number(options['delay-ms']);
const isModern = options.era === 'modern';
const protocolVersions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];
const echoTool = {
  name: 'echo',
  description: 'Answers with the message it was given, filled up to `bytes`.',
  inputSchema: {
    type: 'object',
    properties: { message: { type: 'string' }, bytes: { type: 'integer' } },
    required: ['message'],
  },
};

const complete = isModern ? { resultType: 'complete' } : {};
const result = (id, value) => ({ jsonrpc: '2.0', id, result: { ...value, ...complete } });
const failure = (id, code, message) => ({ jsonrpc: '2.0', id, error: { code, message } });

const lists = isModern ? { ttlMs: 60_000, cacheScope: 'private' } : {};

/** The message, filled up to as many bytes as were asked for. */
const textOf = ({ message = '', bytes = 0 } = {}) => String(message).padEnd(bytes, 'x');

const opening = {
  'server/discover': (id) =>
    result(id, {
      supportedVersions: ['2026-07-28'],
      capabilities: { tools: {} },
      ...lists,
      _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'bench-echo', version: '1.0.0' } },
    }),
  initialize: (id, params) =>
    result(id, {
      protocolVersion: protocolVersions.includes(params?.protocolVersion)
        ? params.protocolVersion
        : protocolVersions[0],
      capabilities: { tools: {} },
      serverInfo: { name: 'bench-echo', version: '1.0.0' },
    }),
};

const methods = {
  ...(isModern ? { 'server/discover': opening['server/discover'] } : { initialize: opening.initialize }),
  ping: (id) => result(id, {}),
  'tools/list': (id) => result(id, { tools: [echoTool], ...lists }),
  'tools/call': (id, params) =>
    params?.name === 'echo'
      ? result(id, { content: [{ type: 'text', text: textOf(params.arguments) }] })
      : failure(id, -32602, `unknown tool: ${params?.name}`),
};

function send(response, status, reply, session) {
  const json = JSON.stringify(reply);
  const body = options.sse && status === 200 ? `event: message\ndata: ${json}\n\n` : json;
  response.writeHead(status, {
    'content-type': options.sse && status === 200 ? 'text/event-stream' : 'application/json',
    'content-length': Buffer.byteLength(body),
    ...(session && { 'mcp-session-id': session }),
  });
  response.end(body);
}

function answer(response, text) {
  let message;
  try {
    message = JSON.parse(text);
  } catch {
    return send(response, 400, failure(null, -32700, 'Parse error'));
  }
  if (message?.id === undefined) return response.writeHead(202).end();
  const method = Object.hasOwn(methods, message.method) ? methods[message.method] : undefined;
  if (!method) return refuse(response, message);
  const reply = method(message.id, message.params);
  if (delayMs > 0 && message.method === 'tools/call') setTimeout(send, delayMs, response, 200, reply);
  else send(response, 200, reply, options.sessions && message.method === 'initialize' ? randomUUID() : undefined);
}

function refuse(response, { id, method }) {
  if (isModern && method === 'initialize') {
    const { error } = failure(id, -32022, 'Unsupported protocol version');
    return send(response, 400, { jsonrpc: '2.0', id, error: { ...error, data: { supported: ['2026-07-28'] } } });
  }
  return send(response, isModern ? 404 : 200, failure(id, -32601, `unknown method: ${method}`));
}

const server = createServer((request, response) => {
  if (request.method !== 'POST') return response.writeHead(405, { allow: 'POST' }).end();
  let text = '';
  request.setEncoding('utf8');
  request.on('data', (chunk) => (text += chunk));
  request.on('end', () => answer(response, text));
});
server.keepAliveTimeout = 60_000;
server.listen(Number(options.port), '127.0.0.1', () =>
  console.log(`echo server on http://127.0.0.1:${server.address().port}/mcp`),
);
process.on('disconnect', () => process.exit(0)); // the bench that started this process has exited
