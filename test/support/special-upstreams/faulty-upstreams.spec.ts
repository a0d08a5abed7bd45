import { afterEach, expect, it } from '@jest/globals';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { request } from 'node:https';
import {
  deadHost,
  refusedPort,
  startFaulty,
  type FaultKind,
  type FaultOptions,
  type FaultyUpstream,
} from './faulty-upstreams.js';

let faulty: FaultyUpstream | undefined;

afterEach(async () => {
  await faulty?.close();
  faulty = undefined;
});

async function start(kind: FaultKind, options?: FaultOptions): Promise<FaultyUpstream> {
  return (faulty = await startFaulty(kind, options));
}

it.each<[FaultKind, number, string, FaultOptions]>([
  ['html', 200, '<!doctype html>', {}],
  ['not-found', 404, '<!doctype html>', {}],
  ['needs-auth', 401, 'invalid_token', {}],
  ['forbidden', 403, 'forbidden', {}],
  ['empty', 200, '', {}],
  ['garbage', 200, '{"jsonrpc":"2.0","id":1,', {}],
  ['not-rpc', 200, '{"hello":"world"}', {}],
  ['redirect', 302, '', { location: 'http://127.0.0.1:2/elsewhere' }],
  ['server-error', 500, 'internal', {}],
  ['too-busy', 429, 'slow down', {}],
  ['unavailable', 503, 'unavailable', { retryAfterSeconds: 3 }],
])('%s answers %d', async (kind, status, text, options) => {
  const { url, hits } = await start(kind, options);
  const response = await fetch(url, { method: 'POST', body: '{}', redirect: 'manual' });
  expect(response.status).toBe(status);
  expect(await response.text()).toContain(text);
  expect(response.headers.get('www-authenticate') !== null).toBe(kind === 'needs-auth');
  expect(response.headers.get('location')).toBe(options.location ?? null);
  expect(response.headers.get('retry-after')).toBe(kind === 'unavailable' ? '3' : null);
  expect(hits()).toBe(1);
});

it('needs-auth can leave the challenge out', async () => {
  const { url } = await start('needs-auth', { challenge: false });
  expect((await fetch(url)).headers.has('www-authenticate')).toBe(false);
});

it('silent reads the request, never answers and closes at once', async () => {
  const silent = await startFaulty('silent');
  const answer = expect(fetch(silent.url, { method: 'POST', body: '{}' })).rejects.toThrow();
  while (silent.hits() === 0) await new Promise(setImmediate);
  await silent.close();
  await answer;
});

it('hangs-up counts the connections it destroys', async () => {
  const { url, hits } = await start('hangs-up');
  await expect(fetch(url)).rejects.toThrow();
  expect(hits()).toBe(1);
});

it('slow-body sends headers and goes on byte by byte', async () => {
  const { url } = await start('slow-body');
  const reader = (await fetch(url)).body!.getReader();
  const read = async () => Buffer.from((await reader.read()).value as Uint8Array).toString();
  expect([await read(), await read(), await read()]).toEqual(['{', ' ', ' ']);
  await reader.cancel();
});

it('too-big sends more than anybody wants', async () => {
  const { url } = await start('too-big');
  const reader = (await fetch(url)).body!.getReader();
  let bytes = 0;
  while (bytes < 32 * 1024 * 1024) bytes += ((await reader.read()).value as Uint8Array).length;
  await reader.cancel();
});

it('tls-self-signed is refused unless the certificate is not checked', async () => {
  const { url, hits } = await start('tls-self-signed');
  await expect(fetch(url)).rejects.toMatchObject({ cause: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' } });
  expect(hits()).toBe(0);
  const status = await new Promise((resolve, reject) => {
    const careless = request(url, { method: 'POST', rejectUnauthorized: false, agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode));
    });
    careless.on('error', reject).end('{"jsonrpc":"2.0","id":1,"method":"initialize"}');
  });
  expect([status, hits()]).toEqual([200, 1]);
});

it('bad-protocol-version is refused by the official client', async () => {
  const { url } = await start('bad-protocol-version');
  const client = new Client({ name: 'spec', version: '1.0.0' });
  await expect(client.connect(new StreamableHTTPClientTransport(new URL(url)))).rejects.toThrow('1999-01-01');
});

it('nobody listens at refusedPort and deadHost', async () => {
  await expect(fetch(await refusedPort())).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
  await expect(fetch(deadHost)).rejects.toMatchObject({
    cause: { code: expect.stringMatching(/ENOTFOUND|EAI_AGAIN/) },
  });
});
