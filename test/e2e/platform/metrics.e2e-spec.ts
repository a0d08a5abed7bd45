// Also run with the queue on Redis by test:long: jobs.
import { readFile } from 'node:fs/promises';
import { afterEach, beforeAll, beforeEach, describe, expect, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { CallRecord } from '../../../src/modules/connections/log/log-recorder.js';
import type { ConnectionCall } from '../../../src/modules/logs/invocation.types.js';
import { ConnectionCallsService } from '../../../src/modules/logs/connection-calls.service.js';
import { InvocationsService } from '../../../src/modules/logs/ingest/invocations.service.js';
import { ConnectionRechecker } from '../../../src/modules/connections/recheck/connection-rechecker.js';
import { StatusRecorder } from '../../../src/modules/connections/core/status-recorder.js';
import { uuidV7 } from '../../../src/platform/database/uuid-v7.js';
import { testAccount, testApp, uniqueName } from '../../support/app.js';
import { mcp, mcpAccept, send, toolCall } from '../../support/mcp/calls.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { publishHosted } from '../../support/hosting/hosted-releases.js';
import { append } from '../../support/logs/invocations.js';
import { followLog } from '../../support/logs/log-follower.js';
import { metricsOf, type ShownMetrics } from '../../support/logs/prometheus.js';
import { publishExternal } from '../../support/releases/releases.js';
import { serverIdOf } from '../../support/database/server-rows.js';
import { openTunnel, pair } from '../../support/mcp/uplink-client.js';
import { until } from '../../support/until.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { connectV1 } from '../../support/upstream/upstream-clients.js';
import { longVerifies, verifies } from '../../support/verifies.js';

/** A worker that speaks just enough MCP at /mcp. */
const HELLO = `
  export default {
    async fetch(request) {
      const { id, method } = await request.json();
      const answer = (result) => Response.json({ jsonrpc: '2.0', id, result });
      if (id === undefined) return new Response(null, { status: 202 });
      if (method === 'initialize') {
        return answer({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'hello', version: '1' } });
      }
      if (method === 'tools/list') return answer({ tools: [{ name: 'hello', inputSchema: { type: 'object' } }] });
      for (let i = 0, sum = 0; i < 3e7; i += 1) sum += i;
      if (method === 'tools/call') return answer({ content: [{ type: 'text', text: 'hello' }] });
      return Response.json({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no such method' } });
    },
  };`;

const TOKEN = 'metrics-token-of-this-test';

const app = testApp({ METRICS_TOKEN: TOKEN });
const owner = testAccount(app);
let namespace: string;
let upstream: Upstream;
const open: { close(): unknown }[] = [];

beforeAll(async () => {
  upstream = await startUpstream();
  namespace = await createNamespace(app, owner);
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.close()));
});

/** The page of a process, as Prometheus reads it. */
async function scrape(from = app): Promise<ShownMetrics> {
  return metricsOf(await from.as().get('/metrics').set('authorization', `Bearer ${TOKEN}`));
}

/** Expects a value to grow by `by`. Waits for values that are counted after the answer. */
async function growth(name: string, labels: string, by: number, work: () => Promise<unknown>): Promise<void> {
  const before = (await scrape()).value(name, labels);
  await work();
  await until(async () => (await scrape()).value(name, labels) >= before + by, `${name} has grown by ${by}`);
  expect([name, (await scrape()).value(name, labels) - before]).toEqual([name, by]);
}

/** Waits until a gauge shows this. */
async function shows(name: string, value: number, labels = ''): Promise<void> {
  await until(async () => (await scrape()).value(name, labels) === value, `${name} is ${value}`);
}

