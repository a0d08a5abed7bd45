import { lookup } from 'node:dns/promises';
import { createServer, type Server } from 'node:net';
import { hostname } from 'node:os';
import { describe, expect } from '@jest/globals';
import type { Channel } from '../../../src/mcp/protocol/channel.js';
import { AddressPolicy, addressKind, parseEgressAllow } from '../../../src/platform/egress/address-policy.js';
import { Egress, type ResolveHost } from '../../../src/platform/egress/egress.js';
import { channelTo } from '../../support/mcp/channels.js';
import { testAccount, testApp, uniqueName, type TestApp } from '../../support/app.js';
import { createConnection, createNamespace } from '../../support/factories.js';
import { startFaulty } from '../../support/special-upstreams/faulty-upstreams.js';
import { until } from '../../support/until.js';
import { closing, start } from '../../support/upstream/upstream-clients.js';
import { longVerifies, verifies } from '../../support/verifies.js';

/** An address nobody has: an empty setting would be the default, which allows loopback while HOST is local. */
const NOTHING = '192.0.2.1';

const strict = testApp({ EGRESS_ALLOW: NOTHING, UPSTREAM_CONNECT_TIMEOUT_MS: '10000' });
const owner = testAccount(strict);

/** The status of a new connection to this URL. */
async function statusOf(mcpUrl: string, app = strict): Promise<{ state: string; message: string }> {
  const { body } = await createConnection(app, owner, { mcpUrl });
  return body.status as { state: string; message: string };
}

/** Runs with a process of the same service whose EGRESS_ALLOW is this. */
async function allowing(allow: string, run: (app: TestApp) => Promise<void>, more = {}): Promise<void> {
  const app = await strict.sibling({ EGRESS_ALLOW: allow, ...more });
  try {
    await run(app);
  } finally {
    await app.close();
  }
}

/** Every spelling of 127.0.0.1 that some URL parser takes. */
const loopbackSpellings = [
  ...['127.0.0.1', '127.1', '127.0.1', '2130706433', '0x7f000001', '0x7f.0.0.1', '0177.0.0.1', '017700000001'],
  ...[
    '127.0.0.1.',
    '%31%32%37.0.0.1',
    '127%2e0%2e0%2e1',
    '１２７.0.0.1',
    '127。0。0。1',
    '①②⑦.0.0.1',
    '127.0.0.1%E2%80%8B',
  ],
  ...['[::1]', '[0:0:0:0:0:0:0:1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::127.0.0.1]', '[64:ff9b::7f00:1]'],
  ...['[2002:7f00:1::]', '0.0.0.0', '0', '[::]', 'localhost', 'LOCALHOST', 'localhost.', 'any.localhost'],
];

const otherClosed = [
  ...['10.0.0.7', '167772167', '0xa.7', '172.16.0.1', '192.168.1.1', '100.64.0.1', '169.254.169.254', '0xa9fea9fe'],
  ...['169.254.1.1', '168.63.129.16', '100.100.100.200', '224.0.0.1', '240.0.0.1', '255.255.255.255', '198.18.0.1'],
  ...['203.0.113.9', '[fe80::1]', '[fc00::1]', '[fd00:ec2::254]', '[ff02::1]', '[2001:db8::1]', '[::ffff:10.0.0.1]'],
];

