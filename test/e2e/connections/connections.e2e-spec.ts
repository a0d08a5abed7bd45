// Also run with the queue on Redis by test:long: jobs, and messages between processes.
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect } from '@jest/globals';
import { testAccount, testApp, uniqueName, type TestApp } from '../../support/app.js';
import { request, send, times, toolCall } from '../../support/mcp/calls.js';
import { expectAlike, notFound } from '../../support/database/connection-rows.js';
import { createConnection, createNamespace } from '../../support/factories.js';
import { startFaulty } from '../../support/special-upstreams/faulty-upstreams.js';
import { until } from '../../support/until.js';
import { closing, start } from '../../support/upstream/upstream-clients.js';
import { listen, shut } from '../../support/upstream/upstream-net.js';
import { verifies } from '../../support/verifies.js';

/** Fields of a connection that the tests read. */
interface ConnectionBody {
  [field: string]: unknown;
  iconUrl: string | null;
  serverInfo: { [field: string]: unknown; icons?: unknown[] };
}

const isoUtc = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const app = testApp({ UPSTREAM_CONNECT_TIMEOUT_MS: '5000' });
const owner = testAccount(app);
const other = testAccount(app);

/** The JSON-RPC method of a request an upstream saw. */
function rpcMethod(body: unknown): string | undefined {
  return (body as { method?: string } | undefined)?.method;
}

/** How many connections a namespace holds. */
async function count(namespace: string): Promise<number> {
  const response = await app.as(owner).get(`/connect/${namespace}`).expect(200);
  return (response.body as { connections: unknown[] }).connections.length;
}

/** Expects this body to be refused by POST and by PUT of a new id, and nothing to be stored. */
async function expectRefused(body: object, message: RegExp, messageOfPut = message): Promise<void> {
  const namespace = await createNamespace(app, owner);
  const post = await app.as(owner).post(`/connect/${namespace}`, body);
  const put = await app.as(owner).put(`/connect/${namespace}/mine`, body);
  for (const [response, sentence] of [[post, message] as const, [put, messageOfPut] as const]) {
    expect([body, response.status]).toEqual([body, 400]);
    expect(response.body).toEqual({ error: 'validation_error', message: expect.stringMatching(sentence) });
  }
  expect(await count(namespace)).toBe(0);
}

/** Expects this body to be taken by POST; returns the connection. */
async function expectTaken(body: object): Promise<ConnectionBody> {
  const { url } = await start();
  const namespace = await createNamespace(app, owner);
  const response = await app.as(owner).post(`/connect/${namespace}`, { mcpUrl: url, ...body });
  expect([body, response.status]).toEqual([body, 201]);
  return response.body as ConnectionBody;
}

