import { spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { generateApiKey } from '../../src/modules/auth/api-key.js';
import { cleanUpPrograms, dataFolder, runProgram } from '../support/program.js';
import { until } from '../support/until.js';
import { listen, shut } from '../support/upstream/upstream-net.js';

const SLOW_MS = 300_000;
const example = path.resolve('examples/webhooks-module');
let folder: string;

beforeAll(async () => {
  folder = path.join(await mkdtemp(path.join(tmpdir(), 'slipway-modules-')), 'webhooks');
  const tsc = [path.resolve('node_modules/typescript/bin/tsc'), '-p', path.join(example, 'tsconfig.build.json')];
  const built = spawnSync(process.execPath, [...tsc, '--outDir', path.join(folder, 'dist')], { encoding: 'utf8' });
  expect(built.stdout).toBe('');
  await cp(path.join(example, 'package.json'), path.join(folder, 'package.json'));
}, SLOW_MS);

afterAll(async () => {
  await cleanUpPrograms();
  await rm(path.dirname(folder), { recursive: true, force: true });
}, SLOW_MS);

it(
  'the example sends each event as a signed request, again after a failure, to the webhooks of its account alone',
  async () => {
    const received: { headers: IncomingHttpHeaders; body: string }[] = [];
    const receiver = createServer((request, response) => {
      void text(request).then((body) => {
        received.push({ headers: request.headers, body });
        response.writeHead(received.length === 1 ? 500 : 204).end();
      });
    });
    const url = `http://127.0.0.1:${await listen(receiver)}/events`;
    const settings = { DATA_DIR: await dataFolder(), SLIPWAY_MODULES: folder, EGRESS_ALLOW: 'loopback' };
    const key = generateApiKey();
    const service = runProgram('main.js', { ...settings, BOOTSTRAP_API_KEY: key });
    const ask = async (method: string, place: string, body?: object, as = key) => {
      const response = await fetch(`${await service.url()}${place}`, {
        method,
        headers: { authorization: `Bearer ${as}`, ...(body && { 'content-type': 'application/json' }) },
        body: body && JSON.stringify(body),
      });
      const answer = await response.text();
      return { status: response.status, body: answer ? JSON.parse(answer) : null };
    };
    const added = await ask('POST', '/accounts/me/webhooks', { url, events: ['server.created'] });
    expect(added).toMatchObject({ status: 201, body: { url, secret: expect.stringMatching(/^whsec_/) } });
    expect((await ask('POST', '/accounts/me/webhooks', { url, events: ['nonsense'] })).status).toBe(400);
    const { id, secret } = added.body as { id: string; secret: string };
    expect((await ask('GET', '/accounts/me/webhooks')).body).toEqual({
      webhooks: [{ id, url, events: ['server.created'] }],
    });

    await ask('PUT', '/namespaces/acme');
    await ask('PUT', '/servers/acme%2Fweather', {});
    await until(() => received.length === 2, 'the request is sent again');
    const [{ headers, body }, again] = received;
    expect(again.body).toBe(body);
    expect(again.headers['webhook-id']).toBe(headers['webhook-id']);
    expect(JSON.parse(body)).toMatchObject({ type: 'server.created', data: { target: { name: 'acme/weather' } } });
    const signed = `${String(again.headers['webhook-id'])}.${String(again.headers['webhook-timestamp'])}.${body}`;
    const hash = createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64')).update(signed);
    expect(again.headers['webhook-signature']).toBe(`v1,${hash.digest('base64')}`);

    const bob = (await ask('POST', '/accounts', { name: 'bob', kind: 'user' })).body;
    const bobs = (await ask('POST', `/accounts/${bob.id}/api-keys`, { name: 'bob' })).body.key as string;
    expect((await ask('DELETE', `/accounts/me/webhooks/${id}`, undefined, bobs)).status).toBe(404);
    await ask('PUT', '/namespaces/bobs', undefined, bobs);
    await ask('PUT', '/servers/bobs%2Fweather', {}, bobs);
    await ask('PUT', '/servers/acme%2Flast', {});
    await until(() => received.length === 3, 'the next event is sent');
    expect(JSON.parse(received[2].body)).toMatchObject({ data: { target: { name: 'acme/last' } } });
    expect((await ask('DELETE', `/accounts/me/webhooks/${id}`)).status).toBe(204);
    service.kill('SIGTERM');
    expect(await service.ended).toBe(0);
    await shut(receiver);
  },
  SLOW_MS,
);
