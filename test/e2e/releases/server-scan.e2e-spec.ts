import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createServer, type RequestListener } from 'node:http';
import {
  UpstreamAuthRequiredError,
  UpstreamError,
  UpstreamTimeoutError,
} from '../../../src/mcp/protocol/mcp-errors.js';
import { fetchServerCard } from '../../../src/mcp/client/server-card.js';
import { scanServer, type ServerScan } from '../../../src/mcp/client/server-scan.js';
import { checkServer } from '../../../src/modules/releases/scan/security-check.js';
import { AddressPolicy, parseEgressAllow } from '../../../src/platform/egress/address-policy.js';
import { Egress } from '../../../src/platform/egress/egress.js';
import { times } from '../../support/mcp/calls.js';
import { channelTo } from '../../support/mcp/channels.js';
import { startEverything } from '../../support/upstream/everything.js';
import { deadHost, refusedPort, startFaulty } from '../../support/special-upstreams/faulty-upstreams.js';
import { sendJson, startScripted, type Script } from '../../support/special-upstreams/scripted-upstream.js';
import { startSdkV1, startSdkV2 } from '../../support/special-upstreams/sdk-upstream.js';
import { closing, start } from '../../support/upstream/upstream-clients.js';
import { listen, shut } from '../../support/upstream/upstream-net.js';

let egress: Egress;
let strict: Egress;

beforeAll(() => {
  egress = new Egress(new AddressPolicy(parseEgressAllow('loopback')));
  strict = new Egress(new AddressPolicy(parseEgressAllow('')));
});
afterAll(async () => {
  await egress.close();
  await strict.close();
});

interface Told {
  scan: ServerScan;
  told: string[];
}

/** Scans the server at `url` and gives what it was told on the way. */
async function scanAt(url: string, { timeoutMs = 60_000, headers = {} } = {}): Promise<Told> {
  const channel = closing(channelTo(egress, url, { headers }));
  const told: string[] = [];
  const scan = await scanServer(channel, { timeoutMs, onProgress: (message) => told.push(message) });
  return { scan, told };
}

function failing(url: string, options = {}): Promise<Error> {
  return scanAt(url, options).then(
    () => new Error('The scan succeeded.'),
    (error: Error) => error,
  );
}

/** A server whose handshake declares these capabilities, and whose other answers are the script's. */
async function declaring(capabilities: object, script: Script) {
  const serverInfo = { name: 'declares', version: '2.0.0', vendor: 'x' };
  const hello = JSON.stringify({ protocolVersion: '2025-06-18', capabilities, serverInfo, instructions: 'Be kind.' });
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const message = JSON.parse(Buffer.concat(chunks).toString() || '{}') as { id?: number; method?: string };
      seen.push(message.method ?? '');
      if (message.id === undefined) return void res.writeHead(202).end();
      const nth = seen.filter((method) => method === message.method).length;
      const result = message.method === 'initialize' ? hello : script(message, res, nth);
      if (typeof result === 'string') sendJson(res, `{"jsonrpc":"2.0","id":${message.id},"result":${result}}`);
    });
  });
  const seen: string[] = [];
  const port = await listen(server);
  return closing({ url: `http://127.0.0.1:${port}/mcp`, seen, close: () => shut(server) });
}

const unknownMethod: Script = ({ id }, res) =>
  sendJson(res, `{"jsonrpc":"2.0","id":${id},"error":{"code":-32601,"message":"Method not found"}}`);