describe('POST /connect/{namespace}', () => {
  verifies(
    [
      'connection:create:created',
      'connection:create:transport-default',
      'connection:create:name-default',
      'connection:target:custom-url',
      'connection:field:id',
      'connection:field:name',
      'connection:field:mcp-url',
      'connection:field:metadata-empty',
      'connection:field:transport-http',
      'connection:field:status',
      'connection:state:connected',
    ],
    'a URL alone creates a connection with every field, found by get and list, after a real initialization',
    async () => {
      const upstream = await start();
      const namespace = await createNamespace(app, owner);
      const created = await app.as(owner).post(`/connect/${namespace}`, { mcpUrl: upstream.url });
      expect(created.status).toBe(201);
      const { connectionId } = created.body as { connectionId: string };
      expect(created.body).toEqual({
        connectionId: expect.stringMatching(/^[a-z]+-[a-z0-9]{6}$/),
        name: connectionId,
        mcpUrl: upstream.url,
        metadata: {},
        transport: 'http',
        iconUrl: null,
        createdAt: expect.stringMatching(isoUtc),
        status: {
          state: 'connected',
          reason: 'ok',
          since: expect.stringMatching(isoUtc),
          lastOkAt: expect.stringMatching(isoUtc),
        },
        serverInfo: { name: 'upstream', title: 'Test upstream', version: '1.0.0' },
      });
      expect(upstream.count('initialize')).toBe(1);
      expect(upstream.count('notifications/initialized')).toBe(1);
      const got = await app.as(owner).get(`/connect/${namespace}/${connectionId}`);
      const listed = await app.as(owner).get(`/connect/${namespace}`);
      expect(got.body).toEqual(created.body);
      expect(listed.body).toEqual({ connections: [created.body], nextCursor: null });
      // Also by the short form, and behind a proxy that adds a prefix.
      for (const asked of [`/connect/${namespace}`, `/${namespace}`, `/prefix/connect/${namespace}`]) {
        const { pathname } = new URL(created.headers.location, `${app.url}${asked}`);
        expect(pathname).toBe(`${asked}/${connectionId}`);
      }
      const called = await app.as(owner).post(`/connect/${namespace}/${connectionId}/.tools/echo`, { message: 'hi' });
      expect(called.body).toEqual({ content: [{ type: 'text', text: 'hi' }] });
    },
  );

  verifies(
    ['connection:create:duplicates', 'connection:id:generated'],
    'each POST to one URL creates a connection with an id of its own',
    async () => {
      const { url } = await start();
      const namespace = await createNamespace(app, owner);
      const answers = await Promise.all(times(20, () => app.as(owner).post(`/connect/${namespace}`, { mcpUrl: url })));
      expect(answers.map(({ status }) => status)).toEqual(times(20, () => 201));
      const ids = answers.map(({ body }) => (body as { connectionId: string }).connectionId);
      expect(new Set(ids).size).toBe(20);
      expect(await count(namespace)).toBe(20);
    },
  );

  verifies('connection:lives-in-namespace', 'one id in two namespaces is two connections', async () => {
    const { url } = await start();
    const [one, two] = [await createNamespace(app, owner), await createNamespace(app, owner)];
    for (const name of [one, two]) {
      await app.as(owner).put(`/connect/${name}/same`, { mcpUrl: url, name }).expect(201);
    }
    await app
      .as(owner)
      .put(`/connect/${one}/same`, { metadata: { changed: true } })
      .expect(200);
    expect((await app.as(owner).get(`/connect/${two}/same`)).body).toMatchObject({ name: two, metadata: {} });
    await app.as(owner).delete(`/connect/${one}/same`).expect(200);
    expect((await app.as(owner).get(`/connect/${two}/same`)).status).toBe(200);
  });

  verifies('connection:field:metadata', 'metadata is returned as it was sent', async () => {
    const metadata = {
      text: 'x',
      empty: '',
      '': 'the empty key',
      number: -1.5e-7,
      big: 9007199254740991,
      yes: true,
      no: false,
      nothing: null,
      list: [1, 'a', null, [], {}, [[{ deep: [false] }]]],
      nested: { 'key with "quotes"': { 'ünï.cødé/🚀': ['\n\t\\', '日本'] } },
      toString: 'a name every object has',
      hasOwnProperty: { valueOf: 1, then: 2, length: 3 },
      json: '{"a":1}',
    };
    const { url } = await start();
    const { path, body } = await createConnection(app, owner, { mcpUrl: url, metadata });
    expect(body.metadata).toEqual(metadata);
    expect((await app.as(owner).get(path)).body).toMatchObject({ metadata });
    const changed = { ...metadata, list: [metadata.list] };
    expect((await app.as(owner).put(path, { metadata: changed })).body).toMatchObject({ metadata: changed });
  });

  verifies(
    'connection:field:mock-absent',
    'no connection has a `mock`, also when one was switched off by name',
    async () => {
      for (const body of [{}, { mock: { enabled: false } }, { mock: { enabled: false, scenario: 'A full inbox' } }]) {
        expect(await expectTaken(body)).not.toHaveProperty('mock');
      }
    },
  );

  verifies('connection:create:transport-invalid', 'an unknown transport is refused', async () => {
    for (const transport of ['stdio', 'HTTP', '', 5, null, ['http']]) {
      await expectRefused({ mcpUrl: 'http://127.0.0.1:1/mcp', transport }, /^transport must be one of/);
    }
    expect(await expectTaken({ transport: 'http' })).toMatchObject({ transport: 'http' });
  });

  verifies('connection:create:mcp-url-invalid', 'anything but an absolute http or https URL is refused', async () => {
    for (const mcpUrl of [
      ...['', '/mcp', 'mcp', '//example.com/mcp', 'example.com', 'http://', 'http://[::1', 'http://a b/', null, 5, {}],
      ...['ftp://example.com/mcp', 'file:///etc/passwd', 'ws://example.com/', 'javascript:alert(1)', 'data:,x'],
      ...[
        'http://user:secret@example.com/',
        'http://example.com/#part',
        'http://example.com\\mcp',
        ' http://a.example/',
      ],
      ...['http://example.com/\ud800', `http://example.com/${'x'.repeat(2048)}`],
    ]) {
      await expectRefused({ mcpUrl }, /^mcpUrl must /);
    }
  });

  verifies(
    'connection:create:name-length',
    'a name of 1 and of 255 characters is taken, 0 and 256 are refused',
    async () => {
      for (const name of ['x', 'ü'.repeat(255)]) expect(await expectTaken({ name })).toMatchObject({ name });
      for (const name of ['', 'x'.repeat(256), null, 5, ['x'], 'a\0b', 'a\nb', 'a\ud800']) {
        await expectRefused({ mcpUrl: 'http://127.0.0.1:1/mcp', name }, /^name must /);
      }
    },
  );

  verifies(
    'connection:create:metadata-invalid',
    'metadata that is not an object, or cannot be stored, is refused',
    async () => {
      for (const metadata of [
        null,
        'x',
        5,
        true,
        [],
        [{ a: 1 }],
        { a: '\0' },
        { 'a\ud800': 1 },
        { a: 'x'.repeat(16384) },
      ]) {
        await expectRefused({ mcpUrl: 'http://127.0.0.1:1/mcp', metadata }, /^metadata must /);
      }
      const namespace = await createNamespace(app, owner);
      const deep = `{"mcpUrl":"http://127.0.0.1:1/mcp","metadata":${'{"a":'.repeat(500)}1${'}'.repeat(500)}}`;
      const endless = '{"mcpUrl":"http://127.0.0.1:1/mcp","metadata":{"n":1e400}}';
      for (const body of [deep, endless]) {
        const { status, body: answer } = await send(app, owner, `/connect/${namespace}`, body);
        expect([status, answer.error]).toEqual([400, 'validation_error']);
      }
      expect(await count(namespace)).toBe(0);
    },
  );

  verifies(
    'connection:create:headers-invalid',
    'headers that HTTP forbids, and headers that the service sets, are refused',
    async () => {
      for (const headers of [
        ...[null, 'x', 5, ['x'], { 'X-A': 5 }, { 'X-A': null }, { 'X-A': ['a'] }, { 'X-A': { a: 'b' } }],
        ...[{ '': 'a' }, { 'X A': 'a' }, { 'X:A': 'a' }, { 'X-Ä': 'a' }, { 'X-A\r\nX-B': 'a' }, { 'X-A\0': 'a' }],
        ...[
          { 'X-A': '' },
          { 'X-A': 'a\r\nX-B: b' },
          { 'X-A': 'a\nb' },
          { 'X-A': 'a\0b' },
          { 'X-A': 'ä' },
          { 'X-A': ' a' },
        ],
        ...[
          { Host: 'a.example' },
          { 'content-length': '5' },
          { 'Mcp-Session-Id': 'x' },
          { 'Transfer-Encoding': 'chunked' },
        ],
        ...[{ 'X-A': 'a', 'x-a': 'b' }, { 'X-A': 'x'.repeat(8192) }],
      ]) {
        await expectRefused({ mcpUrl: 'http://127.0.0.1:1/mcp', headers }, /^headers must /);
      }
    },
  );

  verifies('connection:create:server-length', 'a server of 0 and of 256 characters is refused', async () => {
    for (const server of ['', 'a'.repeat(256)]) {
      await expectRefused({ server }, /server must (?:not be empty|have at most 255 characters)/);
    }
    for (const server of ['a', 'a'.repeat(255)]) await expectRefused({ server }, /^The registry has no server/);
  });

  verifies('connection:create:server-pattern', 'a server that is no qualified name is refused', async () => {
    for (const server of [
      ...[
        '@',
        'a/',
        '/a',
        'a//b',
        'a/b/c',
        '-a',
        '_a',
        'a/-b',
        '@@a',
        'a@b',
        'a b',
        'a.b',
        'ä',
        'a/b\n',
        5,
        null,
        ['a'],
      ],
    ]) {
      await expectRefused({ server }, /server must be a (?:qualified name|string)/);
    }
    for (const server of ['@acme/weather', 'acme', 'A_1-b/C_2-d', '@0/0']) {
      await expectRefused({ server }, /^The registry has no server/);
    }
  });

  verifies(
    'connection:create:mock-invalid',
    'a mock without a boolean or with a scenario that is not text is refused',
    async () => {
      for (const mock of [
        ...[
          null,
          true,
          'x',
          [],
          {},
          { enabled: 'true' },
          { enabled: 1 },
          { enabled: null },
          { scenario: 'A full inbox' },
        ],
        ...[
          { enabled: true, scenario: 5 },
          { enabled: false, scenario: null },
          { enabled: false, scenario: ['x'] },
        ],
        { enabled: true, other: 1 },
      ]) {
        await expectRefused({ server: 'acme/weather', mock }, /mock/);
      }
    },
  );

  verifies('connection:create:mock-registry-only', 'an enabled mock of a custom URL is refused', async () => {
    await expectRefused(
      { mcpUrl: 'http://127.0.0.1:1/mcp', mock: { enabled: true, scenario: 'A full inbox' } },
      /^mock is for registry servers only/,
    );
  });

  verifies('connection:create:one-target', 'no target and more than one are refused', async () => {
    const [mcpUrl, server, source] = ['http://127.0.0.1:1/mcp', 'acme/weather', { kind: 'module' }];
    const nothing = /^There is no connection mine; to create it send exactly one of mcpUrl, server and source\.$/;
    const none = /^send exactly one of mcpUrl, server and source$/;
    for (const body of [{}, { name: 'x' }, { transport: 'http' }]) await expectRefused(body, none, nothing);
    for (const targets of [
      { mcpUrl, server },
      { mcpUrl, source },
      { server, source },
      { mcpUrl, server, source },
    ]) {
      await expectRefused(targets, /^send exactly one of mcpUrl, server and source$/);
      await expectRefused({ ...targets, transport: 'http' }, /^send exactly one of mcpUrl, server and source$/);
    }
    await expectRefused({ transport: 'uplink', mcpUrl }, /^transport "uplink" accepts no mcpUrl$/);
  });

  verifies('connection:create:unknown-key', 'an unknown key is refused with its name', async () => {
    const mcpUrl = 'http://127.0.0.1:1/mcp';
    for (const key of ['url', 'connectionId', 'status']) {
      await expectRefused(
        { mcpUrl, [key]: 'x' },
        new RegExp(`^There is no member "${key}": this body takes .*mcpUrl, server`),
      );
    }
    for (const [key, near] of Object.entries({ header: 'headers', MCPURL: 'mcpUrl' })) {
      const message = new RegExp(`^There is no member "${key}": did you mean "${near}"\\?$`);
      await expectRefused({ mcpUrl, [key]: 'x' }, message);
    }
    const { url } = await start();
    const { path } = await createConnection(app, owner, { mcpUrl: url });
    const response = await app.as(owner).put(path, { nmae: 'x' });
    expect([response.status, response.body]).toEqual([
      400,
      { error: 'validation_error', message: 'There is no member "nmae": did you mean "name"?' },
    ]);
  });

  verifies('connection:create:empty-body', 'no body and one of no length are no fields', async () => {
    const { url } = await start();
    const { path, namespace, body } = await createConnection(app, owner, { mcpUrl: url });
    for (const given of [undefined, '', '{}']) {
      const created = await send(app, owner, `/connect/${namespace}`, given);
      expect([created.status, created.body]).toEqual([
        400,
        { error: 'validation_error', message: 'send exactly one of mcpUrl, server and source' },
      ]);
      const changed = await send(app, owner, path, given, { method: 'PUT' });
      expect(changed.status).toBe(200);
      expect(changed.body).toMatchObject({ connectionId: body.connectionId, name: body.name, mcpUrl: url });
    }
  });

  verifies(
    ['connection:create:not-found', 'connection:create:foreign'],
    'an unknown and a foreign namespace have the same answer and get no connection',
    async () => {
      const upstream = await start();
      const foreign = await createNamespace(app, owner);
      const body = { mcpUrl: upstream.url };
      const answers = [
        await app.as(other).post(`/connect/${foreign}`, body),
        await app.as(other).post(`/connect/${uniqueName('ns')}`, body),
        await app.as(other).post(`/connect/${foreign}`, { nonsense: true }),
        await app.as(app.operator).post(`/connect/${foreign}`, body),
      ];
      expect([answers[0].status, answers[0].body]).toEqual([404, notFound]);
      expectAlike(...answers);
      expect(await count(foreign)).toBe(0);
      expect(upstream.requests).toHaveLength(0);
    },
  );
});

