import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { listen, shut } from '../../../../test/support/upstream/upstream-net.js';
import { until } from '../../../../test/support/until.js';
import { closeIfUnread } from './unread-body.js';

let server: http.Server;
let port: number;
let answer: (request: IncomingMessage, response: ServerResponse) => void;
let accepted: Socket;

beforeAll(async () => {
  server = http.createServer((request, response) => {
    closeIfUnread(request, response);
    answer(request, response);
  });
  server.on('connection', (socket) => (accepted = socket));
  port = await listen(server);
});
afterAll(() => shut(server));

/** Sends a head that announces this many bytes, and these bytes of them. */
function sent(length: number, body: Buffer | string = ''): Socket & { text: string } {
  const socket = Object.assign(connect({ port, host: '127.0.0.1', allowHalfOpen: true }), { text: '' });
  socket.on('error', () => undefined).on('data', (chunk: Buffer) => (socket.text += chunk.toString()));
  socket.write(`POST / HTTP/1.1\r\nhost: a\r\ncontent-length: ${length}\r\n\r\n`);
  socket.write(body);
  return socket;
}

describe('a response before the body has arrived', () => {
  it('is sent immediately, with `Connection: close`, and the connection is cut after a second', async () => {
    answer = (_request, response) => void response.writeHead(401).end('no');
    const socket = sent(1_000_000);
    const ended = once(socket, 'end');
    await ended;
    expect(socket.text).toMatch(/^HTTP\/1\.1 401 [^]*\r\nConnection: close\r\n[^]*no/);
    const endedAt = performance.now();
    await until(() => accepted.destroyed, 'the connection is cut');
    expect(performance.now() - endedAt).toBeLessThan(10_000);
    socket.destroy();
  });

  it('can be read by a client that keeps sending; little of what it sends is read', async () => {
    const readers: ((request: IncomingMessage) => void)[] = [
      () => undefined,
      (request) => void request.on('data', () => undefined).pause(),
      (request) => void request.once('data', () => request.pause()),
    ];
    for (const read of readers) {
      answer = (request, response) => {
        read(request);
        setImmediate(() => response.writeHead(413).end('too large'));
      };
      const socket = sent(64_000_000, Buffer.alloc(64_000_000));
      await once(socket, 'end');
      expect(socket.text).toContain('too large');
      await until(() => accepted.destroyed, 'the connection is cut');
      expect(accepted.bytesRead).toBeLessThan(1_000_000);
      socket.destroy();
    }
  });

  it('leaves the connection open if the whole body has arrived', async () => {
    answer = (request, response) => void request.on('end', () => response.writeHead(400).end('no')).resume();
    const socket = sent(5, 'hello');
    await until(() => socket.text.includes('no'), 'it is answered');
    expect(socket.text).toMatch(/\r\nConnection: keep-alive\r\n/);
    socket.destroy();
  });
});
