import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { loadEnv } from '../../../src/config/env.js';
import { openEgress } from '../../../src/hosting/egress/egress-proxy.js';
import { internalRoutes } from '../../../src/hosting/egress/internal-routes.js';
import { ProgramProxy } from '../../../src/hosting/egress/program-proxy.js';
import { PROXY_LIMITS, type ProxyLimits } from '../../../src/hosting/egress/proxy-limits.js';
import { startForwardProxy, type ForwardProxy } from '../../support/forward-proxy.js';
import { startEgressWorker, type EgressWorker } from '../../support/hosting/egress-worker.js';
import { startOutside, type Outside } from '../../support/hosting/outside.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

let outside: Outside;
let worker: EgressWorker;
let proxy: ProgramProxy;
const told: string[] = [];
const tell = ({ message }: { message: string }) => void told.push(message);

/** Opens the worker's way out anew. */
async function allow(list: string[] | null, limits: Partial<ProxyLimits> = {}): Promise<void> {
  await proxy?.close();
  proxy = await ProgramProxy.open(worker.proxyPath, { allow: list, onRefused: tell }, outside.egress(), {
    ...PROXY_LIMITS,
    ...limits,
  });
}

const http = (path = '/', host = 'api.example.test') => `http://${host}:${outside.httpPort}${path}`;
const https = (path = '/', host = 'api.example.test') => `https://${host}:${outside.httpsPort}${path}`;
const get = (url: string) => worker.try({ way: 'fetch', url });

beforeAll(async () => {
  outside = await startOutside();
  worker = await startEgressWorker();
});
beforeEach(async () => {
  told.length = 0;
  outside.seen.length = 0;
  outside.answer = (_req, res) => void res.end('outside');
  await allow(null);
});
afterAll(async () => {
  await worker.close();
  await proxy.close();
  await outside.close();
});

describe('an address that is not public', () => {
  const closed = [
    ...['127.0.0.1', 'localhost', '127.1', '2130706433', '0.0.0.0', '[::1]', '[::ffff:127.0.0.1]', '10.0.0.7'],
    ...['169.254.169.254', '192.168.1.1', '100.64.0.1', '[fd00::1]', '[fe80::1]', 'a.localhost', 'inside.test'],
  ];

  verifies(['egress:hosted:public-only', 'egress:hosted:refusals'], 'is refused with a sentence', async () => {
    for (const host of closed) {
      for (const scheme of ['http', 'https']) {
        const { status, text, error } = await get(`${scheme}://${host}/secret?key=s3cret`);
        expect({ host, status, error }).toEqual({ host, status: 403, error: undefined });
        expect(text).toMatch(/^The host ".+" has no public address: hosted code reaches public addresses only/);
        expect(text).not.toContain('s3cret');
      }
    }
    expect(outside.seen).toHaveLength(0);
  });

  it('is refused to raw connections and WebSockets too, and the log has the reason', async () => {
    for (const host of ['127.0.0.1', 'inside.test', '169.254.169.254']) {
      expect((await worker.try({ way: 'tcp', address: `${host}:443`, text: 'x' })).error).toBeDefined();
      expect(told.at(-1)).toMatch(new RegExp(`^Outbound request refused: The host "${host}" has no public address: `));
      expect(await worker.try({ way: 'socket', url: `http://${host}/socket` })).toEqual({ status: 403 });
    }
  });

  it('is refused by the way out that programs get, which nothing opens', async () => {
    await proxy.close();
    proxy = await openEgress(worker.proxyPath, {
      allow: ['127.0.0.2', 'localhost', '*.localhost', '[::1]'],
      onRefused: tell,
    });
    for (const host of ['127.0.0.2', 'localhost', 'a.localhost', '[::1]']) {
      expect((await get(`http://${host}:${outside.httpPort}/`)).status).toBe(403);
    }
    expect(outside.seen).toHaveLength(0);
  });

  verifies('egress:hosted:public-only', 'is refused when a redirect leads there', async () => {
    outside.answer = (_req, res) => void res.writeHead(302, { location: 'http://127.0.0.1:1/' }).end();
    expect(await get(http())).toMatchObject({ status: 403, text: expect.stringContaining('"127.0.0.1"') });
    expect(outside.seen).toHaveLength(1);
  });
});

