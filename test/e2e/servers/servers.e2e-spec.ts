import { beforeAll, describe, expect, it } from '@jest/globals';
import { SERVER_SUBRESOURCES } from '../../../src/platform/http/resource-names.js';
import { longIt } from '../../support/jest/globals.mjs';
import { testAccount, testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { images, uploadIcon } from '../../support/releases/icons.js';
import { ownMembers, releaseServer, serverIdOf } from '../../support/database/server-rows.js';
import { whileNamespaceIsLocked } from '../../support/database/locks.js';
import { longVerifies, verifies } from '../../support/verifies.js';

const isoUtc = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const notOne = { error: expect.stringMatching(/\S/) };
const notFound = expect.objectContaining({ error: 'Server not found' });

const app = testApp();
const owner = testAccount(app);
let other: TestAccount;

beforeAll(async () => {
  other = await app.account();
});

/** The two routes that create `server` in `namespace`; the second has no form for a namespace-only server. */
function creationPaths(namespace: string, server: string): string[] {
  return [`/servers/${namespace}%2F${server}`, `/namespaces/${namespace}/servers/${server}`];
}

/** The servers of a namespace, as the database has them. */
async function storedIn(namespace: string): Promise<{ name: string; display_name: string; description: string }[]> {
  return app.database.query(
    `SELECT s.name, s.display_name, s.description FROM servers s JOIN namespaces n ON n.id = s.namespace_id
      WHERE n.name = $1 ORDER BY s.name`,
    [namespace],
  );
}

describe('PUT of a server', () => {
  verifies(
    [
      'server:create:replacement',
      'server:record:namespace',
      'server:record:server',
      'server:record:display-name',
      'server:record:description',
      'server:record:created-at',
    ],
    'returns 201 with the record as it was given',
    async () => {
      const namespace = await createNamespace(app, owner);
      const body = { displayName: ' Wetter für „alle“ 🌦 ', description: 'Two\nlines.' };
      const before = Date.now();
      const response = await app.as(owner).put(`/servers/${namespace}%2FWeather_2-x`, body);
      expect(response.status).toBe(201);
      expect(response.body).toEqual({
        namespace,
        server: 'Weather_2-x',
        ...body,
        createdAt: expect.stringMatching(isoUtc),
      });
      expect(Math.abs(Date.parse(response.body.createdAt) - before)).toBeLessThan(10_000);
      expect(await storedIn(namespace)).toEqual([
        { name: 'Weather_2-x', display_name: body.displayName, description: body.description },
      ]);
    },
  );

  verifies('server:create:deprecated-route', 'the deprecated route makes the same record', async () => {
    const namespace = await createNamespace(app, owner);
    const body = { displayName: 'Weather', description: 'Forecasts.' };
    const response = await app.as(owner).put(`/namespaces/${namespace}/servers/weather`, body);
    expect(response.status).toBe(201);
    expect(response.body).toEqual({ namespace, server: 'weather', ...body, createdAt: expect.stringMatching(isoUtc) });
    expect((await app.as(owner).get(`/servers/${namespace}%2Fweather`)).body).toMatchObject(body);
    // The date of the first version of the API document. RFC 9745.
    expect(response.headers).toMatchObject({ deprecation: `@${Date.UTC(2026, 10, 20) / 1_000}` });
    const [, successor = ''] = /^<(.*)>; rel="successor-version"$/.exec(response.headers.link ?? '') ?? [];
    for (const address of [response.headers.location ?? '', successor]) {
      const { pathname } = new URL(address, `${app.url}/namespaces/${namespace}/servers/weather`);
      expect(pathname).toBe(`/servers/${namespace}%2Fweather`);
    }
    // The same body by the other route, for another server: the records differ in nothing else.
    const replaced = await app.as(owner).put(`/servers/${namespace}%2Fweather-2`, body);
    expect({ ...replaced.body, server: 'weather', createdAt: response.body.createdAt }).toEqual(response.body);
    expect(replaced.headers).not.toHaveProperty('deprecation');
  });

  verifies(
    ['server:create:namespace-only', 'server:record:server-empty', 'name:namespace-only'],
    'creates the namespace-only server for a namespace, next to others',
    async () => {
      const namespace = await createNamespace(app, owner);
      await createServer(app, owner, { namespace, server: 'weather', displayName: 'Weather' });
      const response = await app.as(owner).put(`/servers/${namespace}`, { displayName: 'All' });
      expect(response.status).toBe(201);
      expect(response.body).toMatchObject({ namespace, server: '', displayName: 'All' });
      const detail = (await app.as(owner).get(`/servers/${namespace}`)).body;
      expect(detail).toMatchObject({ qualifiedName: namespace, displayName: 'All' });
      expect((await storedIn(namespace)).map(({ name }) => name)).toEqual(['', 'weather']);
    },
  );

  verifies(
    ['server:create:body-optional', 'server:record:display-name-default', 'server:record:description-default'],
    'needs no body, and defaults to its name and no description',
    async () => {
      const namespace = await createNamespace(app, owner);
      for (const [index, path] of [...creationPaths(namespace, 'weather'), `/servers/${namespace}`].entries()) {
        const server = index < 2 ? 'weather' : '';
        const response = await app.as(owner).put(path);
        expect(response.status).toBe(201);
        expect(response.body).toMatchObject({ namespace, server, displayName: server || namespace, description: '' });
        await app.as(owner).delete(path.startsWith('/servers') ? path : `/servers/${namespace}%2Fweather`);
      }
      const empty = app.as(owner).put(`/servers/${namespace}%2Fempty`).set('content-type', 'application/json');
      expect((await empty.send('')).status).toBe(201);
      const half = await app.as(owner).put(`/servers/${namespace}%2Fhalf`, { description: 'Only this.' });
      expect(half.body).toMatchObject({ displayName: 'half', description: 'Only this.' });
      const texts = await app.as(owner).put(`/servers/${namespace}%2Ftexts`, { displayName: 'T', description: '' });
      expect(texts.body).toMatchObject({ displayName: 'T', description: '' });
      const nulls = await app.as(owner).put(`/servers/${namespace}%2Fnulls`, { description: null });
      expect(nulls.body).toMatchObject({ displayName: 'nulls', description: '' });
    },
  );

  verifies(
    'server:create:idempotent',
    'repeated by either route answers the same and makes no second one',
    async () => {
      const namespace = await createNamespace(app, owner);
      const body = { displayName: 'Weather', description: 'Forecasts.' };
      const [path, deprecated] = creationPaths(namespace, 'weather') as [string, string];
      const first = await app.as(owner).put(path, body);
      for (const again of [path, deprecated, path]) {
        const response = await app.as(owner).put(again, body);
        expect(response.status).toBe(201);
        expect(response.body).toEqual(first.body);
      }
      const alone = await app.as(owner).put(`/servers/${namespace}`);
      expect((await app.as(owner).put(`/servers/${namespace}`)).body).toEqual(alone.body);
      expect(await storedIn(namespace)).toHaveLength(2);
    },
  );

  verifies('server:create:repeat-applies', 'changes only what the body has in an existing server', async () => {
    const namespace = await createNamespace(app, owner);
    for (const path of creationPaths(namespace, 'weather')) {
      let record = (await app.as(owner).put(path, { displayName: 'Weather', description: 'Forecasts.' })).body;
      for (const body of [
        { displayName: 'Other' },
        { description: 'Other.' },
        { displayName: 'Third', description: '' },
        { visibility: 'private' },
        { description: null },
        {},
      ]) {
        const { visibility: _, ...texts } = { visibility: null, ...body };
        record = { ...record, ...(texts.description === null ? {} : texts) };
        const response = await app.as(owner).put(path, body);
        expect([body, response.status, response.body]).toEqual([body, 201, record]);
      }
    }
    expect(await storedIn(namespace)).toEqual([{ name: 'weather', display_name: 'Third', description: '' }]);
    expect((await app.as(await app.account()).get(`/servers/${namespace}%2Fweather`)).status).toBe(404);
  });

  longVerifies('server:create:idempotent', 'creates one server for ten concurrent PUTs, and one response', async () => {
    const sibling = await app.sibling();
    const namespace = await createNamespace(app, owner);
    for (let round = 0; round < 20; round += 1) {
      const paths = creationPaths(namespace, `server-${round}`);
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, index) =>
          (index % 3 ? app : sibling).as(owner).put(paths[index % 2], { displayName: `Server ${round}` }),
        ),
      );
      expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(201));
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    }
    expect(await storedIn(namespace)).toHaveLength(20);
    await sibling.close();
  });

  longIt('responds, concurrently with DELETE of the same one, as if in some order', async () => {
    const name = await createServer(app, owner);
    const path = `/servers/${encodeURIComponent(name)}`;
    let deleted = 0;
    for (let round = 0; round < 20; round += 1) {
      const [puts, deletes] = await Promise.all([
        Promise.all(Array.from({ length: 5 }, () => app.as(owner).put(path))),
        Promise.all(Array.from({ length: 5 }, () => app.as(owner).delete(path))),
      ]);
      expect(puts.map(({ status }) => status)).toEqual(Array(5).fill(201));
      expect(deletes.filter(({ status }) => status !== 200 && status !== 404)).toEqual([]);
      const now = deletes.filter(({ status }) => status === 200).length;
      // All came first, when the round before had left nothing.
      if (now === 0) expect((await app.as(owner).get(path)).status).toBe(200);
      deleted += now;
    }
    expect(deleted).toBeGreaterThan(0);
  });

  verifies('server:create:body-types', 'rejects values that are not strings, and creates nothing', async () => {
    const namespace = await createNamespace(app, owner);
    const odd = [5, 0, true, false, {}, [], ['a'], { a: 'b' }];
    const bodies = ['displayName', 'description'].flatMap((field) => odd.map((value) => ({ [field]: value })));
    for (const path of [...creationPaths(namespace, 'weather'), `/servers/${namespace}`]) {
      for (const body of bodies) {
        const response = await app.as(owner).put(path, body);
        const [field = ''] = Object.keys(body);
        expect([body, response.status, response.body]).toEqual([body, 400, { error: expect.stringContaining(field) }]);
      }
    }
    const both = await app.as(owner).put(`/servers/${namespace}`, { displayName: 1, description: 2 });
    expect(both.body.error).toMatch(/displayName must be a string.*; .*description must be a string/);
    expect(await storedIn(namespace)).toEqual([]);
  });

  it('refuses texts that are too long or cannot be stored, and bodies that are no object', async () => {
    const namespace = await createNamespace(app, owner);
    const path = `/servers/${namespace}`;
    const bodies = [
      ...['a'.repeat(256), '', null, 'bell\u0007', 'two\nlines'].map((displayName) => ({ displayName })),
      { description: 'a'.repeat(10_001) },
      ...['a\0b', '\ud800', 'a\udc00b'].flatMap((text) => [{ displayName: text }, { description: text }]),
      ...[[], [{ displayName: 'a' }]],
    ];
    for (const body of bodies) {
      const response = await app.as(owner).put(path, body);
      expect([response.status, response.body]).toEqual([400, notOne]);
    }
    for (const text of ['{', '"a"', 'null', '5']) {
      const response = await app.as(owner).put(path).set('content-type', 'application/json').send(text);
      expect([text, response.status, response.body]).toEqual([text, 400, notOne]);
    }
    expect(await storedIn(namespace)).toEqual([]);
    const longest = { displayName: '🌦'.repeat(127), description: 'a'.repeat(10_000) };
    expect((await app.as(owner).put(path, longest)).body).toMatchObject(longest);
  });

  verifies('server:create:unknown-key', 'drops the keys it does not know', async () => {
    const namespace = await createNamespace(app, owner);
    for (const path of creationPaths(namespace, 'weather')) {
      const response = await app
        .as(owner)
        .put(path, {
          displayName: 'Weather',
          namespace: 'x',
          server: 'y',
          name: 'z',
          id: 1,
          createdAt: 0,
          homepage: null,
        });
      expect(response.status).toBe(201);
      expect(response.body).toEqual({
        namespace,
        server: 'weather',
        displayName: 'Weather',
        description: '',
        createdAt: expect.stringMatching(isoUtc),
      });
    }
  });

  verifies('server:create:name-invalid', 'refuses a name of another form', async () => {
    const namespace = await createNamespace(app, owner);
    const names = [
      ...['ab', 'a', 'a'.repeat(40), '_abc', '-abc', 'a.bc', 'a%20bc', 'a%2Fbc', '%2Fabc', '%2F%2F', '%40abc', '@abc'],
      ...['%C3%A4bc', 'abc%0A', 'abc!', 'abc%252F', '..%2F..', '%E2%82%ACuro', 'abc%00d'],
    ];
    for (const name of names) {
      for (const path of creationPaths(namespace, name)) {
        const response = await app.as(owner).put(path);
        expect([path, response.status, response.body]).toEqual([path, 400, notOne]);
      }
    }
    expect(await storedIn(namespace)).toEqual([]);
    for (const name of ['abc', '9__', 'A-b_c', 'a'.repeat(39)]) {
      for (const path of creationPaths(namespace, name)) expect((await app.as(owner).put(path)).status).toBe(201);
    }
    expect(await storedIn(namespace)).toHaveLength(4);
  });

  verifies('server:create:name-reserved', 'refuses the names of sub-resources of servers', async () => {
    const namespace = await createNamespace(app, owner);
    const published = [
      'releases',
      'deployments',
      'logs',
      'icon',
      'secrets',
      'domains',
      'download',
      'transfer',
      'experimental',
    ];
    for (const word of new Set([...published, ...SERVER_SUBRESOURCES])) {
      for (const path of creationPaths(namespace, word)) {
        const response = await app.as(owner).put(path);
        expect([path, response.status, response.body]).toEqual([path, 400, notOne]);
      }
      // Unencoded it is the sub-resource of the namespace-only server.
      expect([400, 403, 404, 405]).toContain((await app.as(owner).put(`/servers/${namespace}/${word}`)).status);
    }
    expect(await storedIn(namespace)).toEqual([]);
  });

  verifies('server:create:foreign', 'in another account’s namespace makes nothing', async () => {
    const namespace = await createNamespace(app, owner);
    await createServer(app, owner, { namespace, server: 'weather' });
    const before = await storedIn(namespace);
    const forbidden = { error: "Forbidden: You don't own this server" };
    for (const account of [other, app.operator]) {
      // Also for an existing server, and whatever the name or the body: nothing is told of either.
      for (const server of ['new-one', 'weather', 'logs', 'a']) {
        for (const path of creationPaths(namespace, server)) {
          const response = await app.as(account).put(path, { displayName: 5 });
          expect([path, response.status, response.body]).toEqual([path, 403, forbidden]);
        }
      }
      const alone = await app.as(account).put(`/servers/${namespace}`);
      expect([alone.status, alone.body]).toEqual([403, forbidden]);
    }
    expect(await storedIn(namespace)).toEqual(before);
  });

  verifies(
    'server:create:namespace-missing',
    'is not found in an unknown namespace, and creates no namespace',
    async () => {
      const namespaces = [uniqueName('never'), 'A', 'servers', 'a%00b', '%E2%82%AC', '%00', 'a'.repeat(5_000)];
      for (const namespace of namespaces) {
        for (const path of [...creationPaths(namespace, 'weather'), `/servers/${namespace}`]) {
          const response = await app.as(owner).put(path);
          expect([path, response.status, response.body]).toEqual([
            path,
            404,
            expect.objectContaining({ error: 'Namespace not found' }),
          ]);
        }
      }
      expect((await app.as(owner).get(`/namespaces?q=${namespaces[0]}`)).body.namespaces).toEqual([]);
    },
  );
});

