import http from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { listen, shut } from '../../../test/support/upstream/upstream-net.js';
import { until } from '../../../test/support/until.js';
import { loadEnv } from '../../config/env.js';
import { ResponseBacklog } from './response-backlog.js';

const MB = 1024 * 1024;
const ANSWER_BYTES = 20 * MB;

const { trustProxy } = loadEnv({ TRUST_PROXY: '127.0.0.1' });

let server: http.Server;
let port: number;
let unread: ResponseBacklog;
const accepted: Socket[] = [];

beforeAll(async () => {
  const body = Buffer.alloc(ANSWER_BYTES, 'x');
  server = http.createServer((request, response) => {
    unread.address(request);
    accepted.push(request.socket);
    response.end(body);
  });
  server.on('connection', (socket) => unread.watch(socket));
  port = await listen(server);
});
afterAll(() => shut(server));

/** Asks for a response and does not read it. @returns the socket of each side */
async function asked(address: string): Promise<{ client: Socket; served: Socket }> {
  const client = connect(port, '127.0.0.1');
  client.on('error', () => undefined).pause();
  const count = accepted.length;
  client.write(`GET / HTTP/1.1\r\nhost: a\r\nx-forwarded-for: ${address}\r\n\r\n`);
  await until(() => accepted.length > count, 'it was asked');
  return { client, served: accepted[count] };
}

async function bytesReadBy(client: Socket): Promise<number> {
  let bytes = 0;
  client.on('data', (chunk: Buffer) => (bytes += chunk.length)).resume();
  await until(() => bytes >= ANSWER_BYTES || client.destroyed, 'the answer is read');
  return bytes;
}

describe('answers that nobody reads', () => {
  it('are cut beyond a quarter per address, longest first; others and the newest are not', async () => {
    unread = new ResponseBacklog(176 * MB, trustProxy);
    const other = await asked('203.0.113.1');
    const own = [await asked('203.0.113.2'), await asked('203.0.113.2'), await asked('203.0.113.2')];
    await until(() => own[0]?.served.destroyed ?? false, 'the first is cut');
    expect([other, ...own].map(({ served }) => served.destroyed)).toEqual([false, true, false, false]);
    expect(await bytesReadBy(own[2]?.client)).toBeGreaterThan(ANSWER_BYTES);
    for (const { client } of [other, ...own]) client.destroy();
  });

  it('are cut when all addresses together exceed the whole', async () => {
    unread = new ResponseBacklog(48 * MB, trustProxy);
    const all = [];
    for (const n of [1, 2, 3, 4]) all.push(await asked(`203.0.113.${n}`));
    expect(all.map(({ served }) => served.destroyed)).toEqual([true, true, false, false]);
    for (const { client } of all) client.destroy();
  });

  it('behind a proxy that names no client are bounded by the whole only', async () => {
    unread = new ResponseBacklog(176 * MB, trustProxy);
    const all = [await asked(''), await asked(''), await asked('')];
    expect(all.map(({ served }) => served.destroyed)).toEqual([false, false, false]);
    for (const { client } of all) client.destroy();
  });

  it('are cut although the header names another address each time, without a trusted proxy', async () => {
    unread = new ResponseBacklog(176 * MB, null);
    const all = [await asked('203.0.113.1'), await asked('203.0.113.2'), await asked('203.0.113.3')];
    expect(all.map(({ served }) => served.destroyed)).toEqual([true, false, false]);
    for (const { client } of all) client.destroy();
  });
});
