import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { LookupAddress } from 'node:dns';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createSecureContext } from 'node:tls';
import { afterEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Pool, type Dispatcher } from 'undici';
import { connectorOf } from './early-close.js';
import { loadEnv } from '../../config/env.js';
import { AddressPolicy, parseEgressAllow } from './address-policy.js';
import { EgressRefusedError } from './egress.errors.js';
import { ownPorts } from './egress.module.js';
import {
  Egress,
  type EgressConnectOptions,
  type EgressRequestOptions,
  type ResolveHost,
  isLocalAddress,
} from './egress.js';
import { randomRuns } from '../../../test/support/random-runs.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const GET: EgressRequestOptions = { method: 'GET', headers: {} };

/** Answers each question with the next set of addresses, the last one forever; counts the questions. */
function resolver(...answers: string[][]): ResolveHost & { asked: string[] } {
  const asked: string[] = [];
  const resolve: ResolveHost = (hostname, _options, callback) => {
    const answer = answers[Math.min(asked.length, answers.length - 1)] ?? [];
    asked.push(hostname);
    const addresses = answer.map((address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 }));
    setImmediate(callback, null, addresses);
  };
  return Object.assign(resolve, { asked });
}

function open(allow: string, resolve?: ResolveHost, connect?: EgressConnectOptions): Egress {
  const egress = new Egress(new AddressPolicy(parseEgressAllow(allow)), resolve, connect);
  cleanups.push(() => egress.close());
  return egress;
}

interface Target {
  host: string;
  port: number;
  sockets: Socket[];
}

async function listen(server: Server, host: string, port = 0): Promise<Target> {
  const sockets: Socket[] = [];
  server.on('connection', (socket: Socket) => sockets.push(socket));
  server.listen(port, host);
  await once(server, 'listening');
  cleanups.push(() => {
    sockets.forEach((socket) => socket.destroy());
    server.close();
  });
  return { host, port: (server.address() as AddressInfo).port, sockets };
}

const answerHost: RequestListener = (request, response) => response.end(request.headers.host);
const target = (listener: RequestListener = answerHost): Promise<Target> => listen(createServer(listener), '127.0.0.1');

/** A second address of this machine, which the tests do not allow: 127.0.0.2 on Linux, ::1 where that does not exist. */
async function forbiddenTarget(port = 0): Promise<Target> {
  const onLinux = listen(createServer(answerHost), '127.0.0.2', port);
  return onLinux.catch(() => listen(createServer(answerHost), '::1', port));
}

/** The body, one turn after its end: until then undici counts the socket as busy and would open a second one. */
async function text(response: Promise<Dispatcher.ResponseData>): Promise<string> {
  const body = await (await response).body.text();
  await new Promise(setImmediate);
  return body;
}

function parse(url: string): URL | undefined {
  try {
    return new URL(url);
  } catch {
    return undefined;
  }
}

async function refusal(attempt: () => unknown): Promise<EgressRefusedError> {
  const thrown = await (async () => attempt())().then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(EgressRefusedError);
  return thrown as EgressRefusedError;
}