describe('the server info of a server', () => {
  const info = {
    name: 'acme',
    version: '2.1',
    title: 'Acme',
    websiteUrl: 'https://acme.example',
    description: 'Sells ü',
  };
  const icons = [
    { src: 'https://acme.example/i.svg', mimeType: 'image/svg+xml', sizes: ['any'] },
    { src: 'https://acme.example/i.png', mimeType: 'image/png', sizes: ['48x48', '96x96'] },
  ];

  /** The connection to an upstream that says this. */
  async function connected(serverInfo: Record<string, unknown>): Promise<ConnectionBody> {
    const { url } = await start({ serverInfo: { title: undefined, ...serverInfo } });
    const { path, body } = await createConnection(app, owner, { mcpUrl: url });
    expect(body.status).toMatchObject({ state: 'connected' });
    expect((await app.as(owner).get(path)).body).toEqual(body);
    return body as unknown as ConnectionBody;
  }

  verifies(
    'connection:field:server-info',
    'its name, version, title, website and description are returned',
    async () => {
      expect((await connected(info)).serverInfo).toEqual(info);
      expect((await connected({ name: 'acme', version: '' })).serverInfo).toEqual({ name: 'acme', version: '' });
    },
  );

  verifies('connection:field:server-info-icons', 'its icons are returned with source, type and sizes', async () => {
    expect((await connected({ ...info, icons })).serverInfo).toEqual({ ...info, icons });
  });

  verifies('connection:field:icon-url', 'its first icon a browser can load is `iconUrl`, else null', async () => {
    const odd = { src: 'javascript:alert(1)' };
    expect(await connected({ icons: [odd, ...icons] })).toMatchObject({ iconUrl: icons[0].src });
    expect(await connected({ icons: [{ src: 'data:image/png;base64,AAAA' }] })).toMatchObject({
      iconUrl: 'data:image/png;base64,AAAA',
    });
    for (const none of [undefined, [], [odd], [{ src: 'file:///etc/passwd' }]]) {
      expect(await connected({ icons: none })).toMatchObject({ iconUrl: null });
    }
  });

  verifies(
    ['connection:field:server-info', 'connection:field:server-info-icons', 'connection:field:icon-url'],
    'nonsense in it neither fails the connection nor reaches the caller in another type',
    async () => {
      for (const nonsense of [null, 'x', 5, { a: 1 }, [null], [5], [[]], [{ src: 5 }], [{ sizes: ['any'] }]]) {
        const { iconUrl, serverInfo } = await connected({ icons: nonsense });
        expect(iconUrl).toBeNull();
        expect(serverInfo.icons ?? []).toEqual([]);
      }
      const mixed = [
        { src: 'https://acme.example/i.png', mimeType: 5, sizes: '48x48 96x96' },
        { src: 'b', sizes: [5, 'any'] },
      ];
      expect((await connected({ icons: mixed })).serverInfo.icons).toEqual([
        { src: 'https://acme.example/i.png', sizes: ['48x48', '96x96'] },
        { src: 'b', sizes: ['any'] },
      ]);
      const { serverInfo } = await connected({
        name: 'a\0b',
        version: 'a\ud800b',
        title: 5,
        description: {},
        more: '\0',
      });
      expect(serverInfo).toEqual({ name: 'a\ufffdb', version: 'a\ufffdb' });
    },
  );

  verifies(
    'connection:field:server-info-absent',
    'it is absent until an initialization succeeded, and stays then',
    async () => {
      const header = { 'x-key': 'let-me-in' };
      const upstream = await start({ requireHeaders: header });
      const { path, body } = await createConnection(app, owner, { mcpUrl: upstream.url });
      expect(body).not.toHaveProperty('serverInfo');
      expect((await app.as(owner).get(path)).body).not.toHaveProperty('serverInfo');
      const { body: known } = await app.as(owner).put(path, { headers: header });
      expect(known).toMatchObject({ serverInfo: { name: 'upstream' }, status: { state: 'connected' } });
      const { body: lost } = await app.as(owner).put(path, { headers: {} });
      expect(lost).toMatchObject({ serverInfo: { name: 'upstream' }, status: { state: 'auth_required' } });
    },
  );
});