describe('the list', () => {
  verifies('egress:hosted:list', 'opens the hosts it names, and the names below a wildcard', async () => {
    await allow(['api.example.test', '*.elsewhere.test', `other.example.test:${outside.httpPort}`]);
    expect(await get(http())).toEqual({ status: 200, text: 'outside' });
    expect(await get(https())).toEqual({ status: 200, text: 'outside' });
    expect(await get(http('/', 'other.example.test'))).toEqual({ status: 200, text: 'outside' });
    expect((await get(http('/', 'x.elsewhere.test'))).status).toBe(502);
    for (const url of [https('/', 'other.example.test'), http('/', 'example.test'), http('/', 'elsewhere.test')]) {
      const { status, text } = await get(url);
      expect(status).toBe(403);
      expect(text).toMatch(
        /^The host ".+" is not among those this server may reach\. Its owner can add ".+" or ".+" to egressAllow with PATCH /,
      );
    }
    expect(told).toHaveLength(3);
  });

  verifies('egress:hosted:list', 'is asked again for every redirect', async () => {
    await allow(['api.example.test']);
    outside.answer = (_req, res) => void res.writeHead(302, { location: http('/', 'other.example.test') }).end();
    expect(await get(http())).toMatchObject({ status: 403, text: expect.stringContaining('"other.example.test:') });
    expect(outside.seen).toHaveLength(1);
  });

  verifies('egress:hosted:public-only', 'opens no address that is not public', async () => {
    await allow(['127.0.0.1', 'inside.test', 'localhost']);
    for (const host of ['127.0.0.1', 'inside.test', 'localhost'])
      expect((await get(`http://${host}/`)).status).toBe(403);
  });

  verifies('egress:hosted:ports', 'is what opens the ports of system services, but never that of mail', async () => {
    expect((await get('http://api.example.test:22/')).text).toContain('Port 22 of "api.example.test" is closed');
    const tcp = { way: 'tcp', address: `api.example.test:${outside.tcpPort}`, text: 'hello' };
    expect((await worker.try(tcp)).error).toBeDefined();
    expect(told.at(-1)).toContain(`add "api.example.test:${outside.tcpPort}" to egressAllow`);
    await allow([`api.example.test:${outside.tcpPort}`, 'api.example.test:22', 'api.example.test:25']);
    expect(await worker.try(tcp)).toEqual({ text: 'hello' });
    expect((await get('http://api.example.test:22/')).status).toBe(502);
    expect((await get('http://api.example.test:25/')).text).toContain('Port 25 is closed');
  });
});