describe('a hostile spelling', () => {
  const strict = (): Egress => open('', resolver(['93.184.215.14']));

  it.each([
    // 127.0.0.1 and 0.0.0.0, as the parsers of this world accept them
    ...['http://127.0.0.1', 'http://127.0.0.1.', 'http://127.1', 'http://127.0.1', 'http://2130706433', 'http://0'],
    ...['http://0x7f000001', 'http://0X7F.0.0.1', 'http://0x7f.1', 'http://0177.0.0.1', 'http://017700000001'],
    ...['http://0177.0x0.0.1', 'http://00000177.0.0.1', 'http://0.0.0.0', 'http://0x0', 'http://127.127.127.127'],
    ...['http://127.0.0.1:80/', 'https://127.0.0.1:443', 'HTTP://127.0.0.1', 'http:127.0.0.1', 'http:/127.0.0.1'],
    ...['http:///127.0.0.1', 'http://////127.0.0.1', 'http://%31%32%37.0.0.1', 'http://%30', 'http://127%2e0%2e0%2e1'],
    ...['http://１２７.０.０.１', 'http://127。0。0。1', 'http://127．0．0．1', 'http://①②⑦.⓪.⓪.①', 'http://𝟏𝟐𝟕.𝟎.𝟎.𝟏'],
    ...['http://127\u00ad.0.0.1', 'http://127.0.0.1\u200b', ' http://127.0.0.1 '],
    // other closed ranges
    ...['http://10.0.0.7', 'http://0xa.7', 'http://167772167', 'http://012.0.0.07', 'http://172.16.0.1'],
    ...['http://192.168.1.1', 'http://3232235777', 'http://100.64.0.1', 'http://169.254.169.254/latest/meta-data/'],
    ...[
      'http://0xa9fea9fe',
      'http://2852039166',
      'http://0251.0376.0251.0376',
      'http://169.254.43518',
      'http://224.0.0.1',
    ],
    ...[
      'http://255.255.255.255',
      'http://240.0.0.1',
      'http://198.18.0.1',
      'http://203.0.113.9',
      'http://168.63.129.16',
    ],
    // IPv6, and IPv4 inside it
    ...[
      'http://[::1]',
      'http://[0:0:0:0:0:0:0:1]',
      'http://[0000::0001]:8080/',
      'http://[::]',
      'http://[::FFFF:7F00:1]',
    ],
    ...[
      'http://[::ffff:127.0.0.1]',
      'http://[::ffff:7f00:1]',
      'http://[0:0:0:0:0:ffff:10.0.0.1]',
      'http://[::127.0.0.1]',
    ],
    ...['http://[::7f00:1]', 'http://[::ffff:0:127.0.0.1]', 'http://[64:ff9b::7f00:1]', 'http://[64:ff9b::8.8.8.8]'],
    ...['http://[64:ff9b:1::a00:1]', 'http://[2002:7f00:1::]', 'http://[2001:0:1:2::3]', 'http://[fe80::1]'],
    ...['http://[FE80::1]', 'http://[fec0::1]', 'http://[fc00::1]', 'http://[fd00:ec2::254]', 'http://[ff02::1]'],
    ...['http://[2001:db8::1]', 'http://[100::1]', 'http://[::ffff:a9fe:a9fe]', 'http://[fe80::1%25eth0]'],
    ...['http://[fe80::1%eth0]', 'http://[::1', 'http://::1', 'http://[v1.::1]', 'http://[127.0.0.1]'],
    // names that always mean this machine
    ...['http://localhost', 'http://LOCALHOST:3000', 'http://localhost.', 'http://a.localhost', 'http://ｌocalhost'],
    // where is the host?
    ...['http://good@127.0.0.1', 'http://good:pw@127.0.0.1', 'http://127.0.0.1#@good', 'http://127.0.0.1?@good'],
    ...['http://127.0.0.1/@good', 'http://good@good@127.0.0.1', 'http://127.0.0.1@good.example', 'http://@127.0.0.1'],
    ...[
      'http://:@127.0.0.1',
      'http://good.example\\@127.0.0.1',
      'http://127.0.0.1\\@good.example',
      'http:\\\\127.0.0.1',
    ],
    ...[
      'http://good%40127.0.0.1',
      'http://127.0.0.1%00.good.example',
      'http://127.0.0.1%23@good',
      'http://good:80@10.0.0.1',
    ],
    ...[
      'http://127.0.\t0.1',
      'http://good.example\t/',
      'ht\ntp://127.0.0.1',
      'http://good.example\r\nX: y',
      'http://\u0000',
    ],
    ...['//127.0.0.1', '/127.0.0.1', '127.0.0.1', 'http://1.2.3.256', 'http://1.2.3.4.5', 'http://0x1.example.0x2'],
    // not http
    ...[
      'file:///etc/passwd',
      'file://127.0.0.1/',
      'gopher://127.0.0.1:6379/_',
      'ftp://good.example',
      'ws://good.example',
    ],
    ...[
      'wss://good.example',
      'data:text/plain,x',
      'javascript:alert(1)',
      'blob:http://127.0.0.1/x',
      'dict://good:2628',
    ],
    ...['unix:///var/run/docker.sock', 'http+unix://%2Fvar%2Frun', 'view-source:http://127.0.0.1', 'jar:http://good!/'],
    ...['http:', 'http://', 'http:///', 'https://:443', 'http://:80', 'http://?x', 'http://#x', '', ' ', 'http://a b'],
    ...['http://good.example:99999', 'http://good<.example', 'http://%'],
    ...['http://xn--', 'http://xn--a', 'http://a.xn--zzzz99999999.example'],
  ])('%p is refused before anything is resolved', async (url) => {
    const egress = strict();
    await refusal(() => egress.check(url));
    const parsed = parse(url);
    if (parsed === undefined) return;
    if (parsed.username === '' && !/good|0x|xn--/.test(parsed.hostname))
      await refusal(() => egress.request(parsed, GET));
  });

  it('is refused for any closed IPv4 address, in every notation', () => {
    const egress = strict();
    const inRange = (first: number, bits: number): fc.Arbitrary<number> =>
      fc.integer({ min: 0, max: 2 ** (32 - bits) - 1 }).map((offset) => first + offset);
    const ranges: [number, number][] = [
      ...([
        [0, 8],
        [0x0a000000, 8],
        [0x64400000, 10],
        [0x7f000000, 8],
        [0xa9fe0000, 16],
      ] as [number, number][]),
      ...([
        [0xac100000, 12],
        [0xc0a80000, 16],
        [0xc6120000, 15],
        [0xe0000000, 4],
        [0xf0000000, 4],
      ] as [number, number][]),
    ];
    const property = fc.property(fc.oneof(...ranges.map(([first, bits]) => inRange(first, bits))), (address) => {
      for (const host of spellings(address)) {
        expect(() => egress.check(`http://${host}/mcp`)).toThrow(EgressRefusedError);
      }
    });
    fc.assert(property, { numRuns: randomRuns(300) });
  });
});