describe('PUT /connect/{namespace}/{connectionId}', () => {
  verifies(
    ['connection:put:created', 'connection:id:developer-defined'],
    'creates a connection with a free id',
    async () => {
      const { url } = await start();
      const namespace = await createNamespace(app, owner);
      const response = await app.as(owner).put(`/connect/${namespace}/My.conn_1-x`, { mcpUrl: url });
      expect(response.status).toBe(201);
      expect(response.body).toMatchObject({ connectionId: 'My.conn_1-x', name: 'My.conn_1-x', mcpUrl: url });
      expect((await app.as(owner).get(`/connect/${namespace}/My.conn_1-x`)).body).toEqual(response.body);
    },
  );

  verifies(
    ['connection:put:updated', 'connection:field:created-at'],
    'an existing connection needs no target, keeps what is omitted, and its birthday',
    async () => {
      const upstream = await start({ requireHeaders: { 'x-key': 'let-me-in' } });
      const { path, body } = await createConnection(app, owner, {
        mcpUrl: upstream.url,
        name: 'First',
        metadata: { a: 1 },
        headers: { 'X-Key': 'let-me-in' },
      });
      expect(body.createdAt).toMatch(isoUtc);
      const kept = {
        connectionId: body.connectionId,
        mcpUrl: upstream.url,
        createdAt: body.createdAt,
        transport: 'http',
      };
      const put = async (given: object) => {
        const response = await app.as(owner).put(path, given);
        expect(response.status).toBe(200);
        expect((await app.as(owner).get(path)).body).toEqual(response.body);
        return response.body as Record<string, unknown>;
      };
      const status = expect.objectContaining({ state: 'connected' });
      expect(await put({})).toMatchObject({ ...kept, name: 'First', metadata: { a: 1 }, status });
      expect(await put({ name: 'Second' })).toMatchObject({ ...kept, name: 'Second', metadata: { a: 1 }, status });
      expect(await put({ metadata: { b: 2 } })).toMatchObject({ ...kept, name: 'Second', status });
      expect(await put({ mcpUrl: upstream.url, transport: 'http' })).toMatchObject({
        ...kept,
        metadata: { b: 2 },
        status,
      });
    },
  );

  verifies(
    'connection:put:replaces',
    'what is given replaces the whole: nothing of the old metadata and headers stays',
    async () => {
      const upstream = await start();
      const { path } = await createConnection(app, owner, {
        mcpUrl: upstream.url,
        metadata: { a: 1, nested: { b: 2 } },
        headers: { 'X-Old': 'old', 'X-Both': 'old' },
      });
      const replaced = await app.as(owner).put(path, { metadata: { nested: { c: 3 } }, headers: { 'x-both': 'new' } });
      expect(replaced.body).toMatchObject({ metadata: { nested: { c: 3 } } });
      expect((replaced.body as { metadata: object }).metadata).toEqual({ nested: { c: 3 } });
      const { headers } = upstream.requests.at(-1) ?? {};
      expect([headers?.['x-old'], headers?.['x-both']]).toEqual([undefined, 'new']);
      const cleared = await app.as(owner).put(path, { metadata: {}, headers: {} });
      expect((cleared.body as { metadata: object }).metadata).toEqual({});
      expect(upstream.requests.at(-1)?.headers).not.toHaveProperty('x-both');
    },
  );

  verifies(
    ['connection:put:replaces', 'channel:headers-changed'],
    'changed headers reach the next call, within 5 s also in another process',
    async () => {
      const second = await app.sibling();
      try {
        const upstream = await start({ sessions: true });
        const { path } = await createConnection(app, owner, { mcpUrl: upstream.url, headers: { 'X-Key': 'old' } });
        const call = async (process: TestApp) => {
          await process.as(owner).post(`${path}/.tools/echo`, { message: 'hi' }).expect(200);
          return upstream.requests.filter(({ body }) => rpcMethod(body) === 'tools/call').at(-1)?.headers['x-key'];
        };
        expect([await call(app), await call(second)]).toEqual(['old', 'old']);
        await app
          .as(owner)
          .put(path, { headers: { 'X-Key': 'new' } })
          .expect(200);
        expect(await call(app)).toBe('new');
        await until(async () => (await call(second)) === 'new', 'the second process sends the new header');
        expect([await call(app), await call(second)]).toEqual(['new', 'new']);
        await upstream.waitFor(({ sessions }) => sessions.size === 2);
      } finally {
        await second.close();
      }
    },
  );

  verifies(
    'connection:put:url-conflict',
    'rejects another URL with 409, not to be retried, and changes nothing',
    async () => {
      const [upstream, elsewhere] = [await start(), await start()];
      const { path, body } = await createConnection(app, owner, { mcpUrl: upstream.url, name: 'First' });
      const response = await app
        .as(owner)
        .put(path, { mcpUrl: elsewhere.url, name: 'Second', headers: { 'X-Key': 'leak' } });
      expect(response.status).toBe(409);
      expect(response.headers['x-should-retry']).toBe('false');
      expect(response.body).toEqual({
        error: 'conflict',
        message: expect.stringContaining('delete it and create it again'),
      });
      expect((await app.as(owner).get(path)).body).toEqual(body);
      await app.as(owner).post(`${path}/.tools/echo`, { message: 'hi' }).expect(200);
      expect(upstream.requests.at(-1)?.headers).not.toHaveProperty('x-key');
      expect(elsewhere.requests).toHaveLength(0);
      expect((await app.as(owner).put(path, { transport: 'uplink' })).status).toBe(409);
    },
  );

  verifies('connection:put:id-pattern', 'an id outside the pattern is refused, both ends of it are taken', async () => {
    const { url } = await start();
    const namespace = await createNamespace(app, owner);
    const put = (id: string) => send(app, owner, `/connect/${namespace}/${id}`, { mcpUrl: url }, { method: 'PUT' });
    for (const id of [
      ...[
        '.hidden',
        '%2Ehidden',
        '.tools',
        'a%20b',
        'a%2Fb',
        'a%00b',
        'a%0A',
        '%C3%A4',
        'a:b',
        'a@b',
        'a~b',
        'a+b',
        '%25',
      ],
      'x'.repeat(256),
    ]) {
      const { status, body } = await put(id);
      expect([id, status, body]).toEqual([
        id,
        400,
        { error: 'validation_error', message: expect.stringMatching(/^connectionId must be/) },
      ]);
    }
    for (const id of ['x', 'x'.repeat(255), '-', '_.', '0', 'a%2Db']) expect((await put(id)).status).toBe(201);
    expect(await count(namespace)).toBe(6);
    expect((await app.as(owner).get(`/connect/${namespace}/a-b`)).status).toBe(200);
  });

  verifies('connection:put:concurrent', 'creates one connection for concurrent PUTs of one new id', async () => {
    const second = await app.sibling();
    try {
      const { url } = await start();
      const namespace = await createNamespace(app, owner);
      for (const round of times(5, String)) {
        const id = uniqueName(`round${round}`);
        const answers = await Promise.all(
          times(20, (i) =>
            (i % 2 === 0 ? app : second).as(owner).put(`/connect/${namespace}/${id}`, { mcpUrl: url, metadata: { i } }),
          ),
        );
        const statuses = answers.map(({ status }) => status).sort();
        expect(statuses).toEqual([...times(19, () => 200), 201]);
        const rows: unknown[] = await app.database.query('SELECT 1 FROM connections WHERE connection_id = $1', [id]);
        expect(rows).toHaveLength(1);
      }
    } finally {
      await second.close();
    }
  });

  verifies(
    'connection:put:foreign',
    'returns the response of an unknown namespace for a foreign one, and leaves its connection unchanged',
    async () => {
      const upstream = await start();
      const { path, namespace, body } = await createConnection(app, owner, { mcpUrl: upstream.url });
      const before = upstream.requests.length;
      const change = { name: 'Mine now', headers: { 'X-Key': 'theirs' } };
      const answers = [
        await app.as(other).put(path, change),
        await app.as(other).put(`/connect/${namespace}/${uniqueName()}`, { mcpUrl: upstream.url }),
        await app.as(other).put(`/connect/${uniqueName('ns')}/${uniqueName()}`, { mcpUrl: upstream.url }),
        await app.as(app.operator).put(path, change),
      ];
      expect([answers[0].status, answers[0].body]).toEqual([404, notFound]);
      expectAlike(...answers);
      expect((await app.as(owner).get(path)).body).toEqual(body);
      expect(await count(namespace)).toBe(1);
      expect(upstream.requests).toHaveLength(before);
    },
  );
});

