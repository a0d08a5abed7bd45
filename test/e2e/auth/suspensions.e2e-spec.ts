import { beforeAll, describe, expect } from '@jest/globals';
import { testAccount, testApp, type TestAccount, type TestApp } from '../../support/app.js';
import { pathOf, releaseServer } from '../../support/database/server-rows.js';
import { createConnection, createServer } from '../../support/factories.js';
import { mcpAccept, request, send } from '../../support/mcp/calls.js';
import { initialize } from '../../support/mcp/mcp-calls.js';
import { startScripted } from '../../support/special-upstreams/scripted-upstream.js';
import { until } from '../../support/until.js';
import { aloneVerifies, verifies } from '../../support/verifies.js';

/** The longest time in which a suspended thing may still be called. */
const END_MS_MAX = 5_000;
const REASON = 'It sends the data of its callers elsewhere.';

const app = testApp();
/** Another process. */
let second: TestApp;
const owner = testAccount(app);
const caller = testAccount(app);
let server: string;
let connection: string;
let namespace: string;

beforeAll(async () => {
  const { url } = await startScripted(() => '{"tools":[{"name":"forecast","inputSchema":{"type":"object"}}]}');
  second = await app.sibling();
  server = await createServer(app, owner);
  await releaseServer(app, server, { upstreamUrl: url });
  ({ path: connection, namespace } = await createConnection(app, caller, { server }));
});

const list = (on: TestApp, account: TestAccount, path: string) =>
  send(on, account, path, request(1, 'tools/list'), { headers: mcpAccept });

const run = (on: TestApp) => list(on, caller, `/run/${server.replace('/', '--')}`);

const suspend = (by: TestAccount, path: string, reason: string | null) =>
  app.as(by).put(`${path}/suspension`, { reason });

/** Suspends a thing, sees calls of it refused in both processes, and ends that. */
async function refusedWhile(path: string, call: (on: TestApp) => ReturnType<typeof list>, thing: string) {
  for (const on of [app, second]) expect((await call(on)).status).toBe(200);
  expect((await suspend(app.operator, path, REASON)).status).toBe(200);
  for (const on of [app, second]) {
    const refused = await until(
      async () => {
        const answer = await call(on);
        return answer.status === 403 ? answer : null;
      },
      'the call is rejected',
      END_MS_MAX,
    );
    expect(refused.text).toContain(`Forbidden: the operator suspended this ${thing}: ${REASON}`);
  }
  expect((await suspend(app.operator, path, null)).status).toBe(200);
  for (const on of [app, second]) await until(async () => (await call(on)).status === 200, 'the calls work again');
}

describe('a suspension', () => {
  verifies('suspension:server', 'refuses calls of a server with the reason, in every process', async () => {
    await refusedWhile(pathOf(server), run, 'server');
    await refusedWhile(pathOf(server), (on) => list(on, caller, `${connection}/mcp`), 'server');
  });

  verifies(
    'suspension:namespace',
    'refuses calls in a namespace: of its servers, its connections and itself',
    async () => {
      const [home = ''] = server.split('/');
      await refusedWhile(`/namespaces/${home}`, run, 'server');
      await refusedWhile(`/namespaces/${namespace}`, (on) => list(on, caller, `${connection}/mcp`), 'namespace');
      await refusedWhile(
        `/namespaces/${namespace}`,
        (on) => list(on, caller, `/connect/${namespace}/.mcp`),
        'namespace',
      );
    },
  );

  aloneVerifies('suspension:namespace', 'ends streams of its connections, in every process', async () => {
    let ended = 0;
    for (const on of [app, second]) {
      const url = `${on.url}${connection}/mcp`;
      const session = await initialize(url, {}, '2025-06-18', `Bearer ${caller.key}`);
      const response = await fetch(url, { headers: { ...session, accept: 'text/event-stream' } });
      expect(response.status).toBe(200);
      void response.text().finally(() => (ended += 1));
    }
    expect((await suspend(app.operator, `/namespaces/${namespace}`, REASON)).status).toBe(200);
    await until(() => ended === 2, 'the streams end', END_MS_MAX);
    expect((await suspend(app.operator, `/namespaces/${namespace}`, null)).status).toBe(200);
  });

  verifies('suspension:shown', 'is in the records of what it concerns, for who may read them', async () => {
    const [home = ''] = server.split('/');
    const ofHome = { path: `/namespaces?q=${home}`, one: 'namespaces' };
    const suspended = { reason: REASON, since: expect.stringMatching(/^20.*Z$/) };
    for (const [path, shownAt] of [
      [pathOf(server), { path: pathOf(server) }],
      [connection, { path: connection }],
      [`/namespaces/${home}`, { path: pathOf(server) }],
      [`/namespaces/${home}`, ofHome],
      [`/namespaces/${namespace}`, { path: connection }],
      [`/namespaces/${namespace}`, { path: `/connect/${namespace}`, one: 'connections' }],
    ] as [string, { path: string; one?: string }][]) {
      const shown = async () => {
        const { body } = await app.as(caller).get(shownAt.path);
        return (shownAt.one ? body[shownAt.one][0] : body) as object;
      };
      await suspend(app.operator, path, REASON);
      expect([path, await shown()]).toEqual([path, expect.objectContaining({ suspended })]);
      await suspend(app.operator, path, null);
      expect([path, await shown()]).not.toHaveProperty('1.suspended');
    }
  });

  verifies('suspension:connection', 'refuses calls of a connection, also over REST', async () => {
    await refusedWhile(connection, (on) => list(on, caller, `${connection}/mcp`), 'connection');
    expect((await suspend(app.operator, connection, REASON)).status).toBe(200);
    const { status, body } = await app.as(caller).post(`${connection}/.tools/forecast`, {});
    expect([status, body]).toEqual([
      403,
      { error: 'suspended', message: `Forbidden: the operator suspended this connection: ${REASON}` },
    ]);
    expect((await suspend(app.operator, connection, null)).status).toBe(200);
  });

  verifies('suspension:operator', 'is set by operators only, also of what they may not read', async () => {
    const hidden = await createServer(app, owner);
    expect((await app.as(owner).patch(pathOf(hidden), { visibility: 'private' })).status).toBe(200);
    for (const path of [pathOf(hidden), connection, `/namespaces/${namespace}`]) {
      expect([path, (await suspend(owner, path, REASON)).status]).toEqual([path, 403]);
      expect([path, (await suspend(app.operator, path, '')).status]).toEqual([path, 400]);
      expect([path, (await suspend(app.operator, `${path}x`, REASON)).status]).toEqual([path, 404]);
    }
    expect((await suspend(app.operator, pathOf(hidden), REASON)).status).toBe(200);
    expect((await app.as(app.operator).get(pathOf(hidden))).status).toBe(404);
    expect((await app.as(app.operator).get(connection)).status).toBe(404);
    // Who may not find it sees nothing of it.
    expect((await list(app, caller, `/run/${hidden.replace('/', '--')}`)).status).toBe(404);
  });
});