describe('a connection to a closed address', () => {
  verifies('egress:private-refused', 'is refused in every spelling, and the server there sees no packet', async () => {
    const upstream = await start();
    const namespace = await createNamespace(strict, owner);
    const hosts = [...loopbackSpellings.map((host) => `${host}:${upstream.port}`), ...otherClosed];
    for (const host of hosts) {
      const mcpUrl = `http://${host}/mcp`;
      const { status, body } = await strict.as(owner).post(`/connect/${namespace}`, { mcpUrl });
      expect([host, status, body]).toEqual([
        host,
        201,
        expect.objectContaining({
          mcpUrl,
          status: {
            state: 'error',
            reason: 'blocked',
            nextStep: expect.stringMatching(/EGRESS_ALLOW/),
            since: expect.any(String),
            message: expect.stringMatching(/^The address of ".*" is .*Slipway does not dial .* EGRESS_ALLOW/),
          },
        }),
      ]);
    }
    expect(upstream.connections).toBe(0);
  });

  verifies('egress:private-refused', 'stays refused for calls, and for a row that was written otherwise', async () => {
    const upstream = await start();
    const { path, connectionId } = await createConnection(strict, owner, { mcpUrl: 'http://nowhere.invalid/mcp' });
    await strict.database.query(
      'UPDATE connections SET mcp_url = $1, revision = revision + 1 WHERE connection_id = $2',
      [upstream.url, connectionId],
    );
    await allowing(NOTHING, async (fresh) => {
      const answer = await fresh.as(owner).post(`${path}/.tools/echo`, { message: 'hi' });
      expect([answer.status, answer.body]).toEqual([
        502,
        { error: 'upstream_error', message: expect.stringContaining('Slipway does not dial loopback addresses') },
      ]);
    });
    expect(upstream.connections).toBe(0);
  });

  verifies('egress:scheme', 'is rejected with another scheme before it is stored', async () => {
    const namespace = await createNamespace(strict, owner);
    for (const mcpUrl of [
      ...['file:///etc/passwd', 'ftp://a.example/', 'gopher://127.0.0.1:6379/_', 'ws://a.example/', 'wss://a.example/'],
      ...[
        'data:text/plain,x',
        'javascript:alert(1)',
        'unix:///var/run/docker.sock',
        'blob:http://a.example/x',
        'stdio:x',
      ],
    ]) {
      const { status, body } = await strict.as(owner).put(`/connect/${namespace}/mine`, { mcpUrl });
      expect([mcpUrl, status, body]).toEqual([
        mcpUrl,
        400,
        { error: 'validation_error', message: 'mcpUrl must start with https:// or http://' },
      ]);
    }
    const { body } = await strict.as(owner).get(`/connect/${namespace}`);
    expect(body).toMatchObject({ connections: [] });
    // The door itself, should a scheme ever get that far.
    const egress = new Egress(new AddressPolicy(parseEgressAllow('loopback')));
    for (const url of ['file:///etc/passwd', 'ftp://127.0.0.1/', 'ws://127.0.0.1/']) {
      expect(() => egress.check(url)).toThrow(/scheme ".*" is not supported/);
      expect(() => egress.dispatch(new URL(url), { method: 'POST', headers: {} }, {})).toThrow(/not supported/);
    }
    await egress.close();
  });
});

/** Answers each question with the next set of addresses, the last one for ever; counts the questions. */
function resolver(...answers: string[][]): ResolveHost & { asked: number } {
  const resolve = Object.assign(
    ((_hostname, _options, callback) => {
      const answer = answers[Math.min(resolve.asked++, answers.length - 1)] ?? [];
      setImmediate(
        callback,
        null,
        answer.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      );
    }) as ResolveHost,
    { asked: 0 },
  );
  return resolve;
}

/** The channel of a connection to this URL, with names resolved by us. */
function channelBy(url: string, allow: string, resolve: ResolveHost): Channel {
  const egress = closing(new Egress(new AddressPolicy(parseEgressAllow(allow)), resolve));
  return closing(channelTo(egress, url, { connectTimeoutMs: 2_000 }));
}

/** Counts what arrives at 127.0.0.2 or, where that does not exist, ::1, on this port. */
async function forbiddenNeighbour(port: number): Promise<{ host: string; arrived: () => number }> {
  let arrived = 0;
  const listen = (host: string) =>
    new Promise<Server>((resolve, reject) => {
      const server = createServer((socket) => {
        arrived++;
        socket.destroy();
      });
      server.once('error', reject).listen(port, host, () => resolve(server));
    });
  const found = await listen('127.0.0.2').then(
    (server) => ({ server, host: '127.0.0.2' }),
    async () => ({ server: await listen('::1'), host: '::1' }),
  );
  closing({ close: () => new Promise((resolve) => found.server.close(resolve)) });
  return { host: found.host, arrived: () => arrived };
}