describe('GET /connect/{namespace}/{connectionId}', () => {
  verifies('connection:get:found', 'a connection is returned as it was created', async () => {
    const { url } = await start();
    const { path, body } = await createConnection(app, owner, { mcpUrl: url, name: 'First', metadata: { a: [1] } });
    const response = await app.as(owner).get(path);
    expect(response.status).toBe(200);
    expect(response.body).toEqual(body);
    expect((await app.as(owner).get(path.replace('/connect', ''))).body).toEqual(body);
  });

  verifies(
    ['connection:get:not-found', 'connection:get:foreign'],
    'an unknown and a foreign connection have the same answer',
    async () => {
      const { url } = await start();
      const { path, namespace } = await createConnection(app, owner, { mcpUrl: url });
      const own = await createNamespace(app, other);
      const answers = [
        await app.as(other).get(path),
        await app.as(other).get(`/connect/${namespace}/${uniqueName()}`),
        await app.as(other).get(`/connect/${uniqueName('ns')}/${uniqueName()}`),
        await app.as(app.operator).get(path),
      ];
      expect([answers[0].status, answers[0].body]).toEqual([404, notFound]);
      expectAlike(...answers);
      // In a namespace of one's own only the hint differs.
      for (const id of [uniqueName(), 'a%00b']) {
        const { status, body } = await app.as(other).get(`/connect/${own}/${id}`);
        expect([status, body]).toEqual([404, notFound]);
      }
    },
  );
});