/** Every notation of an IPv4 address that some parser accepts, one or more of each kind. */
function spellings(address: number): string[] {
  const octets = [24, 16, 8, 0].map((shift) => (address >>> shift) & 0xff);
  const hex = (number: number, digits = 0): string => number.toString(16).padStart(digits, '0');
  const [high, low] = [hex(address >>> 16), hex(address & 0xffff)];
  const [a, b, c] = octets as [number, number, number, number];
  const quad = octets.join('.');
  return [
    ...[
      quad,
      `${quad}.`,
      `${address}`,
      `0x${hex(address)}`,
      `0X${hex(address).toUpperCase()}`,
      `0${address.toString(8)}`,
    ],
    ...[octets.map((octet) => `0x${hex(octet)}`).join('.'), octets.map((octet) => `0${octet.toString(8)}`).join('.')],
    ...[
      `${a}.${address & 0xffffff}`,
      `${a}.${b}.${address & 0xffff}`,
      `${a}.0x${hex(b)}.0${c.toString(8)}.${address & 0xff}`,
    ],
    ...[
      quad.replace(/\d/g, (digit) => `%3${digit}`),
      quad.replace(/\d/g, (digit) => '０１２３４５６７８９'[Number(digit)] ?? ''),
    ],
    ...[
      `[::ffff:${quad}]`,
      `[::ffff:${high}:${low}]`,
      `[::FFFF:${high.toUpperCase()}:${low.toUpperCase()}]`,
      `[::${quad}]`,
    ],
    ...[`[0:0:0:0:0:ffff:${quad}]`, `[64:ff9b::${quad}]`, `[64:ff9b:1::${high}:${low}]`, `[2002:${high}:${low}::1]`],
    ...[`[2001:0:${high}:${low}::1]`, `[::ffff:0:${quad}]`],
  ];
}