describe('a connection to a name', () => {
  verifies('egress:dns', 'is refused if a name of this machine has a closed address, by real DNS', async () => {
    const upstream = await start();
    let tried = 0;
    for (const name of ['localhost', 'ip6-localhost', hostname()]) {
      const addresses = await lookup(name, { all: true }).catch(() => []);
      if (addresses.length === 0 || addresses.some(({ address }) => addressKind(address) === 'public')) continue;
      const { state, message } = await statusOf(`http://${name}:${upstream.port}/mcp`);
      expect(state).toBe('error');
      expect(message).toMatch(/Slipway does not dial .*\. An operator can allow it .*EGRESS_ALLOW/);
      tried++;
    }
    expect(tried).toBeGreaterThan(0);
    expect(upstream.connections).toBe(0);
  });

  verifies('egress:dns', 'with closed addresses only is refused without revealing them', async () => {
    const upstream = await start();
    const url = `http://intra.example:${upstream.port}/mcp`;
    for (const addresses of [['127.0.0.1'], ['127.0.0.1', '10.0.0.1', '::1'], ['::ffff:127.0.0.1']]) {
      const opening = channelBy(url, '', resolver(addresses)).open(20_000);
      await expect(opening).rejects.toThrow(
        /^The host "intra\.example" has no public address: Slipway does not dial it\. .* EGRESS_ALLOW/,
      );
      await expect(opening).rejects.not.toThrow(/127\.0\.0\.1|10\.0\.0\.1|::1/);
    }
    expect(upstream.connections).toBe(0);
  });

  verifies('egress:dns', 'with a closed and an open address never reaches the closed one', async () => {
    const upstream = await start();
    const neighbour = await forbiddenNeighbour(upstream.port);
    const url = `http://mixed.example:${upstream.port}/mcp`;
    for (const addresses of [
      [neighbour.host, '127.0.0.1'],
      ['127.0.0.1', neighbour.host],
    ]) {
      await channelBy(url, '127.0.0.1', resolver(addresses)).open(20_000);
    }
    expect(upstream.count('initialize')).toBe(2);
    // The open one is down: the closed one is no way out.
    const closed = channelBy(url, '127.0.0.3', resolver(['127.0.0.3', neighbour.host])).open(20_000);
    await expect(closed).rejects.toThrow();
    expect(neighbour.arrived()).toBe(0);
  });

  verifies(
    'egress:rebinding',
    'is opened to the checked address, also if the name resolves to another one later',
    async () => {
      const upstream = await start();
      const neighbour = await forbiddenNeighbour(upstream.port);
      const url = `http://rebind.example:${upstream.port}/mcp`;
      // Were the name asked once to check it and once more to dial it, the second answer would be the closed address.
      const turning = resolver(...Array.from({ length: 50 }, (_, i) => [i % 2 === 0 ? '127.0.0.1' : neighbour.host]));
      await channelBy(url, '127.0.0.1', turning)
        .open(20_000)
        .catch(() => undefined);
      expect(upstream.count('server/discover')).toBe(1);

      const steady = resolver(['127.0.0.1']);
      const before = upstream.connections;
      const channel = channelBy(url, '127.0.0.1', steady);
      await channel.open(20_000);
      await channel.request({ method: 'tools/list', params: undefined, timeoutMs: 20_000 });
      expect(steady.asked).toBe(upstream.connections - before);
      expect(neighbour.arrived()).toBe(0);
    },
  );
});

