import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startApp, type TestAccount, type TestApp } from '../support/app.js';
import { createConnection, createServer } from '../support/factories.js';
import { formBytes, putForm, releaseForm } from '../support/documentation/raw-form.js';
import { followLog } from '../support/logs/log-follower.js';
import { record } from '../support/logs/invocations.js';
import { cleanUpPrograms, runProgram, type Program } from '../support/program.js';
import { pathOf, serverIdOf } from '../support/database/server-rows.js';
import { freePort } from '../support/upstream/upstream-net.js';
import { startUpstream, type Upstream } from '../support/upstream/upstream.js';
import { until } from '../support/until.js';

const SLOW_MS = 300_000;
const MB = 1024 * 1024;

let nginx: ChildProcess;
let folder: string;
let owner: TestAccount;
let upstream: Upstream;
/** A process of the service, with the addresses of the proxy in its answers. */
let app: TestApp;
/** Another process on the same database. */
let second: Program;
/** The service as it is reached through nginx. */
let proxied: TestApp;

beforeAll(async () => {
  const [port, ...ports] = await Promise.all([freePort(), freePort(), freePort()]);
  const url = `http://127.0.0.1:${port}`;
  const settings = { PUBLIC_URL: url, TRUST_PROXY: '127.0.0.1' };
  [app, upstream] = await Promise.all([startApp({ ...settings, PORT: String(ports[0]) }), startUpstream()]);
  second = runProgram('main.js', {
    ...settings,
    PORT: String(ports[1]),
    ROLES: 'api',
    DATABASE_URL: app.env.databaseUrl ?? '',
    DATA_DIR: app.env.dataDir,
    ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
  });
  await second.url();
  folder = await mkdtemp(join(tmpdir(), 'slipway-nginx-'));
  nginx = spawn('nginx', ['-p', folder, '-c', await configOf(port, ports)], {
    stdio: 'ignore',
    // Debian installs it where only root looks.
    env: { PATH: `${process.env.PATH}:/usr/sbin` },
  });
  owner = await app.account();
  proxied = { ...app, url };
  await until(async () => (await fetch(`${url}/ready`).catch(() => null))?.status === 200, 'nginx passes requests on');
}, SLOW_MS);

afterAll(async () => {
  nginx?.kill('SIGTERM');
  await cleanUpPrograms();
  await Promise.all([app?.close(), upstream?.close()]);
  if (folder) await rm(folder, { recursive: true, force: true });
}, SLOW_MS);

/** The sample with these ports and without TLS, in a configuration that leaves nothing outside of the folder. */
async function configOf(port: number, ports: number[]): Promise<string> {
  const sample = await readFile('docker/nginx.conf', 'utf8');
  const servers = ports.map((to) => `server 127.0.0.1:${to};`).join('\n  ');
  const site = sample
    .replace('server 127.0.0.1:3000;', servers)
    .replace('listen 443 ssl;', `listen 127.0.0.1:${port};`)
    .replaceAll(/^\s*ssl_certificate.*$/gm, '');
  expect(site).toContain(servers);
  expect(site).toContain(`listen 127.0.0.1:${port};`);
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${folder}/${kind};`,
  );
  const main = `daemon off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log;
events { worker_connections 512; }
http { access_log off; ${paths.join(' ')} ${site} }`;
  await writeFile(join(folder, 'nginx.conf'), main);
  return join(folder, 'nginx.conf');
}

const call = async (path: string, body: object): Promise<number> => {
  const headers = { authorization: `Bearer ${owner.key}`, 'content-type': 'application/json' };
  const answer = await fetch(`${proxied.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  await answer.text();
  return answer.status;
};

describe('the nginx sample in front of two processes', () => {
  it('passes names with %2F, and neither metrics nor requests between processes', async () => {
    const name = await createServer(app, owner);
    const headers = { authorization: `Bearer ${owner.key}` };
    const read = (path: string) => fetch(`${proxied.url}${path}`, { headers });
    const shown = await read(pathOf(name));
    expect([shown.status, await shown.json()]).toMatchObject([200, { qualifiedName: name }]);
    for (const path of ['/metrics', '/internal/', '/%69nternal/x', '/x/../metrics']) {
      expect([path, (await read(path)).headers.get('server'), (await read(path)).status]).toEqual([
        path,
        expect.stringContaining('nginx'),
        404,
      ]);
    }
  });

  it('passes each event of a stream at once', async () => {
    const name = await createServer(app, owner);
    const follower = await followLog(proxied, owner, name);
    await until(() => follower.events.length === 1, 'the stream begins');
    record(app, await serverIdOf(app, name), { messages: ['passed'] });
    await until(() => follower.told().includes('passed'), 'the next event passes while the stream is open');
    follower.close();
  });

  it('passes the largest bodies of forms and calls', async () => {
    const name = await createServer(app, owner);
    const files = { module: Buffer.alloc(10 * MB, ' '), sourcemap: Buffer.alloc(20 * MB, ' ') };
    const configSchema = { type: 'object', description: 'x'.repeat(3.5 * MB) };
    const form = formBytes(releaseForm({ type: 'hosted', configSchema }, files));
    const direct = await putForm(app, owner, name, form);
    const passed = await putForm(proxied, owner, name, form);
    expect([passed.status, Object.keys(passed.body)]).toEqual([direct.status, Object.keys(direct.body)]);
    expect(passed.status).not.toBe(413);
    const { path } = await createConnection(app, owner, { mcpUrl: upstream.url });
    expect(await call(`${path}/.tools/echo`, { message: 'x'.repeat(15 * MB) })).toBe(200);
  });

  it(
    'repeats a refused connection at the other process, and no call twice',
    async () => {
      const { path } = await createConnection(app, owner, { mcpUrl: upstream.url });
      const sent = () => upstream.count('tools/call');
      const statuses = async (count: number) => {
        const found = new Set<number>();
        for (let n = 0; n < count; n += 1) found.add(await call(`${path}/.tools/echo`, { message: String(n) }));
        return [...found];
      };
      const before = sent();
      expect(await statuses(20)).toEqual([200]);
      second.kill('SIGKILL');
      await second.ended;
      expect(await statuses(40)).toEqual([200]);
      expect(sent() - before).toBe(60);
    },
    SLOW_MS,
  );
});