describe('scanning a server', () => {
  it('finds all that the reference server offers', async () => {
    const { scan, told } = await scanAt(closing(await startEverything()).url, { timeoutMs: 30_000 });
    expect(scan).toMatchObject({ era: 'legacy', protocolVersion: '2025-11-25' });
    expect(scan.serverInfo.name).toContain('everything');
    expect(scan.tools?.map(({ name }) => name)).toEqual(expect.arrayContaining(['echo', 'get-sum']));
    for (const tool of scan.tools ?? []) expect(tool.inputSchema).toMatchObject({ type: 'object' });
    for (const list of [scan.resources, scan.resourceTemplates, scan.prompts]) expect(list?.length).toBeGreaterThan(0);
    expect(told.at(-1)).toBe(`Found ${scan.prompts?.length} prompts.`);
    expect(await checkServer({ ...scan, requireSchemas: true })).toEqual([]);
  });

  it('finds the tools of servers made with either SDK, of both eras', async () => {
    const servers = [
      await startSdkV1({ stateful: true, json: false }),
      await startSdkV1({ stateful: false, json: true }),
      await startSdkV2({ legacy: 'stateless' }),
      await startSdkV2({ legacy: 'reject' }),
    ].map(closing);
    const scans = await Promise.all(servers.map(({ url }) => scanAt(url)));
    expect(scans.map(({ scan }) => scan.era)).toEqual(['legacy', 'legacy', 'modern', 'modern']);
    for (const { scan } of scans) {
      expect(scan.tools).toEqual([expect.objectContaining({ name: 'echo', inputSchema: expect.anything() })]);
      expect([scan.resources, scan.resourceTemplates, scan.prompts]).toEqual([null, null, null]);
      expect(await checkServer({ ...scan, requireSchemas: true })).toEqual([]);
    }
  });

  it('reads a modern server without a handshake, and asks it for every list it declares', async () => {
    const upstream = await start({ modernOnly: true });
    const { scan } = await scanAt(upstream.url);
    expect(scan).toMatchObject({ era: 'modern', protocolVersion: '2026-07-28', instructions: 'A server for tests.' });
    expect(scan.tools?.length).toBeGreaterThan(5);
    expect(scan.resources).toHaveLength(2);
    expect(scan.resourceTemplates).toHaveLength(1);
    expect(scan.prompts).toHaveLength(1);
    expect(upstream.count('tools/call')).toBe(0);
  });

  it('follows the pages to the end and keeps unknown members', async () => {
    const tools = times(23, (i) => ({ name: `tool-${i}`, inputSchema: { type: 'object' }, 'x-i': i, _meta: { i } }));
    const { scan } = await scanAt((await start({ tools, pageSize: 2 })).url);
    expect(scan.tools).toEqual(tools);
  });

  it('asks only for what is declared; what is declared as nothing is not', async () => {
    const server = await declaring({ prompts: {}, tools: null, resources: false }, () => '{"prompts":[]}');
    const { scan } = await scanAt(server.url);
    expect(scan).toMatchObject({ tools: null, resources: null, resourceTemplates: null, prompts: [] });
    expect(scan).toMatchObject({ instructions: 'Be kind.', serverInfo: { vendor: 'x' } });
    expect(server.seen).toEqual(['server/discover', 'initialize', 'notifications/initialized', 'prompts/list']);
  });

  it('treats a declared list that the server does not implement as empty, with a warning', async () => {
    const server = await declaring({ tools: {}, resources: {} }, unknownMethod);
    const { scan, told } = await scanAt(server.url);
    expect(scan).toMatchObject({ tools: [], resources: [], resourceTemplates: [], prompts: null });
    expect(told).toContain('The server declares tools but does not know tools/list: it counts as having none.');
    expect(told.join()).toContain('does not know resources/templates/list');
  });

  it('takes a list that is refused or broken as empty, unless it is that of the tools, and warns', async () => {
    const server = await declaring({ tools: {}, resources: {}, prompts: {} }, ({ id, method }, res) => {
      if (method === 'tools/list') return '{"tools":[]}';
      if (method === 'resources/list') return '{"resources":[]}';
      if (method === 'resources/templates/list') return '{"resources":[]}';
      return sendJson(res, `{"jsonrpc":"2.0","id":${id},"error":{"code":-32000,"message":"No prompts today"}}`);
    });
    const { scan, told } = await scanAt(server.url);
    expect(scan).toMatchObject({ tools: [], resources: [], resourceTemplates: [], prompts: [] });
    expect(told.filter((line) => line.startsWith('Warning'))).toEqual([
      'Warning: the list of resource templates counts as empty. The MCP server listed its resource templates in a form that is not MCP.',
      'Warning: the list of prompts counts as empty. The MCP server refused to list its prompts: No prompts today',
    ]);
  });

  it('omits unusable items, names them, and never repeats hidden characters', async () => {
    const items = [null, 7, [], {}, { name: '' }, { name: 3 }, { name: 'good', x: [1] }];
    const server = await declaring({ tools: {}, resources: {} }, ({ method }) =>
      method === 'tools/list'
        ? JSON.stringify({ tools: [...items, ...times(30, () => 0)] })
        : JSON.stringify({ resources: [{ name: 'a' }, { name: 'b', uri: 'x:b' }], resourceTemplates: [] }),
    );
    const { scan, told } = await scanAt(server.url);
    expect(scan.tools).toEqual([{ name: 'good', x: [1] }]);
    expect(scan.resources).toEqual([{ name: 'b', uri: 'x:b' }]);
    expect(told).toContain('Left out tool number 1: it is not an object.');
    expect(told).toContain('Left out tool number 4: it has no name.');
    expect(told).toContain('Left out resource number 1: it has no uri.');
    expect(told).toContain('Left out tool number 37: it is not an object.');
    expect(told).toContain('Found 1 tool.');

    const hidden = await start({ serverInfo: { name: 'a\u202Eb', version: '1' } });
    expect((await scanAt(hidden.url)).told[0]).toBe('Connected to "a\\u{202E}b" "1" with MCP 2025-11-25 (legacy).');
  });

  it('stops at a list in a circle where its cursor comes twice, with a warning', async () => {
    for (const [cursors, pages] of [
      [['a'], 2],
      [['a', 'b'], 3],
      [[''], 1],
    ] as const) {
      const server = closing(
        await startScripted((_, __, nth) =>
          JSON.stringify({ tools: [{ name: `t${nth}` }, { name: 't1' }], nextCursor: cursors[nth % cursors.length] }),
        ),
      );
      const { scan, told } = await scanAt(server.url);
      expect(scan.tools).toEqual(times(pages, (i) => ({ name: `t${i + 1}` })));
      expect(told).toContain('Left out tool number 2: it has the name "t1" of an earlier one.');
      const warning =
        /^Warning: the server lists its tools in a circle: the cursor "[ab]" came twice\. The list ends there/;
      expect(told.some((line) => warning.test(line))).toBe(pages > 1);
      expect(server.count('tools/list')).toBe(pages);
    }
  });

  it('stops at a list without end after 64 pages, with a warning', async () => {
    for (const size of [0, 1, 15]) {
      const server = closing(
        await startScripted((_, __, nth) =>
          JSON.stringify({ tools: times(size, (i) => ({ name: `t-${nth}-${i}` })), nextCursor: `page ${nth}` }),
        ),
      );
      const { scan, told } = await scanAt(server.url);
      expect([scan.tools?.length, server.count('tools/list')]).toEqual([64 * size, 64]);
      expect(told).toContainEqual(
        expect.stringMatching(/^Warning: the server lists its tools in more than 64 pages\./),
      );
    }
  });

  it('keeps the pages before one that fails, with a warning', async () => {
    const failures = ['{"tools":5}', '{}', '"no"', '{"tools":[', 'null'];
    for (const failure of failures) {
      const server = closing(
        await startScripted((_, __, nth) =>
          nth > 2 ? failure : `{"tools":[{"name":"t${nth}"}],"nextCursor":"${nth}"}`,
        ),
      );
      const { scan, told } = await scanAt(server.url);
      expect([failure, scan.tools]).toEqual([failure, [{ name: 't1' }, { name: 't2' }]]);
      expect(told).toContainEqual(expect.stringMatching(/^Warning: the list of tools is incomplete: a later page/));
    }
  });

  it('returns the data that the rules of the security check need', async () => {
    const inputSchema = { type: 'object' };
    const verdictOn = async (offer: Partial<Parameters<typeof start>[0]>) => {
      const { scan } = await scanAt((await start({ tools: [{ name: 'fine', inputSchema }], ...offer })).url);
      return (await checkServer({ ...scan, requireSchemas: true })).map(({ rule, where }) => [rule, where]);
    };
    expect(await verdictOn({})).toEqual([]);
    expect(await verdictOn({ serverInfo: { name: 'a\u202Eb', version: '1' } })).toEqual([
      ['hidden-characters', 'server info'],
    ]);
    expect(await verdictOn({ tools: [{ name: 'bare', inputSchema: 'none' as unknown as object }] })).toEqual([
      ['invalid-schema', 'tool "bare"'],
    ]);
    const described = { name: 'long', description: 'x'.repeat(100_000), inputSchema };
    expect(await verdictOn({ tools: [described] })).toEqual([['oversized-text', 'tool "long"']]);
  });
});