describe('GET /servers/{qualifiedName}', () => {
  verifies(
    [
      'server:get:found',
      'server:detail:all-keys',
      'server:detail:qualified-name',
      'server:detail:display-name',
      'server:detail:description',
      'server:detail:icon-url-null',
      'server:detail:remote-unreleased',
      'server:detail:deployment-url-null',
      'server:detail:connections-empty',
      'server:detail:security-null',
      'server:detail:tools-null',
      'server:detail:resources-null',
      'server:detail:prompts-null',
      'name:two-part',
    ],
    'a server that was never released has every key, with the values of no release',
    async () => {
      const namespace = await createNamespace(app, owner);
      for (const server of ['weather', '']) {
        const texts = { displayName: `The ${server}`, description: 'Forecasts for any place.' };
        const qualifiedName = await createServer(app, owner, { namespace, server, ...texts });
        const response = await app.as(owner).get(`/servers/${encodeURIComponent(qualifiedName)}`);
        expect(response.status).toBe(200);
        expect(ownMembers(app, response.body)).toStrictEqual({
          qualifiedName,
          ...texts,
          visibility: 'public',
          iconUrl: null,
          remote: false,
          deploymentUrl: null,
          connections: [],
          currentReleaseId: null,
          security: null,
          tools: null,
          resources: null,
          prompts: null,
        });
      }
    },
  );

  verifies('namespace:owns:servers', 'equal names in two namespaces are two servers', async () => {
    const [mine, theirs] = [await createNamespace(app, owner), await createNamespace(app, other)];
    await createServer(app, owner, { namespace: mine, server: 'weather', displayName: 'Mine' });
    await createServer(app, other, { namespace: theirs, server: 'weather', displayName: 'Theirs' });
    const [one, two] = [`/servers/${mine}%2Fweather`, `/servers/${theirs}%2Fweather`];
    expect((await app.as(owner).get(one)).body).toMatchObject({
      qualifiedName: `${mine}/weather`,
      displayName: 'Mine',
    });
    expect((await app.as(owner).get(two)).body).toMatchObject({
      qualifiedName: `${theirs}/weather`,
      displayName: 'Theirs',
    });
    expect((await app.as(owner).delete(one)).status).toBe(200);
    expect((await app.as(owner).get(one)).status).toBe(404);
    expect((await app.as(owner).get(two)).status).toBe(200);
  });

  it('a name is unique and found in any case on every route that takes one, and shown as it was created', async () => {
    const namespace = await createNamespace(app, owner);
    const name = await createServer(app, owner, { namespace, server: 'WeatherNow', displayName: 'Weather' });
    const [shout, whisper] = ['WEATHERNOW', 'weathernow'].map((server) => `${namespace}%2F${server}`);
    const again = await app.as(owner).put(`/servers/${whisper}`, { displayName: 'Other' });
    expect([again.status, again.body]).toEqual([
      201,
      expect.objectContaining({ server: 'WeatherNow', displayName: 'Other' }),
    ]);
    expect((await app.as(owner).put(`/namespaces/${namespace}/servers/WEATHERNOW`)).body).toEqual(again.body);
    expect(await storedIn(namespace)).toHaveLength(1);
    const rests = ['', '/releases', '/runtime', '/secrets', '/domains', '/logs', '/changes'];
    for (const rest of rests) {
      const [created, other] = await Promise.all(
        [encodeURIComponent(name), shout].map((one) => app.as(owner).get(`/servers/${one}${rest}`)),
      );
      expect([rest, other?.status, other?.body]).toEqual([rest, 200, created?.body]);
    }
    await uploadIcon(app, owner, `${namespace}/WEATHERNOW`, images['image/png']);
    expect((await app.as(owner).get(`/servers/${whisper}/icon`)).status).toBe(200);
    const listed = await app.as(owner).get(`/servers?qualifiedName=${shout}`);
    expect(listed.body.servers).toMatchObject([{ qualifiedName: name }]);
    const connection = await createConnection(app, owner, { server: `${namespace}/weathernow` });
    expect(connection.body).toMatchObject({ mcpUrl: expect.stringMatching(/--WeatherNow$/) });
    for (const slug of [`${namespace}--WeatherNow`, `${namespace}--weathernow`]) {
      const run = await app.as(owner).post(`/run/${slug}`, { jsonrpc: '2.0', id: 1, method: 'ping' });
      expect([slug, run.status, run.text]).toEqual([slug, 409, expect.stringContaining(name)]);
    }
    const taken = await createServer(app, owner, { namespace, server: 'mail' });
    const body = { targetNamespace: namespace, targetOrganizationId: 'me', targetSlug: 'weatherNOW' };
    expect((await app.as(owner).post(`/servers/${encodeURIComponent(taken)}/transfer`, body)).status).toBe(409);
    const removed = await app.as(owner).delete(`/servers/${shout}`);
    expect(removed.body).toEqual({ success: true, namespace, server: 'WeatherNow' });
  });

  verifies('server:get:any-key', 'any valid key reads it', async () => {
    const path = `/servers/${encodeURIComponent(await createServer(app, owner))}`;
    const own = await app.as(owner).get(path);
    for (const account of [other, app.operator, await app.account({ kind: 'organization' })]) {
      const response = await app.as(account).get(path);
      expect([response.status, response.body]).toEqual([200, own.body]);
    }
  });

  const weather = {
    type: 'object',
    properties: { place: { type: 'string' } },
    required: ['place'],
    additionalProperties: false,
  };

  /** The snapshot of a release, with members that MCP does not allow. */
  const offered = {
    tools: [
      { name: 'get', description: 'Gets.', inputSchema: weather, outputSchema: weather, _meta: { a: 1 } },
      { name: 'bare', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } },
      { name: 'odd', description: 7, inputSchema: 'x', outputSchema: null },
      { description: 'nameless' },
    ],
    resources: [
      { name: 'map', uri: 'map://all', description: 'A map.', mimeType: 'image/png', size: 7 },
      { name: 'bare', uri: 'map://bare', mimeType: 5 },
      { name: 'nowhere' },
    ],
    prompts: [
      {
        name: 'ask',
        description: 'Asks.',
        arguments: [{ name: 'a', description: 'b', required: true }, { name: 'c' }, 7],
      },
      { name: 'bare', title: 'Bare' },
    ],
  };
  /** The members of the snapshot that answers show. */
  const shown = {
    tools: [
      { name: 'get', description: 'Gets.', inputSchema: weather, outputSchema: { ...weather, type: 'object' } },
      { name: 'bare', description: null, inputSchema: { type: 'object', properties: {} } },
      { name: 'odd', description: null, inputSchema: { type: 'object', properties: {} } },
    ],
    resources: [
      { name: 'map', uri: 'map://all', description: 'A map.', mimeType: 'image/png' },
      { name: 'bare', uri: 'map://bare' },
    ],
    prompts: [
      {
        name: 'ask',
        description: 'Asks.',
        arguments: [{ name: 'a', description: 'b', required: true }, { name: 'c' }],
      },
      { name: 'bare' },
    ],
  };

  verifies(
    [
      'server:get:current-release',
      'server:detail:remote',
      'server:detail:deployment-url',
      'server:detail:connections-http',
      'server:detail:security',
      'server:detail:tools',
      'server:detail:tools-description-null',
      'server:detail:tools-input-schema',
      'server:detail:tools-output-schema',
      'server:detail:resources',
      'server:detail:prompts',
      'server:detail:prompts-arguments',
    ],
    'a released server has the values of its current release',
    async () => {
      const namespace = await createNamespace(app, owner);
      for (const server of ['Weather_2', '']) {
        const name = await createServer(app, owner, { namespace, server });
        const path = `/servers/${encodeURIComponent(name)}`;
        const deploymentUrl = `${app.url}/run/${server === '' ? namespace : `${namespace}--Weather_2`}`;
        const configSchema = { type: 'object', properties: { unit: { type: 'string' } } };
        for (const type of ['external_shttp', 'hosted_shttp'] as const) {
          await releaseServer(app, name, { type, configSchema, ...offered });
          const response = await app.as(other).get(path);
          expect(ownMembers(app, response.body)).toStrictEqual({
            qualifiedName: name,
            displayName: server || namespace,
            description: '',
            visibility: 'public',
            iconUrl: null,
            remote: true,
            deploymentUrl,
            connections: [{ type: 'http', deploymentUrl, configSchema }],
            currentReleaseId: expect.stringMatching(/^[0-9a-f-]{36}$/),
            security: { scanPassed: true },
            ...shown,
          });
        }
      }
    },
  );

  verifies(
    ['server:detail:connections-stdio', 'server:detail:remote', 'server:detail:security'],
    'a server whose current release is a bundle runs elsewhere',
    async () => {
      const name = await createServer(app, owner);
      const path = `/servers/${encodeURIComponent(name)}`;
      await releaseServer(
        app,
        name,
        { type: 'stdio', runtime: 'python', upstreamUrl: null, tools: null, prompts: null },
        false,
      );
      const { body } = await app.as(other).get(path);
      const bundleUrl = body.connections[0]?.bundleUrl as string;
      expect(body).toMatchObject({ remote: false, deploymentUrl: null, tools: null, resources: [], prompts: null });
      expect(body.security).toEqual({ scanPassed: false });
      expect(body.connections).toEqual([{ type: 'stdio', bundleUrl, runtime: 'python', configSchema: {} }]);
      expect(bundleUrl).toMatch(new RegExp(`^${app.url}${path}/download\\?expires=\\d+&signature=[\\w-]{43}$`));
    },
  );

  verifies('server:get:not-found', 'an unknown server is not found', async () => {
    const namespace = await createNamespace(app, owner);
    await createServer(app, owner, { namespace, server: 'weather' });
    const names = [
      ...[namespace, `${namespace}%2Fother`, `${namespace}%2Fweathe`, `${namespace}%2Fweather2`],
      ...[
        `${namespace}%2Fweather%2Fx`,
        `${namespace}%252Fweather`,
        `${uniqueName('never')}%2Fweather`,
        'weather',
        'A%2Fb',
      ],
      ...[
        `${namespace}%00`,
        `${namespace}%2Fa%00b`,
        'a%00b%2Fweather',
        '%00',
        '%2Fweather',
        '%E2%82%AC',
        'a'.repeat(5_000),
      ],
    ];
    for (const name of names) {
      const response = await app.as(owner).get(`/servers/${name}`);
      expect([name, response.status, response.body]).toEqual([name, 404, notFound]);
    }
  });
});