describe('DELETE /connect/{namespace}/{connectionId}', () => {
  verifies(
    ['connection:delete:deleted', 'connection:delete:not-found'],
    'removes a connection from get, list and calls, and cannot delete it twice',
    async () => {
      const upstream = await start();
      const { path, namespace } = await createConnection(app, owner, { mcpUrl: upstream.url });
      const response = await app.as(owner).delete(path);
      expect([response.status, response.body]).toEqual([200, { success: true }]);
      const before = upstream.requests.length;
      const answers = [
        await app.as(owner).delete(path),
        await app.as(owner).get(path),
        await app.as(owner).post(`${path}/.tools/echo`, { message: 'hi' }),
        await app.as(owner).delete(`/connect/${namespace}/${uniqueName()}`),
        await app.as(owner).delete(`/connect/${namespace}/a%00b`),
      ];
      for (const { status, body } of answers) expect([status, body]).toEqual([404, notFound]);
      expect(await count(namespace)).toBe(0);
      expect(upstream.requests).toHaveLength(before);
      expect((await app.as(owner).put(path, { mcpUrl: upstream.url })).status).toBe(201);
    },
  );

  verifies(
    ['auth:owner:delete-connection', 'connection:delete:not-found'],
    'treats a foreign connection as an unknown one, and keeps it',
    async () => {
      const upstream = await start({ sessions: true });
      const { path } = await createConnection(app, owner, { mcpUrl: upstream.url });
      const answers = [
        await app.as(other).delete(path),
        await app.as(other).delete(`/connect/${uniqueName('ns')}/${uniqueName()}`),
        await app.as(app.operator).delete(path),
      ];
      expect([answers[0].status, answers[0].body]).toEqual([404, notFound]);
      expectAlike(...answers);
      const keyless = await app.as().delete(path);
      expect([keyless.status, keyless.body]).toMatchObject([401, { error: 'unauthorized' }]);
      expect((await app.as(owner).get(path)).status).toBe(200);
      expect(upstream.sessions.size).toBe(1);
    },
  );

  verifies(
    'connection:delete:ends-session',
    'its session ends at the upstream, also those other processes hold, and they stop calling',
    async () => {
      const second = await app.sibling();
      try {
        const headers = { 'X-Key': 'let-me-in' };
        const upstream = await start({ sessions: true, requireHeaders: headers });
        const { path } = await createConnection(app, owner, { mcpUrl: upstream.url, headers });
        const call = (process: TestApp) => process.as(owner).post(`${path}/.tools/echo`, { message: 'hi' });
        expect([(await call(app)).status, (await call(second)).status]).toEqual([200, 200]);
        const sessions = [...upstream.sessions].sort();
        expect(sessions).toHaveLength(2);

        await app.as(owner).delete(path).expect(200);
        const ended = () =>
          upstream.requests
            .filter(({ method }) => method === 'DELETE')
            .map((one) => one.headers['mcp-session-id'])
            .sort();
        // The second process may have heard of it already.
        expect(ended().length).toBeGreaterThan(0);
        await until(async () => (await call(second)).status === 404, 'the second process stops calling');
        await upstream.waitFor(({ sessions: { size } }) => size === 0);
        expect(ended()).toEqual(sessions);
        const before = upstream.requests.length;
        expect([(await call(app)).status, (await call(second)).status]).toEqual([404, 404]);
        expect(upstream.requests).toHaveLength(before);
      } finally {
        await second.close();
      }
    },
  );

  verifies(
    'connection:delete:during-call',
    'a call in flight fails with an error that names the deletion',
    async () => {
      const upstream = await start({ sessions: true });
      const { path } = await createConnection(app, owner, { mcpUrl: upstream.url });
      const call = app
        .as(owner)
        .post(`${path}/.tools/hold`, {})
        .then(({ status, body }) => [status, body]);
      await upstream.waitFor((one) => one.count('tools/call') === 1);
      await app.as(owner).delete(path).expect(200);
      // Real servers break off what runs in a session that is ended.
      await upstream.close();
      expect(await call).toEqual([
        502,
        {
          error: 'upstream_error',
          message:
            'The connection was deleted before the response arrived. ' +
            'Whether the call was carried out is unknown; it was not repeated.',
        },
      ]);
    },
  );

  verifies('connection:delete:upstream-down', 'deletes it although its upstream is dead or silent', async () => {
    const dead = await start({ sessions: true });
    const silent = closing(await startFaulty('silent'));
    const connections = [
      await createConnection(app, owner, { mcpUrl: dead.url }),
      await createConnection(app, owner, { mcpUrl: silent.url }),
      await createConnection(app, owner, { mcpUrl: await deafToDelete() }),
    ];
    expect(connections.map(({ body }) => (body.status as { state: string }).state)).toEqual([
      'connected',
      'error',
      'connected',
    ]);
    await dead.close();
    for (const { path } of connections) {
      const startedAt = Date.now();
      const response = await app.as(owner).delete(path);
      expect([response.status, response.body]).toEqual([200, { success: true }]);
      expect(Date.now() - startedAt).toBeLessThan(30_000);
      expect((await app.as(owner).get(path)).status).toBe(404);
    }
  });
});

/** An upstream that opens sessions and never answers their DELETE. */
async function deafToDelete(): Promise<string> {
  const server = createServer((req, res) => {
    if (req.method === 'DELETE') return;
    void text(req).then((body) => {
      const { id } = JSON.parse(body) as { id?: number };
      if (id === undefined) return res.writeHead(202).end();
      const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'deaf', version: '1' } };
      res.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 'session-of-the-deaf' });
      return res.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    });
  });
  const port = await listen(server);
  closing({ close: () => shut(server) });
  return `http://127.0.0.1:${port}/mcp`;
}

