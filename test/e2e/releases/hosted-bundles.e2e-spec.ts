import { Logger } from '@nestjs/common';
import { beforeAll, describe, expect, jest } from '@jest/globals';
import { ProgramOwners } from '../../../src/hosting/hosting.js';
import { testAccount, testApp } from '../../support/app.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { ask } from '../../support/mcp/mcp-calls.js';
import { bundleOf } from '../../support/releases/bundles.js';
import { packBundle } from '../../support/releases/mcpb.js';
import { published, releaseIn, releasesPath, serverRow, type ReleaseBody } from '../../support/releases/releases.js';
import { refusedPort } from '../../support/special-upstreams/faulty-upstreams.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

/** Publishes a bundle to a server, a new one without a name, and waits for the end of the release. */
async function bundle(
  file: Buffer,
  status: string,
  { to, ...payload }: { to?: string; scanCredentials?: object } = {},
): Promise<{ path: string; name: string; release: ReleaseBody; log: string }> {
  const server = to ?? (await createServer(app, owner));
  const id = await published(app, owner, server, { type: 'stdio', runtime: 'node', ...payload }, { bundle: file });
  const release = await releaseIn(app, owner, server, id, status);
  return { name: server, path: `/servers/${encodeURIComponent(server)}`, release, log: messagesOf(release) };
}

function messagesOf({ logs }: ReleaseBody): string {
  return logs.map(({ level, message }) => `${level}: ${message}`).join('\n');
}

const app = testApp({ RUNTIME_BUNDLES: 'isolated', ACCESS_LOG: 'true' });
const owner = testAccount(app);
let name: string;
let url: string;
/** Everything that is logged, at any level. */
const logged = (['debug', 'log', 'warn', 'error'] as const).map((level) => jest.spyOn(Logger.prototype, level));

beforeAll(async () => {
  name = await createServer(app, owner);
  const id = await published(app, owner, name, { type: 'stdio', runtime: 'node' }, { bundle: await packBundle() });
  await releaseIn(app, owner, name, id, 'SUCCESS');
  const { body } = await app.as(owner).get(`/servers/${encodeURIComponent(name)}`);
  url = `${app.url}/run/${(body as { qualifiedName: string }).qualifiedName.replace('/', '--')}`;
});

const mine = () => ({ authorization: `Bearer ${owner.key}` });

interface Logged {
  invocations: { tool: string | null; response: { outcome: string }; logs: { message: string }[] }[];
}

describe('the scan of a bundle on a service that runs bundles', () => {
  verifies(
    'bundle:scan',
    'starts it with the scan credentials, and its record is that of a remote server',
    async () => {
      const {
        path,
        name: server,
        release,
        log,
      } = await bundle(await packBundle(), 'SUCCESS', { scanCredentials: { key: 'sk-scan' } });
      const { body } = await app.as(owner).get(path);
      expect(body).toMatchObject({
        remote: true,
        deploymentUrl: release.mcpUrl,
        connections: [{ type: 'http', deploymentUrl: release.mcpUrl }, { type: 'stdio' }],
        security: { scanPassed: true },
        tools: [{ name: 'forecast' }, { name: 'alerts' }],
      });
      expect(log).toMatch(/Connected to "bundled-weather"[\s\S]*security check passed/);
      expect(log).not.toContain('sk-scan');
      const listed = await app.as(owner).get(`/servers?ids=${(await serverRow(app, server)).id}&remote=true`);
      expect(listed.body).toMatchObject({ servers: [{ remote: true }] });
    },
  );

  verifies('bundle:scan', 'does not start one that lacks a value, until a rescan or a secret has it', async () => {
    const { path, name: server, release, log } = await bundle(await packBundle(), 'SUCCESS');
    expect(log).toContain('warning: The bundle was not started: needs "key"');
    expect((await app.as(owner).get(path)).body).toMatchObject({ security: null, remote: true });
    const rescan = (body: object) => app.as(owner).post(releasesPath(server, `/${release.id}/rescan`), body);
    expect((await rescan({ scanCredentials: { key: 'sk-scan' } })).status).toBe(202);
    const passed = async () => (await app.as(owner).get(path)).body as { security: { scanPassed: boolean } | null };
    await until(async () => (await passed()).security?.scanPassed === true, 'the rescan has passed');

    const broken = bundleWith(`if (process.env.KEY === 'stored') throw new Error('no database');`, ['key']);
    await app.as(owner).put(`${path}/secrets`, { name: 'key', value: 'stored' });
    const failed = await bundle(await broken, 'FAILURE_SCAN', { to: server });
    expect(failed.log).toContain('Error: no database');
    // The release before it stays current.
    expect((await app.as(owner).get(path)).body).toMatchObject({ currentReleaseId: release.id });
  });

  verifies('bundle:scan', 'fails one that ends before it answers, with its words', async () => {
    const { release, path } = await bundle(await bundleWith(`throw new Error('no database');`), 'FAILURE_SCAN');
    const { body } = await app.as(owner).get(`${path}/releases`);
    expect((body as { releases: { lastError: string }[] }).releases[0].lastError).toMatch(
      /ended before it answered\. .*Error: no database/,
    );
    expect(release.logs.filter(({ level }) => level === 'warning')).toEqual([]);
    const quiet = await bundle(await bundleWith('process.exit(3);'), 'FAILURE_SCAN');
    expect(quiet.log).toContain('exit code 3');
  });

  verifies('bundle:scan', 'warns of one that needs "uv" on a host without it', async () => {
    const server = { type: 'uv', entry_point: 'server/main.py', mcp_config: undefined };
    const { log } = await bundle(
      await bundleOf({ tools: [], user_config: {}, server }, { 'server/main.py': '' }),
      'SUCCESS',
    );
    expect(log).toContain('warning: The bundle was not started: it needs "uv", which the host lacks.');
  });
});

