// Also run with the queue on Redis by test:long: jobs, and messages between processes.
import { describe, expect, it, jest } from '@jest/globals';
import { TargetsService } from '../../../src/modules/targets/targets.service.js';
import { isNamespaceName, RESERVED_NAMESPACES } from '../../../src/platform/http/resource-names.js';
import { longIt } from '../../support/jest/globals.mjs';
import { testAccount, testApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { startUpstream } from '../../support/upstream/upstream.js';
import { longVerifies, verifies } from '../../support/verifies.js';
import { whileNamespaceIsLocked } from '../../support/database/locks.js';

const isoUtc = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const notOne = { error: expect.stringMatching(/\S/) };

const app = testApp();
const owner = testAccount(app);
const other = testAccount(app);

/** The names of an account's namespaces, all pages of them. */
async function namesOf(account: TestAccount): Promise<string[]> {
  const names: string[] = [];
  for (let page = 1; ; page += 1) {
    const { body } = await app.as(account).get(`/namespaces?page=${page}`);
    if (body.namespaces.length === 0) return names;
    names.push(...body.namespaces.map(({ name }: { name: string }) => name));
  }
}

/** Every account that owns a namespace of this name, as the database has it. */
async function ownersOf(name: string): Promise<string[]> {
  const rows: { account_id: string }[] = await app.database.query('SELECT account_id FROM namespaces WHERE name = $1', [
    name,
  ]);
  return rows.map((row) => row.account_id);
}

async function serversIn(name: string): Promise<number> {
  const [row] = await app.database.query(
    'SELECT count(*)::int AS count FROM servers JOIN namespaces n ON n.id = namespace_id WHERE n.name = $1',
    [name],
  );
  return row.count;
}

describe('PUT /namespaces/{name}', () => {
  verifies(['namespace:claim:created', 'namespace:field:created-at'], 'a free name becomes the caller’s', async () => {
    const name = uniqueName('ns');
    const before = Date.now();
    const response = await app.as(owner).put(`/namespaces/${name}`);
    expect(response.status).toBe(201);
    expect(response.body).toEqual({ name, createdAt: expect.stringMatching(isoUtc) });
    expect(Math.abs(Date.parse(response.body.createdAt) - before)).toBeLessThan(10_000);
    expect(await ownersOf(name)).toEqual([owner.id]);
    expect(await namesOf(owner)).toContain(name);
    expect((await app.as(owner).put(`/servers/${name}`)).status).toBe(201);
  });

  verifies('namespace:claim:idempotent', 'claiming one’s own name again changes nothing', async () => {
    const name = uniqueName('ns');
    const first = await app.as(owner).put(`/namespaces/${name}`);
    const second = await app.as(owner).put(`/namespaces/${name}`, { organizationId: 'org_1', name: 'another' });
    expect(second.status).toBe(201);
    expect(second.body).toEqual(first.body);
    expect(await ownersOf(name)).toHaveLength(1);
  });

  verifies(
    ['namespace:claim:taken', 'namespace:identified-by-name'],
    'a name of another account is refused and stays theirs',
    async () => {
      const name = await createNamespace(app, owner);
      const response = await app.as(other).put(`/namespaces/${name}`);
      expect(response.status).toBe(409);
      expect(response.body).toEqual({ error: expect.stringContaining('already exists') });
      expect(response.headers['x-should-retry']).toBe('false');
      expect(await ownersOf(name)).toEqual([owner.id]);
      expect(await namesOf(other)).not.toContain(name);
      // Not the operator's either: managing accounts is no ownership.
      expect((await app.as(app.operator).put(`/namespaces/${name}`)).status).toBe(409);
    },
  );

  verifies('namespace:claim:race', 'gives a name to just one of two accounts that claim it concurrently', async () => {
    const sibling = await app.sibling();
    for (let round = 0; round < 20; round += 1) {
      const name = uniqueName('ns');
      const claims = [
        { account: owner, answer: app.as(owner).put(`/namespaces/${name}`) },
        { account: other, answer: (round % 2 ? app : sibling).as(other).put(`/namespaces/${name}`) },
      ];
      if (round % 4 > 1) claims.reverse();
      const statuses = await Promise.all(claims.map(async ({ answer }) => (await answer).status));
      expect([...statuses].sort()).toEqual([201, 409]);
      const winner = claims[statuses.indexOf(201)]?.account.id;
      expect(await ownersOf(name)).toEqual([winner]);
    }
    await sibling.close();
  });

  it('returns one record to an account that claims a name ten times concurrently', async () => {
    const name = uniqueName('ns');
    const answers = await Promise.all(Array.from({ length: 10 }, () => app.as(owner).put(`/namespaces/${name}`)));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(201));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  });

  longIt('never reports a name as taken that its owner claims and deletes concurrently', async () => {
    for (let round = 0; round < 20; round += 1) {
      const name = uniqueName('ns');
      const answers = await Promise.all(
        Array.from({ length: 6 }, () => [
          app.as(owner).put(`/namespaces/${name}`),
          app.as(owner).delete(`/namespaces/${name}`),
        ]).flat(),
      );
      const [claims, deletions] = [answers.filter((_, i) => i % 2 === 0), answers.filter((_, i) => i % 2 === 1)];
      expect(new Set(claims.map(({ status }) => status))).toEqual(new Set([201]));
      expect(deletions.filter(({ status }) => status !== 200 && status !== 404)).toEqual([]);
    }
  });

  verifies('namespace:claim:name-invalid', 'a name of another form is refused', async () => {
    const names = [
      ...[
        'ab',
        'a'.repeat(40),
        '-abc',
        'abc-',
        'Abc',
        'ABC',
        'a_bc',
        'a.bc',
        'a%20bc',
        'a%2Fbc',
        'abc%2F',
        '@abc',
        '%40abc',
      ],
      ...['abc%00', 'abc%0A', '%C3%A4bc', 'abc%21', 'a+b', 'abc%252Fdef', '...', '%2E%2E%2E'],
    ];
    for (const name of names) {
      const response = await app.as(owner).put(`/namespaces/${name}`);
      expect([name, response.status, response.body]).toEqual([name, 400, notOne]);
    }
    expect((await namesOf(owner)).filter((name) => !isNamespaceName(name))).toEqual([]);
    for (const name of ['abc', '0-9', 'a--b', `${'a-'.repeat(19)}z`]) {
      expect((await app.as(owner).put(`/namespaces/${name}`)).status).toBe(201);
    }
  });

  verifies('namespace:claim:name-reserved', 'a word the service may use in a path is refused', async () => {
    // The first segments of the contract and of ordinary hosts; the list in the source may only be longer.
    const words = [
      'connect',
      'servers',
      'namespaces',
      'skills',
      'accounts',
      'health',
      'docs',
      'openapi',
      'mcp',
      'oauth',
      'run',
    ];
    for (const word of new Set([...words, ...RESERVED_NAMESPACES])) {
      const response = await app.as(owner).put(`/namespaces/${word}`);
      expect([word, response.status, response.body]).toEqual([word, 400, notOne]);
      expect(await ownersOf(word)).toEqual([]);
    }
  });
});