describe('DELETE /servers/{qualifiedName}', () => {
  verifies('server:delete:deleted', 'it is deleted permanently', async () => {
    const namespace = await createNamespace(app, owner);
    await createServer(app, owner, { namespace, server: 'weather', displayName: 'Old' });
    await createServer(app, owner, { namespace, server: 'weather-2' });
    await createServer(app, owner, { namespace, server: '' });
    const path = `/servers/${namespace}%2Fweather`;
    const response = await app.as(owner).delete(path);
    expect(response.status).toBe(200);
    expect(response.body).toEqual({ success: true, namespace, server: 'weather' });
    expect((await app.as(owner).get(path)).status).toBe(404);
    expect((await storedIn(namespace)).map(({ name }) => name)).toEqual(['', 'weather-2']);
    // Made anew it is a new server: nothing of the old one comes back.
    expect((await app.as(owner).put(path)).body).toMatchObject({ displayName: 'weather' });
  });

  verifies('server:delete:cascades', 'its releases, secrets and icon go with it', async () => {
    const name = await createServer(app, owner);
    const path = `/servers/${encodeURIComponent(name)}`;
    const id = await serverIdOf(app, name);
    await app.as(owner).put(`${path}/secrets`, { name: 'KEY', value: 'x' });
    await uploadIcon(app, owner, name, images['image/png']);
    await app.database.query(`INSERT INTO releases (server_id, type, status) VALUES ($1, 'stdio', 'SUCCESS')`, [id]);
    const attached = async () => {
      const tables = ['releases', 'server_secrets', 'server_icons'];
      const counts = tables.map((table) => app.database.query(`SELECT 1 FROM ${table} WHERE server_id = $1`, [id]));
      return (await Promise.all(counts)).map((rows: unknown[]) => rows.length);
    };
    expect(await attached()).toEqual([1, 1, 1]);
    expect((await app.as(owner).delete(path)).status).toBe(200);
    expect(await attached()).toEqual([0, 0, 0]);
  });

  verifies('server:delete:namespace-only', 'the namespace-only server goes alone', async () => {
    const namespace = await createNamespace(app, owner);
    await createServer(app, owner, { namespace, server: 'weather' });
    await createServer(app, owner, { namespace, server: '' });
    const response = await app.as(owner).delete(`/servers/${namespace}`);
    expect(response.status).toBe(200);
    expect(response.body).toEqual({ success: true, namespace, server: '' });
    expect((await storedIn(namespace)).map(({ name }) => name)).toEqual(['weather']);
    expect((await app.as(owner).delete(`/servers/${namespace}`)).status).toBe(404);
  });

  verifies('server:delete:not-found', 'an unknown or already deleted one is not found', async () => {
    const namespace = await createNamespace(app, owner);
    await createServer(app, owner, { namespace, server: 'weather' });
    await createServer(app, owner, { namespace, server: 'old' });
    await app.as(owner).delete(`/servers/${namespace}%2Fold`);
    const names = [
      ...[`${namespace}%2Fold`, namespace, `${namespace}%2Fweather%2Fx`, `${namespace}%252Fweather`],
      ...[
        `${uniqueName('never')}%2Fweather`,
        'A%2Fb',
        `${namespace}%2Fa%00b`,
        'a%00b',
        '%00',
        '%2Fweather',
        '%E2%82%AC',
      ],
    ];
    for (const name of names) {
      const response = await app.as(owner).delete(`/servers/${name}`);
      expect([name, response.status, response.body]).toEqual([name, 404, notFound]);
    }
    expect((await storedIn(namespace)).map(({ name }) => name)).toEqual(['weather']);
  });

  longVerifies('server:delete:not-found', 'succeeds exactly once for many concurrent requests', async () => {
    for (let round = 0; round < 10; round += 1) {
      const path = `/servers/${encodeURIComponent(await createServer(app, owner))}`;
      const answers = await Promise.all(Array.from({ length: 6 }, () => app.as(owner).delete(path)));
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 404, 404, 404, 404, 404]);
    }
  });

  verifies(
    'server:delete:foreign',
    'returns the response of a missing server for another account’s, and keeps it',
    async () => {
      const name = await createServer(app, owner);
      const [namespace = '', server = ''] = name.split('/');
      await createServer(app, owner, { namespace, server: '' });
      const before = await storedIn(namespace);
      const ghost = await app.as(other).delete(`/servers/${uniqueName('never')}%2F${server}`);
      for (const path of [
        `/servers/${namespace}%2F${server}`,
        `/servers/${namespace}`,
        `/servers/${namespace}%2Fnever`,
      ]) {
        for (const account of [other, app.operator]) {
          const response = await app.as(account).delete(path);
          expect([response.status, response.text]).toEqual([404, ghost.text]);
          expect(Object.keys(response.headers).sort()).toEqual(Object.keys(ghost.headers).sort());
        }
      }
      expect(ghost.body).toEqual(notFound);
      expect(await storedIn(namespace)).toEqual(before);
    },
  );

  it('frees the namespace together with DELETE of the namespace, in this order', async () => {
    const name = await createServer(app, owner);
    const [namespace = ''] = name.split('/');
    const [created, kept] = await whileNamespaceIsLocked(app, namespace, [
      async () => (await app.as(owner).put(`/servers/${namespace}`)).status,
      async () => (await app.as(owner).delete(`/namespaces/${namespace}`)).status,
    ]);
    expect([created, kept]).toEqual([201, 409]);
    for (const path of [`/servers/${namespace}`, `/servers/${encodeURIComponent(name)}`, `/namespaces/${namespace}`]) {
      expect((await app.as(owner).delete(path)).status).toBe(200);
    }
  });
});