describe('an allowed URL', () => {
  it.each([
    ['https://mcp.example/mcp', 'https://mcp.example/mcp'],
    ['https://mcp.example/mcp?key=1#part', 'https://mcp.example/mcp?key=1'],
    ['http://mcp.example:8080', 'http://mcp.example:8080/'],
    ['HTTPS://MCP.Example:443/A', 'https://mcp.example/A'],
    [' https://mcp.example/ ', 'https://mcp.example/'],
    ['https://bücher.example/', 'https://xn--bcher-kva.example/'],
    ['https://mcp.example./x', 'https://mcp.example./x'],
    ['https://8.8.8.8/', 'https://8.8.8.8/'],
    ['http://134744072/', 'http://8.8.8.8/'],
    ['http://[2606:4700::1111]/', 'http://[2606:4700::1111]/'],
    ['http://[::ffff:8.8.8.8]/', 'http://[::ffff:808:808]/'],
    ['http://10.9.0.1/', 'http://10.9.0.1/'],
    ['http://wiki.corp.example/', 'http://wiki.corp.example/'],
    ['https://localhost.example/', 'https://localhost.example/'],
    ['https://127.0.0.1.nip.example/', 'https://127.0.0.1.nip.example/'],
    ['https://mcp.example/a%20b/%2e%2e/c@d:e', 'https://mcp.example/c@d:e'],
    ['https://mcp.example/?u=http://127.0.0.1', 'https://mcp.example/?u=http://127.0.0.1'],
  ])('%p is taken as %p, from text and from a URL', (url, href) => {
    const egress = open('10.9.0.0/16');
    expect(egress.check(url).href).toBe(href);
    expect(egress.check(new URL(url)).href).toBe(href);
  });

  it('is copied, so that later changes of the argument have no effect', () => {
    const egress = open('');
    const given = new URL('https://mcp.example/');
    const checked = egress.check(given);
    given.hostname = '127.0.0.1';
    expect(checked.hostname).toBe('mcp.example');
  });
});

describe('a refusal', () => {
  const strict = (): Egress => open('', resolver(['10.0.0.7', '169.254.169.254']));

  it('names what was refused and what an operator can do', async () => {
    const error = await refusal(() => strict().check('http://10.0.0.7:8080/mcp'));
    expect(error).toMatchObject({ kind: 'invalid', code: 'validation_error', name: 'EgressRefusedError' });
    expect(error.message).toBe(
      'The address of "http://10.0.0.7:8080" is private (10.0.0.7): Slipway does not dial private addresses. ' +
        'An operator can allow it by adding 10.0.0.7 or the range of the address to EGRESS_ALLOW.',
    );
    const wrapped = await refusal(() => strict().check('http://[::ffff:169.254.169.254]/'));
    expect(wrapped.message).toContain('by adding 169.254.169.254 to EGRESS_ALLOW');
  });

  it('shows the resolved addresses of a name in the log only', async () => {
    const error = await refusal(() => strict().request(new URL('http://intra.example/'), GET));
    expect(error.message).toBe(
      'The host "intra.example" has no public address: Slipway does not dial it. An operator can allow it in EGRESS_ALLOW.',
    );
    expect(error.detail).toEqual({ hostname: 'intra.example', addresses: ['10.0.0.7', '169.254.169.254'] });
  });

  it.each([
    ...['http://us3r:s3cret@10.0.0.7/p4th?key=s3cret', 'http://10.0.0.7/p4th?key=s3cret#s3cret'],
    ...['ftp://us3r:s3cret@host/?s3cret', 'http://us3r:s3cret@:80/s3cret', 'http://us3r:s3cret@good\\s3cret'],
    ...['http://us3r:s3cret@intra.example/?s3cret', 'data:text/plain,s3cret'],
  ])('contains no secret of the URL %p', async (url) => {
    const egress = strict();
    const errors = [await refusal(() => egress.check(url))];
    const parsed = parse(url);
    if (parsed) errors.push(await refusal(() => egress.request(parsed, GET)));
    for (const error of errors) {
      expect(`${error.message} ${JSON.stringify(error.detail)} ${error.stack}`).not.toMatch(/s3cret|us3r|p4th/);
    }
  });
});