describe('POST /namespaces', () => {
  verifies('namespace:generate', 'a valid and free name is found for the caller', async () => {
    const taken = new Set<string>();
    for (let i = 0; i < 10; i += 1) {
      const response = await app.as(owner).post('/namespaces');
      expect(response.status).toBe(201);
      const { name } = response.body as { name: string };
      expect(response.body).toEqual({ name, createdAt: expect.stringMatching(isoUtc) });
      expect(isNamespaceName(name)).toBe(true);
      expect(taken.has(name)).toBe(false);
      taken.add(name);
      expect(await ownersOf(name)).toEqual([owner.id]);
    }
    // The same name claimed: it is a namespace like any other.
    const [name] = taken;
    expect((await app.as(other).put(`/namespaces/${name}`)).status).toBe(409);
    expect((await app.as(owner).put(`/namespaces/${name}`)).status).toBe(201);
  });
});

describe('GET /namespaces', () => {
  verifies('namespace:list:own', 'an account lists its namespaces, newest first, and no other’s', async () => {
    const account = await app.account();
    expect((await app.as(account).get('/namespaces')).body).toEqual({
      namespaces: [],
      pagination: { currentPage: 1, pageSize: 50, totalPages: 0, totalCount: 0 },
    });
    const first = (await app.as(account).put(`/namespaces/${uniqueName('z')}`)).body;
    const second = (await app.as(account).put(`/namespaces/${uniqueName('a')}`)).body;
    await createNamespace(app, other);
    const response = await app.as(account).get('/namespaces');
    expect(response.status).toBe(200);
    expect(response.body).toEqual({
      namespaces: [second, first],
      pagination: { currentPage: 1, pageSize: 50, totalPages: 1, totalCount: 2 },
    });
    expect((await app.as(app.operator).get('/namespaces')).body.namespaces).toEqual([]);
  });

  verifies('namespace:list:pages', 'pages hold each namespace once, and none past the end', async () => {
    const account = await app.account();
    const names = await Promise.all(Array.from({ length: 53 }, () => createNamespace(app, account)));
    const page = async (query: string) => (await app.as(account).get(`/namespaces?${query}`)).body;
    const seen: string[] = [];
    for (const [number, count] of [
      [1, 20],
      [2, 20],
      [3, 13],
    ] as const) {
      const { namespaces, pagination } = await page(`page=${number}&pageSize=20`);
      expect(namespaces).toHaveLength(count);
      expect(pagination).toEqual({ currentPage: number, pageSize: 20, totalPages: 3, totalCount: 53 });
      seen.push(...namespaces.map(({ name }: { name: string }) => name));
    }
    expect(seen.sort()).toEqual([...names].sort());
    expect((await page('')).namespaces).toHaveLength(50);
    expect((await page('pageSize=50&page=2')).namespaces).toHaveLength(3);
    expect((await page('pageSize=1')).pagination.totalPages).toBe(53);
    for (const number of [4, 9007199254740991]) {
      const response = await app.as(account).get(`/namespaces?pageSize=20&page=${number}`);
      expect(response.status).toBe(200);
      expect(response.body).toEqual({
        namespaces: [],
        pagination: { currentPage: number, pageSize: 20, totalPages: 3, totalCount: 53 },
      });
    }
    const faulty = ['page=0', 'page=-1', 'page=1.5', 'page=a', 'page=', 'page=9007199254740992', 'page=1&page=2'];
    for (const query of [...faulty, 'pageSize=0', 'pageSize=51', 'pageSize=2.5', 'pageSize=x', 'pageSize=']) {
      const response = await app.as(account).get(`/namespaces?${query}`);
      expect([query, response.status, response.body]).toEqual([query, 400, notOne]);
    }
  });

  verifies('namespace:list:search', 'a query searches the names of all accounts by their beginning', async () => {
    const prefix = uniqueName('find');
    const [mine, theirs] = [`${prefix}-b`, `${prefix}-a`];
    // By name, although the other one is newer.
    await createNamespace(app, other, theirs);
    await createNamespace(app, owner, mine);
    await createNamespace(app, other, `x${prefix}`.slice(0, 39));
    const found = async (query: string) =>
      (await app.as(owner).get(`/namespaces?${query}`)).body.namespaces.map(({ name }: { name: string }) => name);
    expect(await found(`q=${prefix}`)).toEqual([theirs, mine]);
    expect(await found(`q=${prefix.toUpperCase()}`)).toEqual([theirs, mine]);
    expect(await found(`q=${mine}`)).toEqual([mine]);
    expect(await found(`q=${prefix.slice(1)}`)).toEqual([]);
    // A prefix is text, not a pattern.
    expect(await found(`q=${prefix.slice(0, -1)}%25`)).toEqual([]);
    expect(await found('q=find_')).toEqual([]);
    expect(await found(`q=${prefix}&ownerId=${other.id}`)).toEqual([theirs]);
    expect(await found(`ownerId=${app.operator.id}`)).toEqual([]);

    await createServer(app, owner, { namespace: mine });
    for (const yes of ['1', 'true']) expect(await found(`q=${prefix}&hasServers=${yes}`)).toEqual([mine]);
    for (const no of ['0', 'false']) expect(await found(`q=${prefix}&hasServers=${no}`)).toEqual([theirs]);
    const paged = await app.as(owner).get(`/namespaces?q=${prefix}&pageSize=1&page=2`);
    expect(paged.body).toEqual({
      namespaces: [{ name: mine, createdAt: expect.stringMatching(isoUtc) }],
      pagination: { currentPage: 2, pageSize: 1, totalPages: 2, totalCount: 2 },
    });
  });

  verifies('namespace:list:fields', '`fields` selects members', async () => {
    const account = await app.account();
    const name = await createNamespace(app, account);
    expect((await app.as(account).get('/namespaces?fields=name,nonsense')).body.namespaces).toEqual([{ name }]);
    expect((await app.as(account).get(`/namespaces?q=${name}&fields=createdAt`)).body.namespaces).toEqual([
      { createdAt: expect.stringMatching(isoUtc) },
    ]);
    expect((await app.as(account).get('/namespaces?fields=name,%20createdAt')).body.namespaces).toEqual([
      { name, createdAt: expect.stringMatching(isoUtc) },
    ]);
  });
});

