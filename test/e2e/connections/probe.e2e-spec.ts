import { createServer } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { gzipSync } from 'node:zlib';
import { describe, expect } from '@jest/globals';
import { testAccount, testApp, type TestAccount, type TestApp } from '../../support/app.js';
import { createServer as createRecord } from '../../support/factories.js';
import { startAuthorizationServer } from '../../support/people/authorization-server.js';
import { startFaulty } from '../../support/special-upstreams/faulty-upstreams.js';
import { startEverything } from '../../support/upstream/everything.js';
import { listen } from '../../support/upstream/upstream-net.js';
import { start } from '../../support/upstream/upstream-clients.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
/** Loopback is closed but for this address, where servers that redirect are. */
const ALLOWED = '127.0.0.9';
const strict = testApp({ EGRESS_ALLOW: ALLOWED });

const ask = (body: object, by: TestAccount = owner, at: TestApp = app) => at.as(by).post('/accounts/me/probe', body);

async function probed(body: object, by = owner, at = app): Promise<Record<string, unknown>> {
  const { status, body: found } = await ask(body, by, at);
  expect([status, found]).toEqual([200, expect.anything()]);
  return found as Record<string, unknown>;
}

/** Rows that a probe must not write. */
async function rowsOf(at: TestApp): Promise<unknown> {
  const tables = ['connections', 'upstream_eras', 'oauth_clients', 'pending_authorizations', 'upstream_credentials'];
  const counts = tables.map((table) => `(SELECT count(*)::int FROM ${table}) AS ${table}`);
  return at.database.query(`SELECT ${counts.join(', ')}`);
}