describe('a redirect', () => {
  verifies('egress:redirect', 'is reported and not followed to a private address', async () => {
    const inside = await start();
    await allowing('127.0.0.1', async (app) => {
      for (const redirectStatus of [301, 302, 303, 307, 308] as const) {
        for (const location of [
          inside.url.replace('127.0.0.1', '127.0.0.2'),
          'http://169.254.169.254/latest/',
          '//10.0.0.7/mcp',
        ]) {
          const door = closing(await startFaulty('redirect', { location, redirectStatus }));
          const { state, message } = await statusOf(door.url, app);
          expect([state, message]).toEqual([
            'error',
            expect.stringMatching(/redirects to .*: connect to that address instead\.$/),
          ]);
          expect(message).toContain(new URL(location, door.url).host);
          expect(door.hits()).toBe(1);
        }
      }
    });
    expect(inside.connections).toBe(0);
  });

  verifies(
    'egress:redirect',
    'carries the headers of the connection nowhere, not even to an open address',
    async () => {
      const elsewhere = await start();
      const secret = uniqueName('secret');
      await allowing('loopback', async (app) => {
        const door = closing(await startFaulty('redirect', { location: `${elsewhere.url}?token=${secret}` }));
        const headers = { Authorization: `Bearer ${secret}`, 'X-Key': secret };
        const { path, body } = await createConnection(app, owner, { mcpUrl: door.url, headers });
        expect(body.status).toMatchObject({ state: 'error', message: expect.stringContaining(elsewhere.url) });
        expect(JSON.stringify(body)).not.toContain(secret);
        const call = await app.as(owner).post(`${path}/.tools/echo`, { message: 'hi' });
        expect([call.status, call.text.includes(secret)]).toEqual([502, false]);
      });
      expect(elsewhere.requests).toHaveLength(0);
      expect(elsewhere.connections).toBe(0);
    },
  );
});

describe('EGRESS_ALLOW', () => {
  longVerifies('egress:allow', 'permits exactly the listed addresses', async () => {
    const upstream = await start();
    const at = (host: string) => `http://${host}:${upstream.port}/mcp`;
    const isOpen = async (app: TestApp, host: string) =>
      !(await statusOf(at(host), app)).message?.includes('does not dial');
    const open = async (allow: string, hosts: string[]) => {
      const found: string[] = [];
      await allowing(allow, async (app) => {
        for (const host of hosts) if (await isOpen(app, host)) found.push(host);
      });
      return found;
    };
    const hosts = ['127.0.0.1', '127.0.0.9', 'localhost', '10.255.255.1', '[::1]', '169.254.169.254'];
    expect(await open('loopback', hosts)).toEqual(['127.0.0.1', '127.0.0.9', 'localhost', '[::1]']);
    expect(await open('127.0.0.1', hosts)).toEqual(['127.0.0.1', 'localhost']);
    // Without `localhost`, whose addresses differ from machine to machine.
    const literals = hosts.filter((host) => host !== 'localhost');
    expect(await open('127.0.0.8/29, ::1', literals)).toEqual(['127.0.0.9', '[::1]']);
    expect(await open('some.example,*.other.example', hosts)).toEqual([]);
  });

  verifies(
    'egress:allow',
    'reaches a server on a listed address, by its name too, and the connection works',
    async () => {
      const upstream = await start();
      await allowing('127.0.0.1', async (app) => {
        for (const host of ['127.0.0.1', 'localhost']) {
          const { path, body } = await createConnection(app, owner, { mcpUrl: `http://${host}:${upstream.port}/mcp` });
          expect(body.status).toMatchObject({ state: 'connected' });
          await app.as(owner).post(`${path}/.tools/echo`, { message: 'hi' }).expect(200);
        }
      });
    },
  );

  verifies('egress:allow', 'left out opens loopback for a local service and nothing for an open one', async () => {
    const upstream = await start();
    await allowing('', async (app) => {
      expect(await statusOf(upstream.url, app)).toMatchObject({ state: 'connected' });
      expect((await statusOf('http://10.0.0.7/mcp', app)).message).toContain('does not dial private addresses');
    });
    const before = upstream.connections;
    await allowing(
      '',
      async (app) => expect((await statusOf(upstream.url, app)).message).toContain('does not dial loopback addresses'),
      { HOST: '0.0.0.0' },
    );
    await until(() => upstream.connections === before, 'nothing more arrives');
  });
});