describe('a server that lists too much', () => {
  const tool = (name: string) => ({ name, inputSchema: { type: 'object' } });

  it('has its first 1,000 tools scanned, with a warning', async () => {
    for (const sizeOf of [() => 400, () => 1_001, (nth: number) => nth * 100, (nth: number) => 2 ** nth]) {
      const server = closing(
        await startScripted((_, __, nth) =>
          JSON.stringify({ tools: times(sizeOf(nth), (i) => tool(`t-${nth}-${i}`)), nextCursor: `page ${nth}` }),
        ),
      );
      const { scan, told: lines } = await scanAt(server.url);
      expect(scan.tools).toHaveLength(1_000);
      expect(lines).toContainEqual(expect.stringContaining('lists more than 1000 tools. The list ends there'));
    }
    const full = await start({ tools: times(1_000, (i) => tool(`t-${i}`)), pageSize: 300 });
    const { scan, told: lines } = await scanAt(full.url);
    expect([scan.tools?.length, lines.some((line) => line.includes('Warning'))]).toEqual([1_000, false]);
  });

  it('has the first 16 MB scanned, with a warning', async () => {
    const warning = /^Warning: the list of tools is incomplete: .*The MCP server lists more than 16 MB of tools\.$/;
    const pad = 'x'.repeat(3 * 1024 * 1024);
    const server = closing(
      await startScripted((_, __, nth) =>
        JSON.stringify({ tools: [{ ...tool(`t${nth}`), description: pad }], nextCursor: `${nth}` }),
      ),
    );
    const long = await scanAt(server.url);
    expect([long.scan.tools?.length, server.count('tools/list')]).toEqual([5, 6]);
    expect(long.told).toContainEqual(expect.stringMatching(warning));
    // Three bytes each, whatever a program counts them as.
    const wide = closing(
      await startScripted((_, __, nth) =>
        JSON.stringify({
          tools: [{ ...tool(`t${nth}`), description: '語'.repeat(1024 * 1024) }],
          nextCursor: `${nth}`,
        }),
      ),
    );
    expect([(await scanAt(wide.url)).scan.tools?.length, wide.count('tools/list')]).toEqual([5, 6]);
  });

  const deep = (levels: number, of = '[]') => of[0].repeat(levels) + of[1].repeat(levels);

  it('has a tool that is nested too deeply left out, and named', async () => {
    for (const text of [
      deep(96),
      deep(200),
      deep(900),
      `{"a":${deep(200)}}`,
      `[${'{"a":'.repeat(200)}1${'}'.repeat(200)}]`,
    ]) {
      const tooDeep = `{"name":"odd","inputSchema":{"type":"object","default":${text}}}`;
      const server = closing(await startScripted(() => `{"tools":[${tooDeep},{"name":"sound"}]}`));
      const { scan, told: lines } = await scanAt(server.url);
      expect([text, scan.tools]).toEqual([text, [{ name: 'sound' }]]);
      expect(lines).toContainEqual(expect.stringMatching(/^Left out .*"odd".*nested deeper than/));
    }
  });
});