describe('POST /accounts/me/probe', () => {
  verifies(
    'probe:finds',
    'finds an open server, one that wants a key, and one behind OAuth, and stores nothing',
    async () => {
      const [everything, server] = await Promise.all([startEverything(), startAuthorizationServer()]);
      const keyed = await start({ requireHeaders: { 'x-api-key': 'the-key-of-the-test' } });
      const guarded = await server.protect((await start()).url);
      const before = await rowsOf(app);

      expect(await probed({ mcpUrl: everything.url })).toMatchObject({
        target: 'url',
        state: 'connected',
        reason: 'ok',
        nextStep: null,
        name: expect.stringContaining('everything'),
        version: expect.any(String),
        protocolVersion: '2025-11-25',
        login: { kind: 'none' },
        tools: expect.arrayContaining([expect.objectContaining({ name: 'echo', description: expect.any(String) })]),
        hasMoreTools: false,
        configSchema: null,
        didYouMean: null,
      });
      expect(await probed({ mcpUrl: keyed.url })).toMatchObject({
        state: 'auth_required',
        reason: 'unauthorized',
        login: { kind: 'key', header: 'Authorization' },
        tools: null,
      });
      expect(await probed({ mcpUrl: keyed.url, headers: { 'X-Api-Key': 'the-key-of-the-test' } })).toMatchObject({
        state: 'connected',
        tools: expect.arrayContaining([expect.objectContaining({ name: 'echo' })]),
      });
      const refused = await ask({ mcpUrl: keyed.url, headers: { 'x-api-key': 'a-secret-that-is-wrong' } });
      expect(refused.body).toMatchObject({
        state: 'auth_required',
        message: 'The server does not accept these headers.',
      });
      expect(refused.text).not.toContain('a-secret-that-is-wrong');
      expect(await probed({ mcpUrl: guarded.url })).toMatchObject({
        state: 'auth_required',
        login: { kind: 'oauth', host: new URL(server.issuer).host },
      });
      expect([server.registrations, server.seen.length]).toEqual([0, 0]);
      expect(await rowsOf(app)).toEqual(before);
      await Promise.all([everything.close(), server.close()]);
    },
  );

  verifies(
    'probe:sessions',
    'reads the first page of tools once, as a client that can be asked, and closes its sessions',
    async () => {
      const upstream = await start({ sessions: true });
      await probed({ mcpUrl: upstream.url });
      await upstream.waitFor(({ sessions }) => sessions.size === 0);
      expect([upstream.count('initialize'), upstream.count('tools/list')]).toEqual([2, 1]);
      expect(upstream.requests.filter(({ method }) => method === 'DELETE')).toHaveLength(2);
      // Another probe asks for the era again.
      await probed({ mcpUrl: upstream.url });
      expect(upstream.count('server/discover')).toBe(2);
    },
  );

  verifies('probe:did-you-mean', 'names the address with /mcp, where that one is an MCP endpoint', async () => {
    const open = await start();
    const keyed = await start({ requireHeaders: { authorization: 'Bearer right' } });
    const { url: other } = await startFaulty('html');
    for (const { url } of [open, keyed]) {
      const { origin } = new URL(url);
      expect(await probed({ mcpUrl: `${origin}/` })).toMatchObject({ reason: 'not_mcp', didYouMean: `${origin}/mcp` });
    }
    expect(await probed({ mcpUrl: new URL(other).origin })).toMatchObject({ reason: 'not_mcp', didYouMean: null });
  });

  verifies('probe:server', 'reads a registry server, starts nothing, and knows no private one of others', async () => {
    const qualifiedName = await createRecord(app, owner, { displayName: 'Weather', visibility: 'public' });
    expect(await probed({ server: qualifiedName })).toMatchObject({
      target: 'server',
      state: 'error',
      reason: 'not_runnable',
      name: qualifiedName,
      title: 'Weather',
      tools: null,
      configSchema: {},
    });
    const hidden = await createRecord(app, owner, { visibility: 'private' });
    const stranger = await app.account();
    for (const server of [hidden, 'nobody/nothing']) {
      const { status, body } = await ask({ server }, stranger);
      expect([status, body]).toEqual([404, { error: 'Server not found' }]);
    }
    expect(await probed({ server: hidden })).toMatchObject({ name: hidden });
  });

  verifies('probe:bounded', 'answers for servers that are silent, slow, huge, broken or away, in 8 s', async () => {
    const bomb = gzipSync(Buffer.alloc(256 * 1024 * 1024, ' '));
    const packed = createServer((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(bomb);
    });
    const faults = await Promise.all(
      (['silent', 'slow-body', 'too-big', 'garbage', 'hangs-up', 'server-error', 'forbidden'] as const).map((kind) =>
        startFaulty(kind),
      ),
    );
    const urls = [
      ...faults.map(({ url }) => url),
      `http://127.0.0.1:${await listen(packed)}/mcp`,
      'http://127.0.0.1:1/mcp',
    ];
    const began = performance.now();
    const answers = await Promise.all(urls.map(async (mcpUrl) => probed({ mcpUrl }, await app.account())));
    // Its own 8 s, and what a busy machine adds.
    expect(performance.now() - began).toBeLessThan(16_000);
    const reasons = answers.map(({ state, reason, tools, nextStep }) => [state, reason, tools, typeof nextStep]);
    const failed = (reason: unknown) => ['error', reason, null, 'string'];
    expect(reasons).toEqual([
      ...[
        'timeout',
        'timeout',
        expect.stringMatching(/unreadable|unreachable|timeout/),
        'unreadable',
        'unreachable',
      ].map(failed),
      ...['server_error', 'forbidden', expect.stringMatching(/unreadable|unreachable|timeout/), 'unreachable'].map(
        failed,
      ),
    ]);
  });

  verifies('probe:refused', 'has one text for every refused address, and contacts none', async () => {
    let contacts = 0;
    const standIn = createTcpServer((socket) => {
      contacts += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => standIn.listen(0, '::', resolve));
    const { port } = standIn.address() as { port: number };
    const redirects = createServer(({ url = '' }, response) => {
      const location = decodeURIComponent(url.slice(1));
      response.writeHead(Number(location.slice(0, 3)), { location: location.slice(3) }).end();
    });
    await new Promise<void>((resolve) => redirects.listen(0, ALLOWED, resolve));
    const redirect = (to: string) =>
      `http://${ALLOWED}:${(redirects.address() as { port: number }).port}/${encodeURIComponent(to)}`;
    const { port: databasePort } = new URL(strict.env.databaseUrl ?? '');
    const loopback = [
      ...['127.0.0.1', '127.1', '2130706433', '0x7f000001', '0177.0.0.1', '127.0.0.1.', '%31%32%37.0.0.1', '①②⑦.0.0.1'],
      ...['[::1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[64:ff9b::7f00:1]', '[2002:7f00:1::]', '0.0.0.0', '[::]'],
      ...['localhost', 'LOCALHOST', 'localhost.', 'any.localhost'],
    ];
    const elsewhere = [
      ...['10.0.0.7', '172.16.0.1', '192.168.1.1', '100.64.0.1', '169.254.169.254', '168.63.129.16', '224.0.0.1'],
      ...['255.255.255.255', '[fe80::1]', '[fc00::1]', '[fd00:ec2::254]', '[::ffff:10.0.0.1]'],
    ];
    const targets = [
      ...loopback.map((host) => `http://${host}:${port}/mcp`),
      ...elsewhere.map((host) => `http://${host}/mcp`),
      // Ports of the service itself.
      `${strict.env.baseUrl}/mcp`,
      `http://${ALLOWED}:${databasePort}/mcp`,
      ...[302, 307, 308].map((status) => redirect(`${status}http://127.0.0.1:${port}/mcp`)),
      ...['http://[::1]:1/', 'http://169.254.169.254/latest/', 'http://10.0.0.7:22/', 'http://[fd00::1]/'].map((to) =>
        redirect(`301${to}`),
      ),
      // Names without an address: otherwise the answers would tell which names exist inside.
      'http://no-such-host.invalid/mcp',
      redirect('302http://no-such-host.invalid/mcp'),
    ];
    expect(targets.length).toBeGreaterThanOrEqual(40);
    const texts = new Set<string>();
    let by: TestAccount | undefined;
    for (const [at, mcpUrl] of targets.entries()) {
      if (!by || at % 20 === 0) by = await strict.account();
      const { status, text, body } = await ask({ mcpUrl }, by, strict);
      expect([mcpUrl, status, body.reason]).toEqual([mcpUrl, 200, 'blocked']);
      texts.add(text);
    }
    expect([...texts]).toHaveLength(1);
    expect(contacts).toBe(0);
    await Promise.all([standIn, redirects].map((server) => new Promise((resolve) => server.close(resolve))));
  });

  verifies('probe:input', 'refuses what is no target, without the values of headers', async () => {
    for (const body of [
      {},
      { mcpUrl: 'http://a.example/mcp', server: 'acme/weather' },
      { mcpUrl: 'file:///etc/passwd' },
      { server: 'no name' },
      { server: 'acme/weather', headers: { 'x-key': 'secret-value' } },
      { mcpUrl: 'http://a.example/mcp', headers: { 'x-key': 'secret-välue' } },
      { mcpUrl: 'http://a.example/mcp', url: 'x' },
    ]) {
      const { status, body: answer, text } = await ask(body);
      expect([body, status, answer]).toEqual([body, 400, { error: expect.any(String) }]);
      expect(text).not.toMatch(/secret-v/);
    }
  });

  verifies('probe:budget', 'allows 4 concurrent probes, 30 a minute and 300 a day over two processes', async () => {
    const second = await app.sibling();
    const both = (at: number) => (at % 2 === 0 ? app : second);
    const mcpUrl = `${app.url}/mcp`;
    const [busy, quick, daily] = [await app.account(), await app.account(), await app.account()];

    const silent = await startFaulty('silent');
    let answered = 0;
    const askSilent = async (at: number) => {
      const answer = await ask({ mcpUrl: silent.url }, busy, both(at));
      answered += 1;
      return answer;
    };
    const waiting = Promise.all([0, 1, 2, 3, 4, 5].map(askSilent));
    const running = async () => {
      const [{ count }] = await app.database.query('SELECT count(*)::int AS count FROM probes WHERE account_id = $1', [
        busy.id,
      ]);
      return count === 4 && answered === 2;
    };
    await until(running, 'four of them run, and two are refused');
    expect((await ask({ mcpUrl }, busy, second)).status).toBe(429);
    await silent.close();
    const statuses = (await waiting).map(({ status }) => status).sort();
    expect(statuses).toEqual([200, 200, 200, 200, 429, 429]);
    expect((await ask({ mcpUrl }, busy)).status).toBe(200);

    for (let at = 0; at < 30; at += 1) expect((await ask({ mcpUrl }, quick, both(at))).status).toBe(200);
    for (const at of [app, second]) {
      const { status, headers, body } = await ask({ mcpUrl }, quick, at);
      expect([status, headers['retry-after'], body]).toEqual([
        429,
        '60',
        { error: expect.stringContaining('30 servers') },
      ]);
    }

    const earlier = `INSERT INTO probes (account_id, started_at, ended_at)
      SELECT $1, now() - $3 * interval '1 hour', now() FROM generate_series(1, $2)`;
    await app.database.query(earlier, [daily.id, 299, 2]);
    await app.database.query(earlier, [daily.id, 9, 25]);
    expect((await ask({ mcpUrl }, daily)).status).toBe(200);
    expect((await ask({ mcpUrl }, daily, second)).body).toEqual({ error: expect.stringContaining('300 servers') });
    expect(
      await app.database.query('SELECT count(*)::int AS count FROM probes WHERE account_id = $1', [daily.id]),
    ).toEqual([{ count: 300 }]);
    await second.close();
  });
});