describe('a connection', () => {
  it('is refused to a name that resolves to a closed address, and the target sees none', async () => {
    const { port, sockets } = await target();
    const egress = open('', resolver(['127.0.0.1']));
    const url = egress.check(`http://intra.example:${port}/`);
    const errors = await Promise.all([1, 2, 3].map(() => refusal(() => egress.request(url, GET))));
    expect(errors[0]?.message).toContain('"intra.example" has no public address');
    await refusal(() => egress.request(url, { ...GET, dispatcherKind: 'stream' }));
    expect(sockets).toHaveLength(0);
  });

  it('is refused to an address literal that never passed check, and the target sees none', async () => {
    const { port, sockets } = await target();
    const egress = open('');
    for (const host of ['127.0.0.1', '2130706433', '[::ffff:127.0.0.1]', 'localhost']) {
      const url = new URL(`http://${host}:${port}/`);
      const error = await refusal(() => egress.request(url, GET));
      expect(error.message).toContain(`The address of "${url.origin}" is loopback`);
    }
    expect(sockets).toHaveLength(0);
  });

  it('uses only the open address of a name that also has a closed one', async () => {
    const allowed = await target();
    const forbidden = await forbiddenTarget(allowed.port);
    const resolve = resolver([forbidden.host, allowed.host, '10.0.0.1']);
    const url = new URL(`http://mixed.example:${allowed.port}/`);
    expect(await text(open('127.0.0.1', resolve).request(url, GET))).toBe(`mixed.example:${allowed.port}`);
    expect(allowed.sockets).toHaveLength(1);
    expect(forbidden.sockets).toHaveLength(0);
  });

  it('tries the next open address when the first does not answer', async () => {
    const { port } = await target();
    const egress = open('loopback', resolver(['127.0.0.3', '::1', '127.0.0.1']));
    expect(await text(egress.request(new URL(`http://mixed.example:${port}/`), GET))).toBe(`mixed.example:${port}`);
  });

  it('goes to the checked address, whatever the name resolves to afterwards', async () => {
    const allowed = await target();
    const forbidden = await forbiddenTarget(allowed.port);
    const resolve = resolver([allowed.host], [forbidden.host]);
    const egress = open('127.0.0.1', resolve);
    const url = egress.check(`http://rebind.example:${allowed.port}/`);
    expect(resolve.asked).toHaveLength(0);

    expect(await text(egress.request(url, GET))).toBe(`rebind.example:${allowed.port}`);
    expect(await text(egress.request(url, GET))).toBe(`rebind.example:${allowed.port}`);
    expect(allowed.sockets.map((socket) => socket.localAddress)).toEqual(['127.0.0.1']);
    expect(resolve.asked).toEqual(['rebind.example']);

    const closed = once(allowed.sockets[0], 'close');
    allowed.sockets[0]?.end();
    await closed;
    await refusal(() => egress.request(url, GET));
    expect(resolve.asked).toHaveLength(2);
    expect(allowed.sockets).toHaveLength(1);
    expect(forbidden.sockets).toHaveLength(0);
  });

  it('is kept alive and reused', async () => {
    const { port, sockets } = await target();
    const egress = open('loopback', resolver(['127.0.0.1']));
    for (let i = 0; i < 3; i++) await text(egress.request(new URL(`http://mcp.example:${port}/${i}`), GET));
    expect(sockets).toHaveLength(1);
    await text(egress.request(new URL(`http://mcp.example:${port}/`), { ...GET, dispatcherKind: 'stream' }));
    expect(sockets).toHaveLength(2);
  });

  it('counts towards 64 connections for calls; a stream never waits for one', async () => {
    const { port, sockets } = await target((request, response) => {
      if (request.url === '/stream') response.end('streaming');
    });
    const egress = open('loopback');
    const calls = Array.from({ length: 80 }, () => egress.request(new URL(`http://127.0.0.1:${port}/`), GET));
    const ended = Promise.allSettled(calls);
    const stream = egress.request(new URL(`http://127.0.0.1:${port}/stream`), { ...GET, dispatcherKind: 'stream' });
    expect(await text(stream)).toBe('streaming');
    while (sockets.length < 65) await new Promise(setImmediate);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(sockets).toHaveLength(65);
    await egress.close();
    expect((await ended).every(({ status }) => status === 'rejected')).toBe(true);
  });

  it.each(['localhost', '127.0.0.1', '127.1'])('is open to %s with the loopback rule, by real DNS', async (host) => {
    const { port } = await target();
    const egress = open('loopback');
    expect(await text(egress.request(egress.check(`http://${host}:${port}/`), GET))).toMatch(
      /^(localhost|127\.0\.0\.1):/,
    );
    await refusal(() => egress.check('http://10.0.0.1/'));
    expect(egress.check('http://[::1]:1/').hostname).toBe('[::1]');
  });

  it('has the error of the resolver', async () => {
    const failure = Object.assign(new Error('no such host'), { code: 'ENOTFOUND' });
    const egress = open('', (_hostname, _options, callback) => callback(failure, []));
    await expect(egress.request(new URL('http://gone.example/'), GET)).rejects.toBe(failure);
    const empty = open('', resolver([]));
    await expect(empty.request(new URL('http://empty.example/'), GET)).rejects.toMatchObject({ code: 'ENOTFOUND' });
  });
});