describe('a server that cannot be scanned', () => {
  it('nests an item deeper than anybody could read', async () => {
    const deep = '['.repeat(100_000) + ']'.repeat(100_000);
    const server = closing(await startScripted(() => `{"tools":[{"name":"deep","inputSchema":{"default":${deep}}}]}`));
    expect((await failing(server.url)).message).toContain('sent a response with more than 1000 nested levels');
  });

  it('refuses a list, or returns something else', async () => {
    const refusing = await declaring({ tools: {} }, ({ id }, res) =>
      sendJson(res, `{"jsonrpc":"2.0","id":${id},"error":{"code":-32000,"message":"No tools today"}}`),
    );
    expect((await failing(refusing.url)).message).toBe('The MCP server refused to list its tools: No tools today');
    for (const result of ['{}', '[]', '"x"', '{"tools":{}}', '{"tools":null}']) {
      const server = closing(await startScripted(() => result));
      expect((await failing(server.url)).message).toBe('The MCP server listed its tools in a form that is not MCP.');
    }
  });

  it('is too slow: each response, or all of them together', async () => {
    const silent = closing(await startScripted(() => undefined));
    expect(await failing(silent.url, { timeoutMs: 300 })).toBeInstanceOf(UpstreamTimeoutError);

    const dripping = closing(
      await startScripted(({ id }, res, nth) => {
        const page = JSON.stringify({ tools: [], nextCursor: `${nth}` });
        setTimeout(() => sendJson(res, `{"jsonrpc":"2.0","id":${id},"result":${page}}`), 20);
      }),
    );
    const from = performance.now();
    expect(await failing(dripping.url, { timeoutMs: 400 })).toBeInstanceOf(UpstreamTimeoutError);
    expect(performance.now() - from).toBeLessThan(20_000);

    const opening = await start({ delayInitializeMs: 3_000 });
    expect(await failing(opening.url, { timeoutMs: 200 })).toBeInstanceOf(UpstreamTimeoutError);
  });

  it('is not an MCP server, or requires authorization', async () => {
    expect(await failing(closing(await startFaulty('needs-auth')).url)).toBeInstanceOf(UpstreamAuthRequiredError);
    for (const url of [deadHost, await refusedPort(), closing(await startFaulty('html')).url]) {
      expect(await failing(url)).toBeInstanceOf(UpstreamError);
    }
  });
});

