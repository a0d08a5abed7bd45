import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { testAccount, testApp, uniqueName, type TestAccount } from '../../support/app.js';
import type { Json } from '../../support/mcp/calls.js';
import { createNamespace, createServer } from '../../support/factories.js';
import { ownMembers, pathOf, releaseServer, seedServers, serverIdOf } from '../../support/database/server-rows.js';
import { verifies } from '../../support/verifies.js';

const isoUtc = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const app = testApp();
const owner = testAccount(app);
const other = testAccount(app);

async function list(query: string, account: TestAccount = other): Promise<Json> {
  const response = await app.as(account).get(`/servers?${query}`);
  expect([query, response.status, response.text]).toEqual([query, 200, response.text]);
  return response.body;
}

/** The names of the servers a query lists, in its order. */
async function names(query: string, account?: TestAccount): Promise<string[]> {
  return (await list(query, account)).servers.map(({ slug }: { slug: string }) => slug);
}

describe('GET /servers', () => {
  verifies(['server:list:shape', 'server:list:page'], 'lists servers of everybody with every member', async () => {
    const namespace = await createNamespace(app, owner);
    const texts = { displayName: 'Weather', description: 'Forecasts.' };
    await createServer(app, owner, { namespace, server: 'weather', ...texts });
    const name = `${namespace}/weather`;
    // Others see it once it is published.
    const body = await list(`namespace=${namespace}`, owner);
    expect({ ...body, servers: body.servers.map((card: Json) => ownMembers(app, card)) }).toEqual({
      servers: [
        {
          id: await serverIdOf(app, name),
          qualifiedName: name,
          namespace,
          slug: 'weather',
          ...texts,
          visibility: 'public',
          iconUrl: null,
          verified: false,
          useCount: 0,
          remote: null,
          isDeployed: false,
          createdAt: expect.stringMatching(isoUtc),
          homepage: `${app.url}${pathOf(name)}`,
          bySmithery: false,
          owner: owner.id,
          score: null,
        },
      ],
      pagination: { currentPage: 1, pageSize: 10, totalPages: 1, totalCount: 1 },
    });
    await releaseServer(app, name, { type: 'stdio', runtime: 'node' });
    expect((await list(`namespace=${namespace}`)).servers[0]).toMatchObject({ remote: false, isDeployed: true });
    await releaseServer(app, name, { type: 'hosted_shttp' });
    expect((await list(`namespace=${namespace}`)).servers[0]).toMatchObject({ remote: true, isDeployed: true });
  });

  verifies('server:list:namespace-only', 'lists the namespace-only server like any other', async () => {
    const namespace = await createNamespace(app, owner);
    await createServer(app, owner, { namespace, server: '', displayName: 'All of it' });
    await releaseServer(app, namespace);
    expect((await list(`namespace=${namespace}`)).servers).toMatchObject([{ qualifiedName: namespace, slug: '' }]);
    expect(await names(`qualifiedName=${namespace}`)).toEqual(['']);
    expect((await names(`q=${namespace}`))[0]).toBe('');
  });

  verifies('server:list:page', 'pages hold each server once, the most used first, and none past the end', async () => {
    const namespace = await createNamespace(app, owner);
    const seeds = Array.from({ length: 23 }, (_, i) => ({ name: `server-${i}`, useCount: i % 5 === 0 ? i ** 4 : 0 }));
    const seeded = await seedServers(app, namespace, seeds);
    const used = seeded.filter((_, i) => i > 0 && i % 5 === 0).reverse();
    const expected = [...used, ...seeded.filter((name) => !used.includes(name))];
    const seen: string[] = [];
    for (const [page, count] of [
      [1, 10],
      [2, 10],
      [3, 3],
    ] as const) {
      const { servers, pagination } = await list(`namespace=${namespace}&page=${page}`);
      expect(servers).toHaveLength(count);
      expect(pagination).toEqual({ currentPage: page, pageSize: 10, totalPages: 3, totalCount: 23 });
      seen.push(...servers.map(({ slug }: { slug: string }) => slug));
    }
    expect(seen).toEqual(expected);
    expect(await names(`namespace=${namespace}&pageSize=100`)).toEqual(expected);
    for (const page of [4, 1_000, 9007199254740991]) {
      expect(await list(`namespace=${namespace}&page=${page}&pageSize=${page > 1_000 ? 100 : 10}`)).toEqual({
        servers: [],
        pagination: {
          currentPage: page,
          pageSize: page > 1_000 ? 100 : 10,
          totalPages: page > 1_000 ? 1 : 3,
          totalCount: 23,
        },
      });
      expect((await list(`q=server&namespace=${namespace}&page=${page}`)).servers).toEqual([]);
      expect((await list(`seed=7&namespace=${namespace}&page=${page}`)).servers).toEqual([]);
    }
  });

  verifies('server:list:page', 'deep pages, which are read from the end, continue the pages before them', async () => {
    const namespace = await createNamespace(app, owner);
    const seeded = await seedServers(
      app,
      namespace,
      Array.from({ length: 1_025 }, (_, i) => ({ name: `server-${i}` })),
    );
    for (const [page, pageSize] of [
      [1_000, 1],
      [1_001, 1],
      [1_025, 1],
      [101, 10],
      [103, 10],
      [11, 100],
    ] as const) {
      const { servers, pagination } = await list(`namespace=${namespace}&page=${page}&pageSize=${pageSize}`);
      const expected = seeded.slice((page - 1) * pageSize, page * pageSize);
      expect([page, pageSize, servers.map(({ slug }: Json) => slug)]).toEqual([page, pageSize, expected]);
      expect(pagination.totalCount).toBe(1_025);
    }
    expect((await list(`namespace=${namespace}&page=104&pageSize=10`)).servers).toEqual([]);
  });

  verifies(
    'server:list:published',
    'a server of others is listed and found once it has a current release',
    async () => {
      const namespace = await createNamespace(app, owner);
      const name = await createServer(app, owner, { namespace, displayName: uniqueName('unpublished') });
      const guest = await app.account();
      await app.as(owner).post(pathOf(name, '/grants'), { account: guest.id, level: 'call' });
      const found = async (account: TestAccount) => {
        const spaces = await app.as(account).get(`/namespaces?q=${namespace}&hasServers=1`);
        const queries = [
          `namespace=${namespace}`,
          `q=${name}&namespace=${namespace}`,
          `ids=${await serverIdOf(app, name)}`,
        ];
        const counts = queries.map(async (query) => (await list(query, account)).servers.length);
        return [...(await Promise.all(counts)), spaces.body.namespaces.length];
      };
      expect(await found(other)).toEqual([0, 0, 0, 0]);
      expect((await app.as(other).get(pathOf(name))).status).toBe(200);
      for (const account of [owner, guest]) expect(await found(account)).toEqual([1, 1, 1, 1]);
      await releaseServer(app, name);
      expect(await found(other)).toEqual([1, 1, 1, 1]);
    },
  );

  verifies('server:list:seed', 'a seed gives an order of its own, the same each time', async () => {
    const namespace = await createNamespace(app, owner);
    await seedServers(
      app,
      namespace,
      Array.from({ length: 30 }, () => ({})),
    );
    const paged = async (seed: number) => {
      const pages = [1, 2, 3, 4].map((page) => names(`namespace=${namespace}&seed=${seed}&pageSize=8&page=${page}`));
      return (await Promise.all(pages)).flat();
    };
    const orders = await Promise.all([1, 2, 3, -4, 5].map(paged));
    expect(await paged(1)).toEqual(orders[0]);
    for (const order of orders) expect(new Set(order).size).toBe(30);
    expect(new Set(orders.map(String)).size).toBeGreaterThan(3);
  });

  verifies('server:list:filters', 'every filter given must match', async () => {
    const account = await app.account();
    const [one, two] = [await createNamespace(app, account), await createNamespace(app, account)];
    const word = uniqueName('word').replace('-', '');
    const given = (namespace: string, server: string) =>
      createServer(app, account, { namespace, server, description: word });
    const [http, stdio, bare] = [await given(one, 'http'), await given(one, 'stdio'), await given(two, 'bare')];
    await releaseServer(app, http);
    await releaseServer(app, stdio, { type: 'stdio', runtime: 'node' });
    await app.as(account).patch(pathOf(bare), { repositoryUrl: 'https://github.com/Acme/Tools.git' });
    await app.as(app.operator).put(pathOf(stdio, '/verified'), { verified: true });
    const ids = await Promise.all([http, bare].map((name) => serverIdOf(app, name)));
    const cases: [string, string[]][] = [
      ['remote=true', ['http']],
      ['remote=0', ['bare', 'stdio']],
      ['isDeployed=1', ['http', 'stdio']],
      ['isDeployed=false', ['bare']],
      ['verified=true', ['stdio']],
      ['verified=0', ['bare', 'http']],
      ['smitheryManaged=true', []],
      ['smitheryManaged=false', ['bare', 'http', 'stdio']],
      ['repoOwner=acme', ['bare']],
      ['repoOwner=ACME&repoName=tools', ['bare']],
      ['repoName=other', []],
      [`ids=${ids.join(',')}`, ['bare', 'http']],
      [`ids=${ids[0]},${randomUUID()}`, ['http']],
      ['ids=', []],
      [`namespace=${one}`, ['http', 'stdio']],
      [`namespace=${one}&isDeployed=true&remote=false`, ['stdio']],
      ['namespace=never-was', []],
      [`qualifiedName=${encodeURIComponent(http)}`, ['http']],
      [`qualifiedName=@${encodeURIComponent(http)}`, ['http']],
      [`qualifiedName=${encodeURIComponent(http)}&namespace=${two}`, []],
      [`ownerId=${owner.id}`, []],
    ];
    for (const [query, expected] of cases) {
      for (const base of [`ownerId=${account.id}`, `ownerId=${account.id}&q=${word}`]) {
        if (query.startsWith('ownerId') && base.includes('ownerId')) continue;
        const found = await names(`${base}&${query}`, account);
        expect([base, query, found.toSorted()]).toEqual([base, query, expected]);
      }
      expect([query, (await names(`q=${word}&${query}`, account)).toSorted()]).toEqual([query, expected]);
    }
  });

  verifies('server:list:unlisted', 'unlisted servers are shown only to their owner, on request', async () => {
    const account = await app.account();
    const namespace = await createNamespace(app, account);
    const word = uniqueName('hidden').replace('-', '');
    await seedServers(app, namespace, [
      { name: 'shown', description: word },
      { name: 'hidden', description: word, unlisted: true },
    ]);
    const id = await serverIdOf(app, `${namespace}/hidden`);
    for (const query of [`namespace=${namespace}`, `ownerId=${account.id}`, `q=${word}&namespace=${namespace}`]) {
      expect([query, (await names(query, account)).toSorted()]).toEqual([query, ['hidden', 'shown']]);
      for (const stranger of [other, app.operator])
        expect([query, await names(query, stranger)]).toEqual([query, ['shown']]);
    }
    for (const account_ of [account, other]) {
      expect(await names(`q=${word}`, account_)).toEqual(['shown']);
      expect(await names(`ids=${id}`, account_)).toEqual([]);
    }
    // One's own filter next to somebody else's opens nothing.
    expect(await names(`namespace=${namespace}&ownerId=${other.id}`, other)).toEqual([]);
    const detail = await app.as(other).get(pathOf(`${namespace}/hidden`));
    expect(detail.status).toBe(200);
  });

  verifies('server:list:fields', '`fields` selects members', async () => {
    const namespace = await createNamespace(app, owner);
    await releaseServer(app, await createServer(app, owner, { namespace, server: 'weather' }));
    const { servers } = await list(`namespace=${namespace}&fields=qualifiedName,verified,%20useCount,nonsense`);
    expect(servers).toEqual([{ qualifiedName: `${namespace}/weather`, verified: false, useCount: 0 }]);
    expect((await list(`namespace=${namespace}&fields=`)).servers).toEqual([{}]);
  });
});