describe('a request', () => {
  it('returns a redirect instead of following it; the next address is checked again', async () => {
    const forbidden = await forbiddenTarget();
    const host = forbidden.host === '::1' ? '[::1]' : forbidden.host;
    const location = `http://${host}:${forbidden.port}/`;
    const { port } = await target((_request, response) => response.writeHead(302, { location }).end());
    const egress = open('127.0.0.1');
    const response = await egress.request(new URL(`http://127.0.0.1:${port}/`), GET);
    expect(response).toMatchObject({ statusCode: 302, headers: { location } });
    await response.body.dump();
    await refusal(() => egress.check(String(response.headers.location)));
    expect(forbidden.sockets).toHaveLength(0);
  });

  it('carries method, path, query, headers and body as given', async () => {
    const { port } = await target((request, response) => {
      const { method, url, headers } = request;
      response.writeHead(200, { 'x-seen': `${method} ${url} ${headers.authorization} ${headers.host}` });
      request.pipe(response);
    });
    const egress = open('loopback', resolver(['127.0.0.1']));
    const response = await egress.request(new URL(`http://mcp.example:${port}/a?b=c#d`), {
      method: 'POST',
      headers: { authorization: 'Bearer x' },
      body: 'hello',
    });
    expect(response.headers['x-seen']).toBe(`POST /a?b=c Bearer x mcp.example:${port}`);
    expect(await response.body.text()).toBe('hello');
  });

  it.each(['host', 'Host', 'HOST'])('may not set the header %s, which selects another site', async (name) => {
    const { port, sockets } = await target();
    const url = new URL(`http://127.0.0.1:${port}/`);
    const error = await refusal(() => open('loopback').request(url, { ...GET, headers: { [name]: 'other.example' } }));
    expect(error.message).toContain('"Host"');
    expect(sockets).toHaveLength(0);
  });

  it('closes its socket on abort, before and after the response headers', async () => {
    const { port, sockets } = await target((request, response) => {
      if (request.url === '/body') response.write('first');
    });
    const egress = open('loopback');
    for (const path of ['/', '/body']) {
      const abort = new AbortController();
      const seen = sockets.length;
      const response = egress.request(new URL(`http://127.0.0.1:${port}${path}`), { ...GET, signal: abort.signal });
      const outcome = path === '/' ? response : response.then(({ body }) => body.text());
      const ended = expect(outcome).rejects.toThrow('caller left');
      if (path === '/body') await response;
      while (sockets.length === seen) await new Promise(setImmediate);
      const closed = once(sockets[seen], 'close');
      abort.abort(new Error('caller left'));
      await ended;
      await closed;
    }
  });

  it('fails when the response headers exceed 16 KB', async () => {
    const { port } = await target((_request, response) => {
      response.writeHead(200, { 'x-long': 'x'.repeat(17 * 1024) }).end();
    });
    const sent = open('loopback').request(new URL(`http://127.0.0.1:${port}/`), GET);
    await expect(sent).rejects.toMatchObject({ code: 'UND_ERR_HEADERS_OVERFLOW' });
  });

  it('in flight ends when egress is closed, and none starts afterwards', async () => {
    const { port, sockets } = await target((_request, response) => void response.write('first'));
    const egress = open('loopback');
    const url = new URL(`http://127.0.0.1:${port}/`);
    const { body } = await egress.request(url, { ...GET, dispatcherKind: 'stream' });
    const closed = once(sockets[0], 'close');
    const ended = expect(body.text()).rejects.toThrow();
    await egress.close();
    await ended;
    await closed;
    await expect(egress.request(url, GET)).rejects.toThrow();
    expect(sockets).toHaveLength(1);
  });
});