describe('the card a server publishes', () => {
  const card = { serverInfo: { name: 'card', version: '1' }, tools: [{ name: 'now' }], authentication: { x: 1 } };
  const options = { timeoutMs: 20_000 };

  async function site(listener: RequestListener): Promise<{ origin: string; paths: string[] }> {
    const paths: string[] = [];
    const server = createServer((req, res) => {
      paths.push(`${req.method} ${req.url}`);
      listener(req, res);
    });
    const port = await listen(server);
    closing({ close: () => shut(server) });
    return { origin: `http://127.0.0.1:${port}`, paths };
  }

  it('is read at the origin, also of a server that refuses scans', async () => {
    const blocked = await site((req, res) =>
      req.method === 'GET' ? sendJson(res, JSON.stringify(card)) : sendJson(res, '{"error":"no"}', 401),
    );
    expect(await failing(`${blocked.origin}/deep/mcp`)).toBeInstanceOf(UpstreamAuthRequiredError);
    expect(await fetchServerCard(egress, `${blocked.origin}/deep/mcp?key=secret#x`, options)).toEqual(card);
    expect(blocked.paths.at(-1)).toBe('GET /.well-known/mcp/server-card.json');
  });

  it('is null when there is none', async () => {
    for (const kind of ['html', 'not-found', 'needs-auth', 'empty', 'garbage', 'not-rpc', 'hangs-up'] as const) {
      expect(await fetchServerCard(egress, closing(await startFaulty(kind)).url, options)).toBeNull();
    }
    expect(await fetchServerCard(egress, deadHost, options)).toBeNull();
    expect(await fetchServerCard(egress, await refusedPort(), options)).toBeNull();
    expect(await fetchServerCard(egress, 'no url', options)).toBeNull();
    const wrong = await site((_, res) => sendJson(res, JSON.stringify({ serverInfo: { name: 'no version' } })));
    expect(await fetchServerCard(egress, wrong.origin, options)).toBeNull();
  });

  it('is not waited for longer than asked, and not read beyond 1 MB', async () => {
    for (const kind of ['silent', 'slow-body', 'too-big'] as const) {
      const from = performance.now();
      expect(await fetchServerCard(egress, closing(await startFaulty(kind)).url, { timeoutMs: 500 })).toBeNull();
      expect(performance.now() - from).toBeLessThan(20_000);
    }
    const sized = (bytes: number) =>
      site((_, res) => sendJson(res, JSON.stringify({ ...card, pad: 'x'.repeat(bytes) })));
    expect(await fetchServerCard(egress, (await sized(1_000_000)).origin, options)).not.toBeNull();
    expect(await fetchServerCard(egress, (await sized(1_048_576)).origin, options)).toBeNull();
  });

  it('may move within its origin, never to another one', async () => {
    const moved = await site((req, res) => {
      if (req.url === '/card') return sendJson(res, JSON.stringify(card));
      res.writeHead(302, { location: '/card' }).end();
    });
    expect(await fetchServerCard(egress, moved.origin, options)).toEqual(card);
    const other = await site((_, res) => res.writeHead(301, { location: `${moved.origin}/card` }).end());
    const before = moved.paths.length;
    expect(await fetchServerCard(egress, other.origin, options)).toBeNull();
    expect(moved.paths).toHaveLength(before);
    const round = await site((req, res) => res.writeHead(307, { location: req.url }).end());
    expect(await fetchServerCard(egress, round.origin, options)).toBeNull();
    expect(round.paths).toHaveLength(4);
  });

  it('is not fetched from addresses the egress policy closes', async () => {
    const internal = await site((_, res) => sendJson(res, JSON.stringify(card)));
    expect(await fetchServerCard(strict, internal.origin, options)).toBeNull();
    expect(internal.paths).toEqual([]);
  });
});
