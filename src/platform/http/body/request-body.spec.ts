import http, { type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { loadEnv } from '../../../config/env.js';
import { BodyBudget } from './body-budget.js';
import { readBody } from './request-body.js';

let server: http.Server;
const budget = new BodyBudget(loadEnv({}));
let read: (request: IncomingMessage) => Promise<string>;

beforeAll(async () => {
  server = http.createServer((request, response) => {
    budget.admit(request, response, 'account');
    read(request).then(
      (body) => response.end(body),
      (error: Error) => response.writeHead(400, { connection: 'close' }).end(`${error.name}: ${error.message}`),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(() => void server.close());

async function post(body: string | Buffer, headers: Record<string, string> = {}): Promise<string> {
  const { port } = server.address() as AddressInfo;
  return (
    await fetch(`http://127.0.0.1:${port}`, { method: 'POST', body: new Uint8Array(Buffer.from(body)), headers })
  ).text();
}

describe('readBody', () => {
  it('reads text of many chunks up to the limit', async () => {
    read = (request) => readBody(request, 300_000);
    const long = 'ä'.repeat(150_000);
    expect(await post(long)).toBe(long);
  });

  it('refuses a byte more than the limit', async () => {
    read = (request) => readBody(request, 10);
    expect(await post('0123456789')).toBe('0123456789');
    expect(await post('01234567890')).toMatch(/^TooLargeError: .* 10 bytes/);
  });

  it('refuses a compressed body', async () => {
    read = (request) => readBody(request, 10);
    expect(await post('x', { 'content-encoding': 'gzip' })).toMatch(/^InvalidInputError: .*"gzip"/);
  });

  it('fails at once if the body was read before', async () => {
    read = async (request) => {
      await text(request);
      return readBody(request, 10);
    };
    expect(await post('x')).toBe('Error: The body was read before');
  });
});