describe('TLS', () => {
  // A key pair of these tests only: self-signed for mcp.example.test, 2020 to 2120.
  const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgyh1JuV3Jh0rlErfM
6sVEIsG1dOWMw4qwE3UTKLy1kSyhRANCAAQ22AxYWCgeXyd3DrgLkVw7ovp2ArrX
xD0k6MfwOeRSm8iDTlrh2bIewlQxJpw6pvnQ1paU7PK0qB67plqkGi5S
-----END PRIVATE KEY-----`;
  const cert = `-----BEGIN CERTIFICATE-----
MIIBZTCCAQugAwIBAgIBATAKBggqhkjOPQQDAjAbMRkwFwYDVQQDDBBtY3AuZXhh
bXBsZS50ZXN0MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAbMRkw
FwYDVQQDDBBtY3AuZXhhbXBsZS50ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcD
QgAENtgMWFgoHl8ndw64C5FcO6L6dgK618Q9JOjH8DnkUpvIg05a4dmyHsJUMSac
Oqb50NaWlOzytKgeu6ZapBouUqM+MDwwGwYDVR0RBBQwEoIQbWNwLmV4YW1wbGUu
dGVzdDAdBgNVHQ4EFgQUIm0tbDHKZ0qUnpke05W6mYTlAqcwCgYIKoZIzj0EAwID
SAAwRQIhALQcR0vjRJvqQoCQCKBMdrZpU3hJPpuuKp2CUdLF+U8fAiAEYTZMQ7hC
bh+uc5q2ujcvYT8W1YXzAiGb4VcSVWVW3g==
-----END CERTIFICATE-----`;

  async function tlsTarget(): Promise<Target & { names: string[] }> {
    const names: string[] = [];
    const server = createTlsServer({
      key,
      cert,
      SNICallback: (name, callback) => {
        names.push(name);
        callback(null, createSecureContext({ key, cert }));
      },
    });
    server.on('request', answerHost);
    return { ...(await listen(server, '127.0.0.1')), names };
  }

  it('names the host of the URL at the checked address and verifies its certificate', async () => {
    const { port, names } = await tlsTarget();
    const egress = open('loopback', resolver(['127.0.0.1']), { ca: cert });
    const host = `mcp.example.test:${port}`;
    expect(await text(egress.request(new URL(`https://${host}/`), GET))).toBe(host);
    expect(names).toEqual(['mcp.example.test']);
    const other = egress.request(new URL(`https://other.example.test:${port}/`), GET);
    await expect(other).rejects.toMatchObject({ code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  });

  it('refuses a self-signed certificate', async () => {
    const { port } = await tlsTarget();
    const egress = open('loopback', resolver(['127.0.0.1']));
    const sent = egress.request(new URL(`https://mcp.example.test:${port}/`), GET);
    await expect(sent).rejects.toMatchObject({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
  });

  it('is not started with a closed address', async () => {
    const { port, sockets } = await tlsTarget();
    const egress = open('', resolver(['127.0.0.1']), { ca: cert });
    await refusal(() => egress.request(new URL(`https://mcp.example.test:${port}/`), GET));
    await refusal(() => egress.request(new URL(`https://127.0.0.1:${port}/`), GET));
    expect(sockets).toHaveLength(0);
  });
});

describe('closed ports of this machine', () => {
  it('are never dialled, by address or name, whatever is allowed', async () => {
    const closed = await target();
    const other = await target();
    const egress = open('loopback,localhost,db.test', resolver(['127.0.0.1']), {
      closedPorts: new Map([[closed.port, isLocalAddress]]),
    });
    for (const host of ['127.0.0.1', 'localhost', '[::1]']) {
      expect(() => egress.check(`http://${host}:${closed.port}/`)).toThrow(
        /a port of this service itself.*no setting opens/,
      );
    }
    await expect(egress.request(new URL(`http://db.test:${closed.port}/`), GET)).rejects.toThrow(
      `"db.test:${closed.port}" is a port of this service itself`,
    );
    await expect(egress.dial(new URL(`http://db.test:${closed.port}/`))).rejects.toThrow(EgressRefusedError);
    expect(closed.sockets).toEqual([]);
    expect(await text(egress.request(new URL(`http://db.test:${other.port}/`), GET))).toBe(`db.test:${other.port}`);
  });

  it('are those of its database, its Redis and requests between processes', () => {
    const env = loadEnv({
      ...{ PORT: '3100', DATABASE_URL: 'postgres://localhost/x', ENCRYPTION_KEYS: `k1:${'A'.repeat(43)}=` },
      ...{ REDIS_URL: 'redis://localhost:7000', ADVERTISE_URL: 'http://127.0.0.1:3101' },
    });
    expect([...ownPorts(env).keys()]).toEqual([5432, 7000, 3101]);
  });
});

it.each(['egress', 'a pool'])(
  'survives a server that closes the connection before its response was read, by %s',
  async (by) => {
    const size = 200_000;
    const server = createServer((_request, response) => {
      response.socket?.write('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n');
      response.socket?.end(Buffer.alloc(size, 'a'));
    });
    const { port } = await listen(server, '127.0.0.1');
    const egress = open('127.0.0.1');
    const url = new URL(`http://127.0.0.1:${port}/`);
    const pool = new Pool(url.origin, { connect: connectorOf({}) });
    for (let n = 0; n < 20; n += 1) {
      const { body } =
        by === 'egress' ? await egress.request(url, GET) : await pool.request({ path: '/', method: 'GET' });
      const read = async () => {
        let bytes = 0;
        for await (const chunk of body) {
          bytes += (chunk as Buffer).length;
          // A reader slower than the network.
          await new Promise((resolve) => setTimeout(resolve, 3));
        }
        return bytes;
      };
      const outcome = await read().catch(({ message }: Error) => message);
      expect([size, 'The server closed the connection before its response was read']).toContain(outcome);
    }
    await pool.destroy();
  },
);