describe('access to the metrics', () => {
  verifies('metrics:access', 'only a caller with the token: no API key, not even the operator’s', async () => {
    const keys = [undefined, owner.key, app.operator.key, `${TOKEN}x`, TOKEN.slice(1), 'x'.repeat(300)];
    for (const key of keys) {
      const asked = app.as().get('/metrics');
      const answer = await (key === undefined ? asked : asked.set('authorization', `Bearer ${key}`));
      expect([answer.status, answer.body]).toEqual([401, { error: expect.stringContaining('METRICS_TOKEN') }]);
      expect(answer.headers['www-authenticate']).toMatch(/^Bearer/);
    }
    for (const scheme of ['Basic', 'Token', '']) {
      const answer = await app.as().get('/metrics').set('authorization', `${scheme} ${TOKEN}`);
      expect(answer.status).toBe(401);
    }
    const page = await app.as().get('/metrics').set('authorization', `bearer ${TOKEN}`);
    expect(page.status).toBe(200);
    expect(page.headers['cache-control']).toBe('no-store');
  });

  verifies('metrics:access', 'no caller without a token setting, and every caller with `open`', async () => {
    const [off, opened] = [
      await app.sibling({ METRICS_TOKEN: '', ROLES: 'worker' }),
      await app.sibling({ METRICS_TOKEN: 'open', ROLES: 'worker' }),
    ];
    open.push(off, opened);
    for (const bearer of ['', `Bearer ${TOKEN}`, 'Bearer open']) {
      const answer = await off.as().get('/metrics').set('authorization', bearer);
      expect([answer.status, answer.text]).toEqual([404, expect.stringContaining('METRICS_TOKEN')]);
    }
    expect(metricsOf(await opened.as().get('/metrics')).value('slipway_database_connections_max')).toBe(5);
  });
});