describe('DELETE /namespaces/{name}', () => {
  verifies('namespace:delete:deleted', 'deletes it and frees its name, for others too', async () => {
    const name = await createNamespace(app, owner);
    // Looked up once, so that this process remembers whose it was.
    expect((await app.as(owner).get(`/connect/${name}`)).status).toBe(200);
    const response = await app.as(owner).delete(`/namespaces/${name}`);
    expect(response.status).toBe(200);
    expect(response.body).toEqual({ success: true, name });
    expect(await namesOf(owner)).not.toContain(name);
    expect((await app.as(owner).get(`/connect/${name}`)).status).toBe(404);

    await createNamespace(app, other, name);
    expect((await app.as(other).put(`/servers/${name}`)).status).toBe(201);
    expect((await app.as(owner).put(`/servers/${name}%2Fmine`)).status).toBe(403);
  });

  it('leaves the old owner nothing of a name that changed hands, even in a process that remembers them', async () => {
    const sibling = await app.sibling();
    for (let round = 0; round < 10; round += 1) {
      const name = await createNamespace(app, owner);
      expect((await sibling.as(owner).get(`/connect/${name}`)).status).toBe(200);
      await app.as(owner).delete(`/namespaces/${name}`);
      await createNamespace(app, other, name);
      const response = await sibling.as(owner).put(`/servers/${name}%2Fmine`);
      expect([403, 404]).toContain(response.status);
      expect(await serversIn(name)).toBe(0);
      expect(await ownersOf(name)).toEqual([other.id]);
    }
    await sibling.close();
  });

  it('leaves the old owner no server of a name that changed hands, while its owner is remembered', async () => {
    const namespace = await createNamespace(app, owner);
    const targets = app.get(TargetsService);
    const remembered = await targets.findNamespace(namespace);
    await app.as(owner).delete(`/namespaces/${namespace}`);
    await createNamespace(app, other, namespace);
    const path = `/servers/${encodeURIComponent(await createServer(app, other, { namespace }))}`;
    const stale = jest.spyOn(targets, 'peekNamespace').mockReturnValue(remembered);
    expect((await app.as(owner).delete(path)).status).toBe(404);
    expect(stale).toHaveBeenCalledWith(namespace);
    stale.mockRestore();
    expect((await app.as(owner).get(path)).status).toBe(200);
    expect((await app.as(other).delete(path)).status).toBe(200);
  });

  verifies('namespace:delete:cascades-connections', 'its connections go with it', async () => {
    const upstream = await startUpstream();
    const { namespace, path } = await createConnection(app, owner, { mcpUrl: upstream.url });
    const kept = await createConnection(app, owner, { mcpUrl: upstream.url });
    expect((await app.as(owner).delete(`/namespaces/${namespace}`)).body).toEqual({ success: true, name: namespace });
    await createNamespace(app, owner, namespace);
    expect((await app.as(owner).get(path)).status).toBe(404);
    expect((await app.as(owner).get(`/connect/${namespace}`)).body.connections).toEqual([]);
    expect((await app.as(owner).get(kept.path)).status).toBe(200);
    await upstream.close();
  });

  verifies('namespace:delete:holds-servers', 'a namespace with a server is kept, with all that is in it', async () => {
    const upstream = await startUpstream();
    const { namespace, path } = await createConnection(app, owner, { mcpUrl: upstream.url });
    for (const server of ['', 'weather']) {
      const name = await createServer(app, owner, { namespace, server });
      const response = await app.as(owner).delete(`/namespaces/${namespace}`);
      expect(response.status).toBe(409);
      expect(response.body).toEqual({ error: expect.stringContaining(namespace) });
      expect(response.headers['x-should-retry']).toBe('false');
      expect((await app.as(owner).get(`/servers/${name}`)).status).toBe(200);
      expect((await app.as(owner).get(path)).status).toBe(200);
      expect((await app.as(owner).delete(`/servers/${name}`)).status).toBe(200);
    }
    expect((await app.as(owner).delete(`/namespaces/${namespace}`)).status).toBe(200);
    await upstream.close();
  });

  verifies('namespace:delete:foreign', 'only its owner deletes it', async () => {
    const upstream = await startUpstream();
    const { namespace, path } = await createConnection(app, owner, { mcpUrl: upstream.url });
    for (const account of [other, app.operator]) {
      const response = await app.as(account).delete(`/namespaces/${namespace}`);
      expect([response.status, response.body]).toEqual([403, { error: 'Unauthorized' }]);
    }
    expect(await ownersOf(namespace)).toEqual([owner.id]);
    expect((await app.as(owner).get(path)).status).toBe(200);
    await upstream.close();
  });

  verifies('namespace:delete:no-key', 'without a valid key nothing is deleted', async () => {
    const name = await createNamespace(app, owner);
    const stranger = { ...owner, key: `${owner.key.slice(0, -4)}AAAA` };
    for (const account of [undefined, stranger, { ...owner, key: '' }]) {
      const response = await app.as(account).delete(`/namespaces/${name}`);
      expect([response.status, response.body]).toEqual([401, expect.objectContaining({ error: 'Unauthorized' })]);
    }
    expect(await ownersOf(name)).toEqual([owner.id]);
  });

  verifies('namespace:delete:not-found', 'an unknown name is not found', async () => {
    const gone = await createNamespace(app, owner);
    await app.as(owner).delete(`/namespaces/${gone}`);
    for (const name of [
      gone,
      uniqueName('never'),
      'A',
      'servers',
      'a%00b',
      '%2F',
      '..%2Fx',
      '%E2%82%AC',
      'a'.repeat(5_000),
    ]) {
      const response = await app.as(owner).delete(`/namespaces/${name}`);
      expect([name, response.status, response.body]).toEqual([
        name,
        404,
        expect.objectContaining({ error: 'Namespace not found' }),
      ]);
    }
  });

  longVerifies('namespace:delete:race', 'servers created meanwhile keep it, or are never made', async () => {
    const sibling = await app.sibling();
    for (let round = 0; round < 24; round += 1) {
      const name = await createNamespace(app, owner);
      const paths = ['', '%2Fone', '%2Ftwo', '%2Fthree'].map((end) => `/servers/${name}${end}`);
      const creations = (clients: TestApp[]) =>
        paths.map((path, index) => clients[index % clients.length].as(owner).put(path));
      const deletion = (process: TestApp) => process.as(owner).delete(`/namespaces/${name}`);
      const [deleted, created] =
        round % 2 === 0
          ? await Promise.all([deletion(app), Promise.all(creations([sibling, app]))])
          : await Promise.all([Promise.all(creations([app])), deletion(sibling)]).then(
              ([all, one]) => [one, all] as const,
            );

      const isGone = deleted.status === 200;
      expect([200, 409]).toContain(deleted.status);
      expect(created.map(({ status }) => status)).toEqual(paths.map(() => (isGone ? 404 : 201)));
      const read = await Promise.all(paths.map((path) => app.as(owner).get(path)));
      expect(read.map(({ status }) => status)).toEqual(paths.map(() => (isGone ? 404 : 200)));
      expect(await ownersOf(name)).toEqual(isGone ? [] : [owner.id]);
    }
    await sibling.close();
  });

  verifies(
    'namespace:delete:race',
    'a creation and a deletion that wait for each other come out in their order',
    async () => {
      for (const isDeletionFirst of [true, false]) {
        const name = await createNamespace(app, owner);
        const remove = async () => (await app.as(owner).delete(`/namespaces/${name}`)).status;
        const create = async () => (await app.as(owner).put(`/servers/${name}%2Fweather`)).status;
        const [first, second] = await whileNamespaceIsLocked(
          app,
          name,
          isDeletionFirst ? [remove, create] : [create, remove],
        );
        expect([first, second]).toEqual(isDeletionFirst ? [200, 404] : [201, 409]);
        expect(await serversIn(name)).toBe(isDeletionFirst ? 0 : 1);
      }
    },
  );
});
