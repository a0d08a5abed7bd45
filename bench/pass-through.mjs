#!/usr/bin/env node
// The yardstick: only the work that every gateway has to do. It reads and parses the request, sends it on over
// kept-alive sockets, reads, parses and returns the response: no key, no guard, no record.
//
//   node bench/pass-through.mjs --port 3951 --upstream http://127.0.0.1:3901

import { Agent, createServer, request as httpRequest } from 'node:http';
import { parseArgs } from 'node:util';

const { values: options } = parseArgs({
  options: {
    port: { type: 'string', default: '3951' },
    upstream: { type: 'string', default: 'http://127.0.0.1:3901' },
  },
});
const { hostname, port } = new URL(options.upstream);
const agent = new Agent({ keepAlive: true, maxSockets: 256 });

/** Collects a message's body and proves that a JSON body is JSON; calls back with the bytes. */
function collect(message, onBody, onBroken) {
  const chunks = [];
  message.on('data', (chunk) => chunks.push(chunk));
  message.on('error', onBroken);
  message.on('end', () => {
    const body = Buffer.concat(chunks);
    try {
      if (body.length > 0 && message.headers['content-type']?.includes('json')) JSON.parse(body.toString('utf8'));
    } catch {
      return onBroken();
    }
    onBody(body);
  });
}

/** The headers to send on: those that speak of one hop only stay behind, and the length is known by now. */
function headersFor({ host, connection, 'transfer-encoding': encoding, ...kept }, length) {
  kept['content-length'] = length;
  return kept;
}

function refuse(response, status) {
  if (response.headersSent) response.destroy();
  else response.writeHead(status).end();
}

const server = createServer((incoming, response) => {
  const forward = (body) => {
    const headers = headersFor(incoming.headers, body.length);
    const target = { hostname, port, path: incoming.url, method: incoming.method, agent, headers };
    const outgoing = httpRequest(target, (answer) => {
      const giveBack = (reply) =>
        response.writeHead(answer.statusCode, headersFor(answer.headers, reply.length)).end(reply);
      collect(answer, giveBack, () => refuse(response, 502));
    });
    outgoing.on('error', () => refuse(response, 502));
    outgoing.end(body);
  };
  collect(incoming, forward, () => refuse(response, 400));
});
server.listen(Number(options.port), '127.0.0.1', () =>
  console.log(`pass-through on http://127.0.0.1:${server.address().port} to ${options.upstream}`),
);
process.on('disconnect', () => process.exit(0)); // the bench that started this process has exited
