import type { ChildProcess } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startApp, type TestAccount, type TestApp } from '../support/app.js';
import { createConnection, createServer } from '../support/factories.js';
import { formBytes, putForm, releaseForm } from '../support/documentation/raw-form.js';
import { publishHosted } from '../support/hosting/hosted-releases.js';
import { followLog } from '../support/logs/log-follower.js';
import { record } from '../support/logs/invocations.js';
import { ask } from '../support/mcp/mcp-calls.js';
import { pair } from '../support/mcp/uplink-client.js';
import { openBrowser } from '../support/people/browser-session.js';
import { startNginx } from '../support/nginx.mjs';
import { cleanUpPrograms, runProgram, type Program } from '../support/program.js';
import { pathOf, serverIdOf } from '../support/database/server-rows.js';
import { bundleOf } from '../support/releases/bundles.js';
import { published, releaseIn } from '../support/releases/releases.js';
import { closing } from '../support/upstream/upstream-clients.js';
import { freePort } from '../support/upstream/upstream-net.js';
import { startUpstream, type Upstream } from '../support/upstream/upstream.js';
import { until } from '../support/until.js';
import { verifies } from '../support/verifies.js';

const SLOW_MS = 300_000;
const MB = 1024 * 1024;

/** Tools are silent for two of nginx's read timeouts. A stream begins after 5 s and has a comment every 10 s. */
const SILENT_MS = 26_000;
const READ_TIMEOUT = '13s';
const SILENT_CALLS = 3;

const PING = { jsonrpc: '2.0', id: 1, method: 'ping' };
/** A hosted module without tools. */
const MODULE = `const serverInfo = { name: 'quiet', version: '1.0.0' };
const results = { ping: () => ({}), initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: {}, serverInfo }) };
export default { async fetch(request) {
  const { id, method, params } = await request.json().catch(() => ({}));
  if (id === undefined) return new Response(null, { status: 202 });
  return Response.json({ jsonrpc: '2.0', id, result: results[method]?.(params) ?? {} });
} };`;

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
  const settings = {
    PUBLIC_URL: url,
    TRUST_PROXY: '127.0.0.1',
    RUNTIME_BUNDLES: 'isolated',
    MCP_CALL_TIMEOUT_MS: String(SILENT_MS + 10_000),
  };
  [app, upstream] = await Promise.all([startApp({ ...settings, PORT: String(ports[0]) }), startUpstream()]);
  second = runProgram('main.js', {
    ...settings,
    PORT: String(ports[1]),
    ROLES: 'api',
    DATABASE_URL: app.env.databaseUrl ?? '',
    DATA_DIR: app.env.dataDir,
    EGRESS_ALLOW: 'loopback',
    ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
  });
  await second.url();
  folder = await mkdtemp(join(tmpdir(), 'slipway-nginx-'));
  nginx = startNginx(folder, port, ports, { 'proxy_read_timeout 1h;': `proxy_read_timeout ${READ_TIMEOUT};` });
  owner = await app.account();
  proxied = { ...app, url };
  await until(async () => (await fetch(`${url}/ready`).catch(() => null))?.status === 200, 'nginx passes requests on');
}, SLOW_MS);