describe('what passes', () => {
  verifies('egress:hosted:passes', 'requests of every kind', async () => {
    await allow([`api.example.test:${outside.tcpPort}`, 'api.example.test']);
    expect(await get(https())).toEqual({ status: 200, text: 'outside' });
    expect(await worker.try({ way: 'nodeHttp', url: http() })).toEqual({ status: 200, text: 'outside' });
    for (const url of [http('/socket'), https('/socket')]) {
      expect(await worker.try({ way: 'socket', url, text: 'frame' })).toEqual({ status: 101, text: 'frame' });
    }
    expect(await worker.try({ way: 'socket', url: http('/no') })).toEqual({ status: 418 });
    const net = { way: 'nodeNet', host: 'api.example.test', port: outside.tcpPort, text: 'bytes' };
    expect(await worker.try(net)).toEqual({ text: 'bytes' });
    expect(told).toEqual([]);
  });

  verifies('egress:hosted:passes', 'bodies both ways, as large as they are', async () => {
    outside.answer = (req, res) => void req.pipe(res.writeHead(201));
    for (const url of [http(), https()]) {
      const { status, text = '' } = await worker.try({ way: 'upload', url, chunks: 64, bytes: 65_536 });
      expect({ status, bytes: text.length }).toEqual({ status: 201, bytes: 64 * 65_536 });
      expect(createHash('sha256').update(text).digest('hex')).toBe(
        createHash('sha256')
          .update('x'.repeat(64 * 65_536))
          .digest('hex'),
      );
    }
    const posted = await worker.try({ way: 'fetch', url: http(), method: 'POST', body: 'a ü b' });
    expect(posted).toEqual({ status: 201, text: 'a ü b' });
  });

  verifies('egress:hosted:passes', 'a response arrives as it is produced', async () => {
    let more: (text: string) => void = () => undefined;
    outside.answer = (_req, res) => {
      res.flushHeaders();
      more = (text) => void res.write(text);
    };
    const reader = await worker.stream({ url: https() });
    for (const text of ['one', 'two']) {
      more(text);
      expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe(text);
    }
    await reader.cancel();
    await until(() => outside.open.size === 0, 'the far connection ends');
  });

  verifies('egress:hosted:passes', 'a program that does not read makes the far side wait', async () => {
    let sent = 0;
    let isWaiting = false;
    outside.answer = (_req, res) => {
      const fill = () => {
        isWaiting = false;
        while (!isWaiting && sent < 512 * 65_536) {
          isWaiting = !res.write(Buffer.alloc(65_536));
          sent += 65_536;
        }
      };
      res.on('drain', fill);
      fill();
    };
    const socket = await dial();
    socket.write(`GET ${http()} HTTP/1.1\r\n\r\n`);
    const seen: number[] = [];
    await until(() => isWaiting && seen.push(sent) > 10 && seen.at(-10) === sent, 'the far side waits');
    expect(sent).toBeLessThan(16 * 1024 * 1024);
    socket.destroy();
    await until(() => outside.open.size === 0, 'the far connection ends');
  });

  verifies('egress:hosted:passes', 'headers of the message, and none of the hop', async () => {
    outside.answer = (_req, res) =>
      void res.writeHead(200, { 'x-kept': 'ü', connection: 'x-hop', 'x-hop': '1', 'set-cookie': ['a=1', 'b=2'] }).end();
    const headers = { host: 'evil.test', 'proxy-authorization': 'a', expect: '100-continue', 'x-own': 'b' };
    await worker.try({ way: 'fetch', url: http('/p?q=1'), headers });
    const [seen] = outside.seen;
    expect(seen?.url).toBe('/p?q=1');
    expect(seen?.headers).toEqual({
      host: `api.example.test:${outside.httpPort}`,
      connection: 'keep-alive',
      'x-own': 'b',
    });
    const answer = await raw(`GET ${http()} HTTP/1.1\r\nconnection: close, x-gone\r\nx-gone: 1\r\n\r\n`);
    expect(outside.seen[1]?.headers['x-gone']).toBeUndefined();
    expect(answer).toContain('set-cookie: a=1\r\nset-cookie: b=2\r\n');
    expect(answer).not.toContain('x-hop');
  });

  it('names the failure in a sentence', async () => {
    expect(await get('https://unknown.test/')).toEqual({
      status: 502,
      text: 'The host "unknown.test" has no address (ENOTFOUND): check its name.\n',
    });
    const tls = await get(`https://api.example.test:${outside.httpPort}/`);
    expect(tls).toMatchObject({ status: 502, text: expect.stringContaining('"api.example.test" failed') });
    outside.answer = (req) => void req.socket.destroy();
    expect((await get(http())).status).toBe(502);
    outside.answer = (_req, res) =>
      void res.writeHead(200, { 'content-length': '10' }).write('half', () => res.destroy());
    expect((await get(http())).error).toBeDefined();
  });
});