describe('the headers of a connection', () => {
  verifies('connection:create:headers-sent', 'they are sent with every request to its upstream', async () => {
    const headers = { 'X-Api-Key': 'k-1 with blanks', Authorization: 'Bearer upstream-token', Cookie: 'a=b; c=d' };
    const upstream = await start({ sessions: true });
    const { path } = await createConnection(app, owner, { mcpUrl: upstream.url, headers });
    await app.as(owner).get(`${path}/.tools`).expect(200);
    await app.as(owner).post(`${path}/.tools/echo`, { message: 'hi' }).expect(200);
    await send(app, owner, `${path}/mcp`, request(1, 'resources/list'));
    await send(app, owner, `${path}/mcp`, toolCall(2, 'echo', { message: 'hi' }));
    await app.as(owner).delete(path).expect(200);
    const methods = upstream.requests.map(({ method, body }) => rpcMethod(body) ?? method);
    expect(methods).toEqual(
      expect.arrayContaining(['initialize', 'notifications/initialized', 'tools/list', 'tools/call', 'resources/list']),
    );
    expect(methods.at(-1)).toBe('DELETE');
    for (const { headers: sent } of upstream.requests) {
      expect(sent).toMatchObject({
        'x-api-key': 'k-1 with blanks',
        authorization: 'Bearer upstream-token',
        cookie: 'a=b; c=d',
      });
      expect(JSON.stringify(sent)).not.toContain(owner.key);
    }
  });

  verifies(
    'connection:headers:stored-securely',
    'no row of any table holds a value, in no plain encoding',
    async () => {
      const secret = uniqueName('very-secret-header-value');
      const { url } = await start();
      const { path, connectionId } = await createConnection(app, owner, { mcpUrl: url, headers: { 'X-Key': secret } });
      await app
        .as(owner)
        .put(path, { headers: { 'X-Key': secret, 'X-More': `Bearer ${secret}` } })
        .expect(200);
      const [row] = await app.database.query('SELECT * FROM connections WHERE connection_id = $1', [connectionId]);
      expect(typeof row.sealed_headers).toBe('string');

      const encodings = ['utf8', 'base64', 'base64url', 'hex'] as const;
      // Base64 of a text inside another depends on where it stands, so its middle is looked for at all three places.
      const forms = encodings.flatMap((encoding) =>
        ['', ' ', '  '].map((pad) =>
          Buffer.from(pad + secret)
            .toString(encoding)
            .slice(4, -4),
        ),
      );
      const tables: { name: string }[] = await app.database.query(
        `SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables
        WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')`,
      );
      expect(tables.map(({ name }) => name)).toContain('public.connections');
      for (const { name } of tables) {
        const rows: { text: string }[] = await app.database.query(`SELECT t::text AS text FROM ${name} t`);
        for (const { text: stored } of rows) for (const form of forms) expect(stored).not.toContain(form);
      }
    },
  );

  verifies(
    'connection:headers:stored-securely',
    'sealed headers of one connection do not open for another',
    async () => {
      const { url } = await start();
      const rich = await createConnection(app, owner, { mcpUrl: url, headers: { 'X-Key': 'rich' } });
      const poor = await createConnection(app, owner, { mcpUrl: url }, { namespace: rich.namespace });
      await app.database.query(
        `UPDATE connections SET revision = revision + 10, sealed_headers =
         (SELECT sealed_headers FROM connections WHERE connection_id = $1) WHERE connection_id = $2`,
        [rich.connectionId, poor.connectionId],
      );
      expect((await app.as(owner).put(poor.path, {})).status).toBe(500);
    },
  );

  verifies(
    ['connection:headers:never-returned', 'connection:headers:stored-securely'],
    'are neither shown nor stored when an upstream repeats them in its refusal',
    async () => {
      const value = uniqueName('whisper');
      const server = createServer((req, res) => {
        const error = {
          code: -32000,
          message: `Unknown key ${String(req.headers['x-key'])}, not ${req.headers.authorization}`,
        };
        res.writeHead(200, { 'content-type': 'application/json' });
        res.end(JSON.stringify({ jsonrpc: '2.0', id: 1, error }));
      });
      const mcpUrl = `http://127.0.0.1:${await listen(server)}/mcp`;
      closing({ close: () => shut(server) });
      const headers = { 'X-Key': value, Authorization: `Bearer ${value}` };
      const { path, connectionId, body } = await createConnection(app, owner, { mcpUrl, headers });
      expect(body.status).toMatchObject({ state: 'error' });
      const call = await app.as(owner).post(`${path}/.tools/echo`, { message: 'hi' });
      const [row] = await app.database.query<{ text: string }[]>(
        'SELECT c::text AS text FROM connections c WHERE connection_id = $1',
        [connectionId],
      );
      const got = await app.as(owner).get(path);
      for (const text of [JSON.stringify(body), call.text, got.text, row?.text]) expect(text).not.toContain(value);
    },
  );

  verifies('connection:headers:never-returned', 'a connection that has some is shown with no field more', async () => {
    const { url: mcpUrl } = await start();
    const namespace = await createNamespace(app, owner);
    const path = `/connect/${namespace}/mine`;
    const headers = { 'X-Key': 'value' };
    const shown = [
      (await app.as(owner).put(path, { mcpUrl, headers }).expect(201)).body,
      (await app.as(owner).put(path, { headers }).expect(200)).body,
      (await app.as(owner).get(path).expect(200)).body,
      (await app.as(owner).get(`/connect/${namespace}`).expect(200)).body.connections[0],
      (await app.as(owner).post(`/connect/${namespace}`, { mcpUrl, headers }).expect(201)).body,
    ];
    const fields = 'connectionId,createdAt,iconUrl,mcpUrl,metadata,name,serverInfo,status,transport';
    for (const connection of shown) {
      expect(Object.keys(connection).toSorted().join()).toBe(fields);
      expect(Object.keys(connection.status).toSorted().join()).toBe('lastOkAt,reason,since,state');
    }
  });
});