/** A bundle of this program, which requires these values. */
function bundleWith(program: string, required: string[] = []): Promise<Buffer> {
  const option = { type: 'string', title: 'Key', description: 'Of the service.', required: true };
  const values = Object.fromEntries(required.map((name) => [name, option]));
  return bundleOf({ tools: [], user_config: values }, { 'server/index.js': program });
}

describe('a bundle on a service that runs bundles', () => {
  const forecast = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'forecast', arguments: {} } };

  verifies(
    'bundle:run',
    'is called at its run address with what the caller configures, and its calls are logged',
    async () => {
      const { body } = await ask(`${url}?key=k-1`, forecast, mine());
      expect(body).toMatchObject({ result: { content: [{ text: 'forecast with k-1' }] } });
      const other = await ask(`${url}?key=k-2`, forecast, mine());
      expect(other.body).toMatchObject({ result: { content: [{ text: 'forecast with k-2' }] } });
      const logged = async () => {
        const answer = await app.as(owner).get(`/servers/${encodeURIComponent(name)}/logs?tool=forecast`);
        return (answer.body as Logged).invocations.filter(({ response }) => response.outcome === 'ok').length === 2;
      };
      await until(logged, 'both calls are logged');
    },
  );

  verifies('bundle:run', 'asks for what lacks before anything is started', async () => {
    const { status, body } = await ask(url, forecast, mine());
    expect([status, body.error]).toMatchObject([409, { code: -32002, data: { missing: { query: ['key'] } } }]);
  });

  verifies('bundle:run', 'is called through a connection that keeps its values', async () => {
    const namespace = await createNamespace(app, owner);
    const { path, body } = await createConnection(app, owner, { server: name }, { namespace });
    expect(body).toMatchObject({ status: { state: 'input_required' } });
    await app.as(owner).put(path, { mcpUrl: `${url}?key=mine` });
    const answer = await app.as(owner).post(`${path}/.tools/alerts`, {});
    expect(answer.body).toMatchObject({ content: [{ text: 'alerts with mine' }] });
  });

  verifies(
    'log:process',
    'leaves log lines of releases, connections and keys that name them and the account',
    async () => {
      const { path } = await createConnection(app, owner, { mcpUrl: await refusedPort() });
      expect((await app.as(owner).post(`${path}/.tools/echo`, {})).status).toBe(502);
      const failed = await published(app, owner, name, { type: 'external', upstreamUrl: 'http://127.0.0.1:9/mcp' });
      await releaseIn(app, owner, name, failed, 'FAILURE');
      const keys = `/accounts/${owner.id}/api-keys`;
      const made = await app.as(owner).post(keys, { name: 'short' });
      const { id, key } = made.body as { id: string; key: string };
      expect((await app.as({ ...owner, key }).get('/namespaces')).status).toBe(200);
      expect((await app.as(owner).delete(`${keys}/${id}`)).status).toBe(200);
      expect((await app.as(owner).delete(path)).status).toBe(200);
      // As the engine of the bundle writes it.
      const ref = {
        kind: 'release' as const,
        id: failed,
        ownerId: failed,
        engine: 'bundle' as const,
        isStateful: true,
      };
      app.get(ProgramOwners).log(ref, 'error', { msg: 'a request to a bundle failed' });

      const lines = () =>
        logged.flatMap(({ mock }) =>
          mock.calls.map(([entry], at) => ({
            context: (mock.contexts[at] as { context?: string }).context,
            ...(typeof entry === 'string' ? { msg: entry } : (entry as { msg: string })),
          })),
        ) as { context: string; msg: string; account?: string; server?: string; connection?: string }[];
      await until(() => lines().some(({ msg }) => msg === 'a request to a bundle failed'), 'the line is written');
      const requests = lines().filter(({ context }) => context === 'request');
      expect(requests.map(({ msg }) => msg)).toEqual(
        expect.arrayContaining([`POST ${keys} 201`, `DELETE ${keys}/${id} 200`, `DELETE ${path} 200`]),
      );
      expect(requests.filter(({ account }) => account !== owner.id)).toEqual([]);
      const others = lines().filter(({ context, msg }) => context !== 'request' && ABOUT_ONE.test(msg));
      expect(others.length).toBeGreaterThanOrEqual(3);
      expect(
        others.filter(({ account, server, connection }) => account !== owner.id || !(server ?? connection)),
      ).toEqual([]);
      expect(others.map(({ msg, server }) => [msg, server])).toContainEqual(['a release is FAILURE', name]);
    },
  );
});

/** A line about one release, connection, program or credential. */
const ABOUT_ONE = /^(an?|the) .*\b(release|connection|program|bundle|tunnel|authorization|token)\b/;