describe('what the metrics show', () => {
  let path: string;

  beforeEach(async () => {
    ({ path } = await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace }));
  });

  verifies('metrics:figures', 'requests by kind, calls by outcome, and their durations', async () => {
    const before = await scrape();
    const call = () => app.as(owner).post(`${path}/.tools/echo`, { message: 'hi' });
    await growth('slipway_calls_total', 'kind="connection",outcome="ok"', 1, async () => {
      expect((await call()).status).toBe(200);
    });
    await growth('slipway_calls_total', 'kind="connection",outcome="ok"', 1, () =>
      mcp(app, owner, path, toolCall(1, 'echo', { message: 'hi' })),
    );
    await growth('slipway_calls_total', 'kind="connection",outcome="toolError"', 1, () =>
      app.as(owner).post(`${path}/.tools/fail`, {}),
    );
    await growth('slipway_calls_total', 'kind="connection",outcome="denied"', 1, () =>
      mcp(app, owner, path, 'nonsense'),
    );
    await growth('slipway_http_requests_total', 'kind="rest",status="4xx"', 1, () => app.as().get(path));
    await growth('slipway_http_requests_total', 'kind="mcp",status="2xx"', 1, () =>
      mcp(app, owner, path, toolCall(2, 'echo')),
    );
    await growth('slipway_http_requests_total', 'kind="registry",status="2xx"', 1, () =>
      app.as(owner).get('/namespaces'),
    );
    await growth('slipway_http_requests_total', 'kind="run",status="4xx"', 1, () =>
      send(app, owner, '/run/nobody', '{}'),
    );
    const after = await scrape();
    for (const name of ['slipway_call_duration_seconds', 'slipway_upstream_first_byte_seconds']) {
      const series = name.includes('call') ? '{kind="connection"}' : '';
      const count = (page: ShownMetrics) => page.all.get(name)?.values.get(`_count${series}`) ?? NaN;
      const seconds = after.all.get(name)?.values.get(`_sum${series}`) ?? NaN;
      expect(count(after) - count(before)).toBeGreaterThanOrEqual(3);
      expect(seconds).toBeGreaterThan(0);
      expect(seconds).toBeLessThan(60);
    }
    const requests = (page: ShownMetrics) =>
      page.all.get('slipway_http_request_duration_seconds')?.values.get('_count{kind="rest"}') ?? NaN;
    expect(requests(after)).toBeGreaterThan(requests(before));
    expect(after.value('slipway_connection_links')).toBeGreaterThanOrEqual(1);
  });

  verifies('metrics:figures', 'dropped and waiting entries of buffers', async () => {
    const serverId = await serverIdOf(app, await createServer(app, owner, { namespace }));
    await growth('slipway_log_invocations_dropped_total', '', 4, async () => {
      // A quarter of 64 Mi characters may wait of one server.
      const lines = [{ at: Date.now(), level: 'log', message: 'x'.repeat(17 * 1024 * 1024) }];
      for (let i = 0; i < 4; i += 1) append(app, { id: uuidV7(), serverId, lines });
    });
    const recorder = app.get(ConnectionCallsService);
    const connectionId = randomUUID();
    const call = () =>
      Object.assign(new CallRecord({ headers: {} }, null), { connectionId }).finish({
        method: 'POST',
        url: path,
        status: 200,
      });
    await growth('slipway_connection_log_dropped_total', '', 3, async () => {
      // Of one connection 1,000 calls a minute are recorded; no minute ends here.
      const now = Date.now();
      const clock = jest.spyOn(Date, 'now').mockReturnValue(now);
      for (let i = 0; i < 1_003; i += 1) recorder.record({ ...(call() as ConnectionCall), outcome: 'ok' });
      clock.mockRestore();
    });
    await app.get(InvocationsService).settle();
    expect((await scrape()).value('slipway_log_invocations_waiting')).toBe(0);
  });

  verifies('metrics:figures', 'tunnels that are open, and why others were refused', async () => {
    const up = await createConnection(app, owner, { transport: 'uplink' }, { namespace });
    open.push(await pair(app, owner, up.path));
    await shows('slipway_uplink_tunnels', 1);
    await growth('slipway_uplink_refused_total', 'reason="paired"', 1, () =>
      openTunnel(app, owner, up.path).catch(() => undefined),
    );
    await Promise.all(open.splice(0).map((one) => one.close()));
    await shows('slipway_uplink_tunnels', 0);
  });

  verifies('metrics:figures', 'what listeners and sessions are open', async () => {
    const name = await createServer(app, owner, { namespace });
    const log = await followLog(app, owner, name);
    await shows('slipway_log_streams', 1);
    log.close();
    await shows('slipway_log_streams', 0);

    const client = await connectV1(`${app.url}${path}/mcp`, {}, { headers: { authorization: `Bearer ${owner.key}` } });
    await shows('slipway_mcp_streams', 1);
    await client.callTool({ name: 'echo', arguments: { message: 'hi' } });
    expect((await scrape()).value('slipway_mcp_sessions')).toBeGreaterThanOrEqual(1);
    await client.close();
    await shows('slipway_mcp_streams', 0);
  });

  verifies('metrics:figures', 'releases by how they ended, the queues they wait in', async () => {
    const name = await createServer(app, owner, { namespace });
    await growth('slipway_releases_total', 'status="SUCCESS"', 1, () =>
      publishExternal(app, owner, name, { upstreamUrl: upstream.url }),
    );
    const page = await scrape();
    for (const state of ['waiting', 'active', 'delayed', 'failed']) {
      expect(page.value('slipway_queue_jobs', `queue="releases",state="${state}"`)).toBeGreaterThanOrEqual(0);
    }
    expect(page.value('slipway_queue_reachable')).toBe(1);
  });

  verifies('metrics:figures', 'checks of connections that were due', async () => {
    // A buffered success of an earlier call would postpone the check.
    await app.get(StatusRecorder).settle();
    await app.database.query('UPDATE connections SET next_check_at = NULL');
    await app.database.query(
      `UPDATE connections SET next_check_at = now() - interval '1 second', last_ok_at = NULL WHERE connection_id = $1`,
      [path.split('/').at(-1)],
    );
    await growth('slipway_connection_rechecks_total', 'result="done"', 1, () => app.get(ConnectionRechecker).run());
  });

  longVerifies('metrics:figures', 'hosted programs: their number, starts and resources', async () => {
    const { url } = await publishHosted(app, owner, HELLO);
    await growth('slipway_calls_total', 'kind="run",outcome="ok"', 1, async () => {
      const answer = await fetch(url, {
        method: 'POST',
        headers: { ...mcpAccept, 'content-type': 'application/json', authorization: `Bearer ${owner.key}` },
        body: JSON.stringify(toolCall(1, 'hello')),
      });
      expect(answer.status).toBe(200);
    });
    const page = await scrape();
    expect(page.value('slipway_hosting_programs', 'state="live"')).toBe(1);
    expect(page.value('slipway_hosting_starts_total')).toBeGreaterThanOrEqual(1);
    expect(page.value('slipway_hosting_memory_bytes')).toBeGreaterThan(1_048_576);
    expect(page.value('slipway_hosting_cpu_seconds_total')).toBeGreaterThan(0);
    expect(page.value('slipway_hosting_kills_total', 'reason="memory"')).toBe(0);
    expect(page.value('slipway_run_links')).toBeGreaterThanOrEqual(1);
  });

  verifies('metrics:figures', 'under the names that docs/reference/metrics.md lists', async () => {
    const page = await readFile(new URL('../../../docs/reference/metrics.md', import.meta.url), 'utf8');
    const listed = new Set([...page.matchAll(/^\| `(slipway_[a-z_]+)`/gm)].map(([, name]) => name));
    const shown = [...(await scrape()).all.keys()].filter((name) => name.startsWith('slipway_'));
    expect([...listed].sort()).toEqual(shown.sort());
  });

  verifies('metrics:figures', 'each process shows its own', async () => {
    const sibling = await app.sibling({ ROLES: 'api' });
    open.push(sibling);
    const up = await createConnection(app, owner, { transport: 'uplink' }, { namespace });
    open.unshift(await pair(app, owner, up.path));
    await shows('slipway_uplink_tunnels', 1);
    const other = await scrape(sibling);
    expect(other.value('slipway_uplink_tunnels')).toBe(0);
    expect(other.value('slipway_calls_total', 'kind="connection",outcome="ok"')).toBe(0);
    // Metrics of other roles are absent, not 0.
    expect(other.all.has('slipway_hosting_programs')).toBe(false);
    expect(other.all.has('slipway_releases_total')).toBe(false);
  });
});