afterAll(async () => {
  nginx?.kill('SIGTERM');
  await cleanUpPrograms();
  if (folder) await rm(folder, { recursive: true, force: true });
}, SLOW_MS);

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

  it('passes each event of a stream immediately', async () => {
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

  verifies(
    'mcp:long-calls',
    'an MCP call of a tool that says nothing outlasts the read timeout of nginx, whatever runs the tool, at both processes',
    async () => {
      const tool = { name: 'quiet', description: 'Says nothing', inputSchema: { type: 'object' } };
      const result = { content: [{ type: 'text', text: 'at last' }] };
      const quiet = () => wait(SILENT_MS, result);
      const external = closing(await startUpstream({ tools: [{ ...tool, call: quiet }] }));
      const { path: externalPath } = await createConnection(app, owner, { mcpUrl: external.url });

      const { path: uplinkPath } = await createConnection(app, owner, { transport: 'uplink' });
      const tunnel = await pair(app, owner, uplinkPath, { tools: ['quiet'], answers: { 'tools/call': quiet } });

      const source = `const results = {
        initialize: ({ protocolVersion }) => ({
          protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'quiet', version: '1.0.0' },
        }),
        'tools/list': () => (${JSON.stringify({ tools: [tool] })}),
        'tools/call': () => new Promise((resolve) => setTimeout(resolve, ${SILENT_MS}, ${JSON.stringify(result)})),
      };
      const answer = async ({ id, method, params }) => {
        const found = results[method];
        const body = found ? { result: await found(params) } : { error: { code: -32601, message: 'Method not found' } };
        return { jsonrpc: '2.0', id, ...body };
      };`;
      const hosted = await publishHosted(
        app,
        owner,
        `${source}
        export default { async fetch(request) {
          const message = await request.json().catch(() => ({}));
          return message.id === undefined ? new Response(null, { status: 202 }) : Response.json(await answer(message));
        } };`,
      );
      const bundle = await bundleOf(
        {
          server: {
            type: 'node',
            entry_point: 'server/index.mjs',
            mcp_config: { command: 'node', args: ['${__dirname}/server/index.mjs'], env: {} },
          },
          tools: [{ name: tool.name, description: tool.description }],
          user_config: {},
        },
        {
          'server/index.mjs': `import { createInterface } from 'node:readline';
          ${source}
          createInterface({ input: process.stdin }).on('line', async (line) => {
            const message = JSON.parse(line);
            if (message.id !== undefined) console.log(JSON.stringify(await answer(message)));
          });`,
        },
      );
      const name = await createServer(app, owner);
      const id = await published(app, owner, name, { type: 'stdio', runtime: 'node' }, { bundle });
      const release = await releaseIn(app, owner, name, id, 'SUCCESS');

      const paths = {
        external: `${externalPath}/mcp`,
        uplink: `${uplinkPath}/mcp`,
        module: new URL(hosted.url).pathname,
        bundle: new URL(String(release.mcpUrl)).pathname,
      };
      const params = { name: 'quiet', arguments: {} };
      const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
      const calls = Object.entries(paths).flatMap(([kind, path]) =>
        Array.from({ length: SILENT_CALLS }, async () => {
          const startedAt = performance.now();
          const { status, body } = await ask(`${proxied.url}${path}`, message, {
            authorization: `Bearer ${owner.key}`,
          });
          expect(performance.now() - startedAt).toBeGreaterThan(SILENT_MS - 100);
          return [kind, status, body.result ?? body];
        }),
      );
      expect(await Promise.all(calls)).toEqual(
        Object.keys(paths).flatMap((kind) => Array(SILENT_CALLS).fill([kind, 200, expect.objectContaining(result)])),
      );
      const passed = (await readFile(join(folder, 'access.log'), 'utf8')).split('\n');
      for (const [kind, path] of Object.entries(paths)) {
        const processes = new Set(passed.filter((line) => line.endsWith(` ${path}`)).map((line) => line.split(' ')[0]));
        expect([kind, processes.size]).toEqual([kind, 2]);
      }
      await tunnel.close();
    },
    SLOW_MS,
  );

  it(
    'repeats a refused connection at the other process, and no call twice',
    async () => {
      const { path } = await createConnection(app, owner, { mcpUrl: upstream.url });
      const sent = () => upstream.count('tools/call');
      const statuses = async (count: number) => {
        const seen = new Set<number>();
        for (let n = 0; n < count; n += 1) seen.add(await call(`${path}/.tools/echo`, { message: String(n) }));
        return [...seen];
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

it(
  'nginx takes a sub-path off by the lines of docs/guides/operate.md, and names with %2F, events and cookies pass',
  async () => {
    const [port, own, plain] = await Promise.all([freePort(), freePort(), freePort()]);
    const url = `http://127.0.0.1:${port}/slipway`;
    const below = await startApp({ PUBLIC_URL: url, TRUST_PROXY: '127.0.0.1', PORT: String(own) });
    const [, lines] =
      /within `location \/slipway\/`: `(.+?)`/.exec(await readFile('docs/guides/operate.md', 'utf8')) ?? [];
    const location = { 'location / {': 'location /slipway/ {' };
    const to = `127.0.0.1:${own}`;
    const proxies = [
      startNginx(join(folder, 'below'), port, [own], {
        ...location,
        'proxy_pass http://slipway;': String(lines).replace('127.0.0.1:3000', to),
      }),
      startNginx(join(folder, 'plain'), plain, [own], location),
    ];
    try {
      await until(
        async () => (await fetch(`${url}/ready`).catch(() => null))?.status === 200,
        'nginx passes requests on',
      );
      const account = await below.account();
      const name = await createServer(below, account);
      const headers = { authorization: `Bearer ${account.key}` };
      const shown = await fetch(`${url}${pathOf(name)}`, { headers });
      expect([shown.status, await shown.json()]).toMatchObject([200, { qualifiedName: name }]);
      const follower = await followLog({ ...below, url }, account, name);
      await until(() => follower.events.length === 1, 'the stream begins');
      follower.close();
      const published = await publishHosted(below, account, MODULE);
      expect(published.url).toMatch(`${url}/`);
      const called = await ask(published.url, PING, headers);
      expect([called.status, called.body]).toMatchObject([200, { result: {} }]);
      const login = await openBrowser({ url }).get('/login');
      expect([login.status, String(login.headers['set-cookie'])]).toEqual([
        200,
        expect.stringContaining('Path=/slipway;'),
      ]);
      for (const path of ['/ready', pathOf(name), '/login']) {
        const missed = await fetch(`http://127.0.0.1:${plain}/slipway${path}`, { headers });
        expect([path, missed.status, missed.headers.get('slipway-hint')]).toEqual([
          path,
          404,
          'PUBLIC_URL has the path /slipway: the proxy must take it off.',
        ]);
      }
    } finally {
      for (const proxy of proxies) proxy.kill('SIGTERM');
    }
  },
  SLOW_MS,
);