describe('GET /servers?q=', () => {
  let namespace: string;

  beforeAll(async () => {
    namespace = await createNamespace(app, owner, uniqueName('lab'));
    await seedServers(app, namespace, [
      { name: 'weather', displayName: 'Sky', description: 'What falls down tomorrow.' },
      { name: 'forecasts', displayName: 'Weather for pilots', description: 'Winds.', useCount: 5 },
      { name: 'sailing', displayName: 'Sailing', description: 'Tides and the weather at sea.', useCount: 1_000_000 },
      { name: 'gitHubIssues', displayName: 'Issues', description: 'Lists issues.' },
      { name: 'mail', displayName: 'Größere Post', description: 'Sends letters.' },
    ]);
    await releaseServer(app, `${namespace}/mail`, {
      tools: [{ name: 'weather_report_send' }, { name: 'find_zebras' }, {}],
    });
  });

  const found = (q: string) => names(`q=${encodeURIComponent(q)}&namespace=${namespace}`);

  verifies('server:search:ranked', 'the best comes first: name, display name, description, tools', async () => {
    expect(await found('weather')).toEqual(['weather', 'forecasts', 'sailing', 'mail']);
    const { servers } = await list(`q=weather&namespace=${namespace}`);
    const scores = servers.map(({ score }: { score: number }) => score);
    expect(scores[0]).toBe(1);
    expect(scores).toEqual(scores.toSorted((a: number, b: number) => b - a));
    for (const score of scores) expect(score).toBeGreaterThan(0);
  });

  verifies('server:search:tolerant', 'an exact name is first, whatever its use count', async () => {
    const name = uniqueName('exact');
    const [mine, theirs] = [await createNamespace(app, owner), await createNamespace(app, owner)];
    const popular = Array.from({ length: 1_100 }, (_, i) => ({ name: `${name}-${i}`, useCount: 1_000 }));
    await seedServers(app, theirs, popular);
    await seedServers(app, mine, [{ name }]);
    const first = async (q: string) => (await list(`q=${encodeURIComponent(q)}`)).servers[0].qualifiedName;
    expect(await first(name)).toBe(`${mine}/${name}`);
    expect(await first(name.toUpperCase())).toBe(`${mine}/${name}`);
    expect(await first(`${mine}/${name}`)).toBe(`${mine}/${name}`);
    expect(await first(`@${mine}/${name}`)).toBe(`${mine}/${name}`);
    const { pagination } = await list(`q=${name}&topK=50&pageSize=20`);
    expect(pagination).toEqual({ currentPage: 1, pageSize: 20, totalPages: 3, totalCount: 50 });
    const seen = (
      await Promise.all([1, 2, 3].map((page) => names(`q=${name}&topK=50&pageSize=20&page=${page}`)))
    ).flat();
    expect(new Set(seen).size).toBe(50);
  });

  verifies('server:search:tolerant', 'finds half-written words, other forms, parts of names and of tools', async () => {
    expect(await found('weath')).toContain('weather');
    expect(await found('forecasting')).toEqual(['forecasts']);
    expect(await found('github')).toEqual(['gitHubIssues']);
    expect(await found('hub issue')).toEqual(['gitHubIssues']);
    expect(await found('find_zebras')).toEqual(['mail']);
    expect(await found('zebras')).toEqual(['mail']);
    expect(await found('GRÖSSERE post')).toEqual(['mail']);
    expect(await found('pilots weather')).toEqual(expect.arrayContaining(['forecasts']));
    expect((await found('pilots weather'))[0]).toBe('forecasts');
    expect((await found('a server that tells me the tides'))[0]).toBe('sailing');
  });

  verifies('server:search:tolerant', 'finds misspelt words', async () => {
    expect(await found('wether')).toEqual(expect.arrayContaining(['weather', 'forecasts']));
    expect(await found('forcasts')).toContain('forecasts');
    expect(await found('saling')).toEqual(['sailing']);
    expect(await found('xylophone')).toEqual([]);
  });

  verifies('server:search:tolerant', 'tools are found while the current release has them', async () => {
    const name = await createServer(app, owner);
    const word = uniqueName('tool').replace('-', '');
    await releaseServer(app, name, { tools: [{ name: `call_${word}` }] });
    expect((await list(`q=${word}`)).servers).toMatchObject([{ qualifiedName: name }]);
    await releaseServer(app, name, { tools: null });
    expect((await list(`q=${word}`)).servers).toEqual([]);
    await app.as(owner).patch(pathOf(name), { description: `Now ${word}.` });
    expect((await list(`q=${word}`)).servers).toMatchObject([{ qualifiedName: name }]);
    await app.as(owner).delete(pathOf(name));
    expect((await list(`q=${word}`)).servers).toEqual([]);
  });

  it('takes any text for words: operators, quotes and signs mean nothing', async () => {
    const odd = [
      "'",
      '"',
      '\\',
      '%',
      '!!!',
      '&',
      "a' | 'b",
      "'); DROP TABLE servers; --",
      ':*',
      '<->',
      '( (',
      'the',
      'or',
    ];
    for (const q of [...odd, '-', '🌦', ' ', 'weather -sailing', 'x '.repeat(200)]) {
      const response = await app.as(other).get(`/servers?q=${encodeURIComponent(q)}`);
      expect([q, response.status]).toEqual([q, 200]);
    }
    expect(await found('!!!')).toEqual([]);
    // Blank is no search.
    expect((await list(`q=%20&namespace=${namespace}`)).servers[0].score).toBeNull();
    expect(await found('weather & | !')).toContain('weather');
  });
});