describe('bounds', () => {
  verifies(
    'egress:hosted:bounds',
    'runs at most 32 of 300 concurrent requests at the same time, and completes all',
    async () => {
      let [now, most] = [0, 0];
      outside.answer = (_req, res) => {
        most = Math.max(most, ++now);
        setImmediate(() => {
          now--;
          res.end('ok');
        });
      };
      const { text = '[]' } = await worker.try({ way: 'many', url: http(), count: 300 });
      expect(JSON.parse(text)).toEqual(Array.from({ length: 300 }, () => 200));
      expect(most).toBeGreaterThan(1);
      expect(most).toBeLessThanOrEqual(PROXY_LIMITS.atOnceMax);
      expect(outside.open.size).toBeLessThanOrEqual(2 * PROXY_LIMITS.atOnceMax);
    },
  );

  verifies('egress:hosted:bounds', 'a request that cannot start in time gets an error', async () => {
    await allow(null, { atOnceMax: 2, waitMs: 50 });
    const held: (() => void)[] = [];
    outside.answer = (_req, res) => void held.push(() => res.end('late'));
    const all = worker.try({ way: 'many', url: http(), count: 8 });
    await until(() => told.length === 6, 'six are refused');
    for (const answer of held) answer();
    const statuses = JSON.parse((await all).text ?? '[]') as number[];
    expect(statuses.sort()).toEqual([200, 200, 503, 503, 503, 503, 503, 503]);
  });

  verifies('egress:hosted:bounds', 'kept connections to many hosts do not pile up', async () => {
    await allow(null, { atOnceMax: 1 });
    for (const url of [http(), https(), http('/', 'other.example.test'), https('/', 'other.example.test')]) {
      expect((await get(url)).status).toBe(200);
    }
    // Kept, they would be there for almost 30 s: the servers offer ten minutes.
    await until(() => outside.open.size === 1, 'all but one are closed', 20_000);
  });

  verifies('egress:hosted:bounds', 'a host that stops responding is disconnected', async () => {
    await allow(null, { idleMs: 100 });
    outside.answer = () => undefined;
    expect((await get(http())).status).toBe(504);
    outside.answer = (_req, res) => void res.write('half');
    expect((await get(http())).error).toBeDefined();
    await allow(null, { totalMs: 200, headersMs: 100 });
    outside.answer = (_req, res) => {
      const timer = setInterval(() => res.write('drip'), 20);
      res.once('close', () => clearInterval(timer));
    };
    expect((await get(http())).error).toBeDefined();
    await until(() => outside.open.size === 0, 'the far connections end');
  });

  verifies('egress:hosted:refusals', 'refusals are logged 20 times a minute, and the rest is counted', async () => {
    await worker.try({ way: 'many', url: 'http://127.0.0.1/', count: 50 });
    expect(told).toHaveLength(20);
  });
});

describe('open connections', () => {
  verifies('egress:hosted:bounds', 'close with the proxy', async () => {
    await allow(['api.example.test', `api.example.test:${outside.tcpPort}`]);
    outside.answer = (_req, res) => void res.write('open');
    const reader = await worker.stream({ url: http() });
    await reader.read();
    const tunnel = await dial();
    tunnel.write(`CONNECT api.example.test:${outside.tcpPort} HTTP/1.1\r\n\r\n`);
    await once(tunnel, 'data');
    // Of the connections of tests before it, too, the end is noticed.
    await until(() => outside.open.size === 2, 'these two are open');
    const closed = once(tunnel, 'close');
    await proxy.close();
    await closed;
    await until(() => outside.open.size === 0, 'the far connections end');
    await reader.cancel().catch(() => undefined);
  });

  verifies('egress:hosted:bounds', 'close when the program is killed in mid-stream', async () => {
    const doomed = await startEgressWorker();
    const way = await ProgramProxy.open(
      doomed.proxyPath,
      { allow: null, onRefused: tell },
      outside.egress(),
      PROXY_LIMITS,
    );
    outside.answer = (_req, res) => void res.write('open');
    const reader = await doomed.stream({ url: https() });
    await reader.read();
    await until(() => outside.open.size === 1, 'this one is open');
    doomed.process.kill('SIGKILL');
    await until(() => outside.open.size === 0, 'the far connection ends');
    await reader.cancel().catch(() => undefined);
    await way.close();
    await doomed.close();
  });
});