describe('what the metrics never show', () => {
  /** The name of each series of ours, with its labels. */
  const series = ({ all }: ShownMetrics) =>
    [...all]
      .filter(([name]) => name.startsWith('slipway_'))
      .flatMap(([name, { values }]) => [...values.keys()].map((key) => name + key));

  verifies('metrics:secrecy', 'a name, an address or a key of anybody: what tenants do adds no series', async () => {
    const before = await scrape();
    const tenant = await app.account();
    const words = { namespace: uniqueName('canary'), server: uniqueName('canary'), connectionId: uniqueName('canary') };
    await createNamespace(app, tenant, words.namespace);
    const { path } = await createConnection(app, tenant, { mcpUrl: upstream.url }, words);
    const name = await createServer(app, tenant, words);
    await publishExternal(app, tenant, name, { upstreamUrl: upstream.url });
    for (const tool of ['echo', 'canary-tool']) await app.as(tenant).post(`${path}/.tools/${tool}`, {});
    await mcp(app, tenant, path, { jsonrpc: '2.0', id: 1, method: 'canary/method' });
    await send(app, tenant, `/run/${words.namespace}--${words.server}`, toolCall(1, 'echo'));
    await send(app, tenant, '/canary-path?canary=1', undefined, { method: 'CANARY' });
    await app.as().get(`/connect/${words.namespace}`);
    const after = await scrape();
    expect(series(after).toSorted()).toEqual(series(before).toSorted());
    expect(series(after).length).toBeLessThan(400);
    const secrets = [
      tenant.id,
      tenant.name,
      tenant.key,
      TOKEN,
      app.operator.key,
      new URL(upstream.url).port,
      'slipway_test',
    ];
    // Without the values of the series, which are numbers and may hold the digits of a port by chance.
    const shown = after.text.replaceAll(/^([^#].*) \S+$/gm, '$1');
    for (const word of ['canary', 'echo', ...Object.values(words), ...secrets]) expect(shown).not.toContain(word);
  });
});
