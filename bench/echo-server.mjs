#!/usr/bin/env node
// The MCP server that stands behind every target of the bench: one tool, `echo`, over streamable HTTP.
// It keeps no session and does as little as it can, so that what is measured is the way to it.
//
//   node bench/echo-server.mjs --port 3901 [--sse] [--delay-ms 20]

import { createServer } from 'node:http';
import { parseArgs } from 'node:util';

const { values: options } = parseArgs({
  options: {
    port: { type: 'string', default: '3901' },
    sse: { type: 'boolean', default: false },
    'delay-ms': { type: 'string', default: '0' },
  },
});
const delayMs = Number(options['delay-ms']);
const protocolVersions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];
const echoTool = {
  name: 'echo',
  description: 'Answers with the message it was given.',
  inputSchema: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
};

const result = (id, value) => ({ jsonrpc: '2.0', id, result: value });
const failure = (id, code, message) => ({ jsonrpc: '2.0', id, error: { code, message } });

const methods = {
  initialize: (id, params) =>
    result(id, {
      protocolVersion: protocolVersions.includes(params?.protocolVersion)
        ? params.protocolVersion
        : protocolVersions[0],
      capabilities: { tools: {} },
      serverInfo: { name: 'bench-echo', version: '1.0.0' },
    }),
  ping: (id) => result(id, {}),
  'tools/list': (id) => result(id, { tools: [echoTool] }),
  'tools/call': (id, params) =>
    params?.name === 'echo'
      ? result(id, { content: [{ type: 'text', text: String(params.arguments?.message ?? '') }] })
      : failure(id, -32602, `unknown tool: ${params?.name}`),
};

function send(response, status, reply) {
  const json = JSON.stringify(reply);
  const body = options.sse && status === 200 ? `event: message\ndata: ${json}\n\n` : json;
  response.writeHead(status, {
    'content-type': options.sse && status === 200 ? 'text/event-stream' : 'application/json',
    'content-length': Buffer.byteLength(body),
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
  if (!method) return send(response, 200, failure(message.id, -32601, `unknown method: ${message.method}`));
  const reply = method(message.id, message.params);
  if (delayMs > 0 && message.method === 'tools/call') setTimeout(send, delayMs, response, 200, reply);
  else send(response, 200, reply);
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
process.on('disconnect', () => process.exit(0)); // the bench that started it is gone