describe('hostile bytes', () => {
  const bytes: [what: string, bytes: () => string, answer: RegExp][] = [
    ['no HTTP', () => 'hello\r\n\r\n', /^HTTP\/1.1 400 /],
    ['a path', () => 'GET / HTTP/1.1\r\nconnection: close\r\n\r\n', /^HTTP\/1.1 400 /],
    ['another scheme', () => 'GET file:///etc/passwd HTTP/1.1\r\nconnection: close\r\n\r\n', /^HTTP\/1.1 400 /],
    ['a password', () => 'GET http://a:b@api.example.test/ HTTP/1.1\r\nconnection: close\r\n\r\n', /^HTTP\/1.1 403 /],
    ['many headers', () => `GET ${http()} HTTP/1.1\r\n${'a: b\r\n'.repeat(20_000)}\r\n`, /^HTTP\/1.1 431 /],
    [
      'two lengths',
      () => `POST ${http()} HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
      /^HTTP\/1.1 400 /,
    ],
    ['a bad length', () => `POST ${http()} HTTP/1.1\r\ncontent-length: 1, 2\r\n\r\nab`, /^HTTP\/1.1 400 /],
    [
      'another protocol',
      () => `GET ${http()} HTTP/1.1\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n`,
      /^HTTP\/1.1 400 /,
    ],
    ['CONNECT without a port', () => 'CONNECT api.example.test HTTP/1.1\r\n\r\n', /^HTTP\/1.1 400 /],
    ['CONNECT to a URL', () => `CONNECT http://api.example.test/ HTTP/1.1\r\n\r\n`, /^HTTP\/1.1 400 /],
    ['CONNECT to a number', () => 'CONNECT 2130706433:443 HTTP/1.1\r\n\r\n', /^HTTP\/1.1 403 /],
  ];

  for (const [what, text, answer] of bytes) {
    verifies('egress:hosted:hostile', `close their own connection only: ${what}`, async () => {
      expect(await raw(text())).toMatch(answer);
      expect(await get(http())).toEqual({ status: 200, text: 'outside' });
      expect(outside.seen).toHaveLength(1);
    });
  }

  verifies('egress:hosted:hostile', 'a change of protocol behind an open request is cut', async () => {
    outside.answer = () => undefined;
    const first = `GET ${http()} HTTP/1.1\r\n\r\n`;
    for (const second of [
      `GET ${http()} HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n`,
      'CONNECT api.example.test:443 HTTP/1.1\r\n\r\n',
    ]) {
      expect(await raw(first + second)).toBe('');
    }
  });

  verifies('egress:hosted:hostile', 'a pile of requests on one connection is cut', async () => {
    outside.answer = () => undefined;
    expect(await raw(`GET ${http()} HTTP/1.1\r\n\r\n`.repeat(5_000))).toBe('');
    expect(outside.seen.length).toBeLessThanOrEqual(1);
  });

  verifies('egress:hosted:hostile', 'a response that is invalid HTTP becomes a 502', async () => {
    const answers = ['nonsense\r\n\r\n', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n'];
    for (const text of answers) {
      outside.answer = (req) => void req.socket.end(text);
      expect((await get(http())).status).toBe(502);
    }
    outside.answer = (req) => void req.socket.end(`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`);
    expect((await get(http())).status).toBe(502);
  });

  it('a request whose headers never end is cut', async () => {
    await allow(null, { headersMs: 50 });
    const socket = await dial();
    socket.write('GET http://api.example.test/ HTTP/1.1\r\n');
    const closed = once(socket.resume(), 'close');
    await closed;
  });
});

describe('with HOSTING_EGRESS_ALLOW', () => {
  /** Opens the way out of a program with this `egressAllow` anew, for a service with these settings. */
  async function open(list: string[] | null, settings: Record<string, string> = {}): Promise<void> {
    await proxy.close();
    const env = loadEnv({ HOSTING_EGRESS_ALLOW: '127.0.0.0/8, 169.254.169.254', ...settings });
    proxy = await openEgress(worker.proxyPath, { allow: list, onRefused: tell }, null, internalRoutes(env));
  }

  verifies(
    'egress:hosted:internal',
    'a listed address is reached by a program whose list names it with its port, and by no other',
    async () => {
      const named = `127.0.0.2:${outside.httpPort}`;
      await open([named]);
      expect(await get(`http://${named}/`)).toEqual({ status: 200, text: 'outside' });
      expect(await worker.try({ way: 'socket', url: `http://${named}/socket`, text: 'hello' })).toMatchObject({
        text: 'hello',
      });
      const reached = outside.seen.length;
      const others: [string[] | null, Record<string, string>][] = [
        [null, {}],
        [['127.0.0.2'], {}],
        [[`127.0.0.2:${outside.httpsPort}`, '127.0.0.2'], {}],
        [[named], { HOSTING_EGRESS_ALLOW: '' }],
        [[named], { HOSTING_EGRESS_ALLOW: '127.0.0.1' }],
      ];
      for (const [list, settings] of others) {
        await open(list, settings);
        const { status, text } = await get(`http://${named}/`);
        expect([list, status]).toEqual([list, 403]);
        expect(text).toMatch(
          /the operator lists it in HOSTING_EGRESS_ALLOW, and the server's owner adds "127\.0\.0\.2:<port>"/,
        );
      }
      expect(outside.seen).toHaveLength(reached);
    },
  );

  verifies('egress:hosted:internal', 'the ports of this service and its own services stay closed', async () => {
    const named = `127.0.0.2:${outside.httpPort}`;
    const keys = { ENCRYPTION_KEYS: `k1:${'A'.repeat(43)}=` };
    const own: Record<string, string>[] = [
      { PORT: String(outside.httpPort) },
      { ADVERTISE_URL: `http://127.0.0.2:${outside.httpPort}` },
      { DATABASE_URL: `postgres://u:p@${named}/x`, ...keys },
      { DATABASE_URL: `postgres://u:p@localhost:${outside.httpPort}/x`, ...keys },
      { REDIS_URL: `redis://${named}` },
      { OTEL_EXPORTER_OTLP_ENDPOINT: `http://${named}` },
    ];
    for (const settings of own) {
      await open([named], settings);
      expect([settings, (await get(`http://${named}/`)).status]).toEqual([settings, 403]);
    }
    await open(['169.254.169.254:80']);
    expect((await get('http://169.254.169.254/')).status).toBe(403);
    expect(outside.seen).toHaveLength(0);
  });
});

describe('with EGRESS_PROXY', () => {
  let operators: ForwardProxy;

  beforeEach(async () => {
    await proxy.close();
    operators = await startForwardProxy('127.0.0.2');
    proxy = await openEgress(worker.proxyPath, { allow: null, onRefused: tell }, operators.url);
  });
  afterEach(() => operators.close());

  verifies(
    'egress:hosted:proxy',
    'requests and WebSockets go through that proxy, and private addresses nowhere',
    async () => {
      expect(await get(http())).toEqual({ status: 200, text: 'outside' });
      expect(await worker.try({ way: 'socket', url: http('/socket'), text: 'hello' })).toMatchObject({ text: 'hello' });
      expect(await get(`http://8.8.8.8:${outside.httpPort}/`)).toEqual({ status: 200, text: 'outside' });
      const port = outside.httpPort;
      expect(new Set(operators.asked)).toEqual(new Set([`api.example.test:${port}`, `8.8.8.8:${port}`]));
      operators.asked.length = 0;
      for (const host of ['127.0.0.2', 'localhost', '[::1]', '10.0.0.7', '169.254.169.254']) {
        expect((await get(`http://${host}:${port}/`)).status).toBe(403);
      }
      expect(operators.asked).toEqual([]);
    },
  );

  verifies('egress:hosted:proxy', 'its refusal is a 502 that names it', async () => {
    operators.refuseWith = 403;
    const { status, text } = await get(http());
    expect(status).toBe(502);
    expect(text).toMatch(
      /^The HTTP proxy of this service \(EGRESS_PROXY\) answered 403 for api\.example\.test:\d+: its rules/,
    );
  });
});

async function dial(): Promise<Socket> {
  const socket = connect(worker.proxyPath);
  await once(socket, 'connect');
  return socket.on('error', () => undefined);
}

/** Everything the proxy says to these bytes until it closes, which it must. */
async function raw(bytes: string): Promise<string> {
  const socket = await dial();
  let said = '';
  socket.on('data', (chunk) => (said += chunk.toString()));
  socket.write(bytes);
  let isClosed = false;
  socket.once('close', () => (isClosed = true));
  await until(() => isClosed, 'the proxy closes the connection').finally(() => socket.destroy());
  return said;
}