describe('requests about a connection with headers', () => {
  const [name, value] = [uniqueName('x-hush'), uniqueName('whisper')];
  const headers = { [name]: value, Authorization: `Bearer ${value}` };
  /** An operation as documented, its path in the namespace, its body, and the status where it matters. */
  type Request = [operation: string, path: string, body?: object, status?: number];
  const conn = '/connect/{namespace}/{connectionId}';

  const managing = (mcpUrl: string, moveStatus = 409): Request[] => [
    ['POST /connect/{namespace}', '', { mcpUrl, headers }, 201],
    ['POST /connect/{namespace}', '', { headers }, 400],
    [`PUT ${conn}`, '/other', { mcpUrl, headers }, 201],
    [`PUT ${conn}`, '/other', { headers }, 200],
    [`PUT ${conn}`, '/other', { mcpUrl: 'http://127.0.0.1:1/', headers }, moveStatus],
    [`PUT ${conn}`, '/other', { headers, name: '' }, 400],
    [`GET ${conn}`, '/other', undefined, 200],
    ['GET /connect/{namespace}', '', undefined, 200],
    [`DELETE ${conn}`, '/other', undefined, 200],
  ];
  const calling: Request[] = [
    ['GET /connect/{namespace}/.tools', '/.tools', undefined, 200],
    [`GET ${conn}/.tools`, '/mine/.tools'],
    [`GET ${conn}/.tools/{toolPath}`, '/mine/.tools/echo'],
    ...['echo', 'fail', 'rpc_error', 'unknown', 'cut'].map((tool): Request => [
      `POST ${conn}/.tools/{toolPath}`,
      `/mine/.tools/${tool}`,
      { message: 'hi' },
    ]),
    ...['initialize', 'tools/list', 'unknown/method'].map((method): Request => [
      `POST ${conn}/mcp`,
      '/mine/mcp',
      request(1, method),
    ]),
    [`POST ${conn}/mcp`, '/mine/mcp', toolCall(1, 'rpc_error')],
    ['POST /connect/{namespace}/.mcp', '/.mcp', request(1, 'initialize'), 200],
    ['POST /connect/{namespace}/.mcp', '/.mcp', request(1, 'tools/list'), 200],
  ];
  const delivery = { url: 'https://example.com/hook' };
  const secret = `whsec_${Buffer.alloc(24).toString('base64')}`;
  const observing: Request[] = [
    [`GET ${conn}/uplink`, '/mine/uplink'],
    [`PUT ${conn}/recording`, '/mine/recording', { enabled: true }, 200],
    [`POST ${conn}/.tools/{toolPath}`, '/mine/.tools/echo', { message: 'hi' }],
    [`GET ${conn}/recording`, '/mine/recording', undefined, 200],
    [`GET ${conn}/recording/calls`, '/mine/recording/calls', undefined, 200],
    [`GET ${conn}/recording/fixture`, '/mine/recording/fixture', undefined, 200],
    [`DELETE ${conn}/recording`, '/mine/recording', undefined, 200],
    [`POST ${conn}/grants`, '/mine/grants', { account: 'nobody', level: 'call' }, 404],
    [`GET ${conn}/grants`, '/mine/grants', undefined, 200],
    [`DELETE ${conn}/grants/{grantId}`, '/mine/grants/none', undefined, 404],
    [`GET ${conn}/diagnosis`, '/mine/diagnosis', undefined, 200],
    [`GET ${conn}/logs`, '/mine/logs', undefined, 200],
    [`GET ${conn}/.triggers`, '/mine/.triggers'],
    [`GET ${conn}/.triggers/{triggerName}`, '/mine/.triggers/push'],
    [`POST ${conn}/.triggers/{triggerName}`, '/mine/.triggers/push', { params: {}, delivery: { ...delivery, secret } }],
    [`DELETE ${conn}/.triggers/{triggerName}`, '/mine/.triggers/push', { params: {}, delivery }],
  ];

  /** Connects `mine`, whose upstream wants these headers, and sends all requests; no answer may show a header. */
  async function expectSilence(required: Record<string, string>, requests: (mcpUrl: string) => Request[]) {
    const namespace = await createNamespace(app, owner);
    const upstream = await start({ sessions: true, requireHeaders: required });
    const silent = async ([operation, path, body, status]: Request) => {
      const [method] = operation.split(' ');
      const answer = await send(app, owner, `/connect/${namespace}${path}`, body, { method });
      if (status !== undefined) expect([operation, answer.status]).toEqual([operation, status]);
      const shown = JSON.stringify([...answer.headers, answer.text]);
      expect(shown.toLowerCase()).not.toContain(name);
      expect(shown).not.toContain(value);
      return answer;
    };
    const made = await silent([`PUT ${conn}`, '/mine', { mcpUrl: upstream.url, headers }, 201]);
    for (const one of requests(upstream.url)) await silent(one);
    expect(upstream.requests.some((one) => one.headers[name] === value)).toBe(true);
    return made.body.status.state as string;
  }

  verifies('connection:headers:never-returned', 'managing answers show no header', async () => {
    expect(await expectSilence({ [name]: value }, (url) => managing(url))).toBe('connected');
  });

  verifies('connection:headers:never-returned', 'calling answers show no header', async () => {
    expect(await expectSilence({ [name]: value }, () => calling)).toBe('connected');
  });

  verifies('connection:headers:never-returned', 'observing answers show no header', async () => {
    expect(await expectSilence({ [name]: value }, () => observing)).toBe('connected');
  });

  verifies('connection:headers:never-returned', 'answers show no header when the upstream refuses them', async () => {
    const required = { 'x-other': 'key' };
    expect(await expectSilence(required, (url) => [...calling, ...observing, ...managing(url, 200)])).toBe(
      'auth_required',
    );
  });

  verifies(
    'connection:headers:never-returned',
    'every documented operation of connections but the operator’s is among these requests',
    async () => {
      const { body: document } = await send(app, owner, '/openapi.json', undefined, { method: 'GET' });
      const documented = Object.entries(document.paths as Record<string, object>).flatMap(([path, methods]) =>
        path.startsWith('/connect/') && !path.endsWith('/suspension')
          ? Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`)
          : [],
      );
      const tried = new Set([...managing(''), ...calling, ...observing].map(([operation]) => operation));
      expect([...tried].sort()).toEqual(documented.sort());
    },
  );
});
