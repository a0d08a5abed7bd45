import { describe, expect } from '@jest/globals';
import { testAccount, testApp, uniqueName } from '../../support/app.js';
import { times } from '../../support/mcp/calls.js';
import { expectAlike, notFound, seedConnections, type ConnectionSeed } from '../../support/database/connection-rows.js';
import { releaseServer } from '../../support/database/server-rows.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { start } from '../../support/upstream/upstream-clients.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
const other = testAccount(app);

interface Page {
  connections: { connectionId: string; name: string; mcpUrl: string; metadata: Record<string, unknown> }[];
  nextCursor: string | null;
}

/** One page; the query is encoded here. */
async function page(namespace: string, query: Record<string, string> = {}): Promise<Page> {
  const response = await app.as(owner).get(`/connect/${namespace}?${new URLSearchParams(query).toString()}`);
  expect([query, response.status]).toEqual([query, 200]);
  expect(Object.keys(response.body as object).sort()).toEqual(['connections', 'nextCursor']);
  return response.body as Page;
}

/** The ids of one page. */
async function ids(namespace: string, query?: Record<string, string>): Promise<string[]> {
  return (await page(namespace, query)).connections.map(({ connectionId }) => connectionId);
}

/** The ids of each page, to the last. */
async function walk(namespace: string, query: Record<string, string> = {}): Promise<string[][]> {
  const pages: string[][] = [];
  let cursor: string | null = null;
  do {
    const { connections, nextCursor }: Page = await page(namespace, {
      ...query,
      ...(cursor === null ? {} : { cursor }),
    });
    pages.push(connections.map(({ connectionId }) => connectionId));
    cursor = nextCursor;
  } while (cursor !== null);
  return pages;
}

/** A namespace with these connections, and their ids in order of creation. */
async function seeded(seeds: ConnectionSeed[]): Promise<{ namespace: string; all: string[] }> {
  const namespace = await createNamespace(app, owner);
  return { namespace, all: await seedConnections(app, namespace, seeds) };
}

describe('GET /connect/{namespace}', () => {
  verifies(
    ['connection:list:shape', 'connection:list:order'],
    'lists the connections of that namespace, newest first, as get returns them',
    async () => {
      const { url } = await start();
      const namespace = await createNamespace(app, owner);
      const elsewhere = await createConnection(app, owner, { mcpUrl: url });
      const bodies: unknown[] = [];
      for (const connectionId of ['b', 'c', 'a']) {
        bodies.unshift((await createConnection(app, owner, { mcpUrl: url }, { namespace, connectionId })).body);
      }
      expect(await page(namespace)).toEqual({ connections: bodies, nextCursor: null });
      expect(await ids(elsewhere.namespace)).toEqual([elsewhere.connectionId]);
      // A change moves nothing.
      await app.as(owner).put(`/connect/${namespace}/b`, { name: 'Changed' }).expect(200);
      expect(await ids(namespace)).toEqual(['a', 'c', 'b']);
      const short = await app.as(owner).get(`/${namespace}`);
      expect((short.body as Page).connections).toHaveLength(3);
    },
  );

  verifies('connection:list:empty', 'a namespace without connections lists none', async () => {
    expect(await page(await createNamespace(app, owner))).toEqual({ connections: [], nextCursor: null });
  });

  verifies('connection:list:limit', 'any limit from 1 to 100 holds', async () => {
    const { namespace, all } = await seeded(times(101, () => ({})));
    const newest = all.toReversed();
    for (const limit of [1, 2, 50, 99, 100]) {
      expect(await ids(namespace, { limit: String(limit) })).toEqual(newest.slice(0, limit));
    }
  });

  verifies('connection:list:limit-default', 'without a limit a page holds 100', async () => {
    const { namespace, all } = await seeded(times(101, () => ({})));
    const { connections, nextCursor } = await page(namespace);
    expect(connections.map(({ connectionId }) => connectionId)).toEqual(all.toReversed().slice(0, 100));
    expect(nextCursor).toEqual(expect.any(String));
  });

  verifies('connection:list:limit-invalid', 'any other limit is refused', async () => {
    const { namespace } = await seeded([{}]);
    for (const limit of [
      '0',
      '101',
      '-1',
      '1.5',
      '0.99',
      'ten',
      '',
      'NaN',
      'Infinity',
      '1e9',
      '10,',
      '５',
      '1&limit=2',
    ]) {
      const { status, body } = await app.as(owner).get(`/connect/${namespace}?limit=${encodeURI(limit)}`);
      expect([limit, status, body]).toEqual([
        limit,
        400,
        { error: 'validation_error', message: expect.stringContaining('limit must') },
      ]);
    }
  });

  verifies(
    ['connection:list:cursor', 'connection:list:next-cursor-null'],
    'walking by cursor meets each connection once, and only the last page has none',
    async () => {
      const { namespace, all } = await seeded(times(25, () => ({})));
      for (const [limit, sizes] of [
        ['10', [10, 10, 5]],
        ['5', [5, 5, 5, 5, 5]],
        ['24', [24, 1]],
        ['25', [25]],
        ['26', [25]],
      ] as const) {
        const pages = await walk(namespace, { limit });
        expect(pages.map(({ length }) => length)).toEqual(sizes);
        expect(pages.flat()).toEqual(all.toReversed());
      }
    },
  );

  verifies('connection:list:cursor-filtered', 'filters hold on every page', async () => {
    const { namespace, all } = await seeded(
      times(30, (i) => ({
        name: i % 2 ? 'odd' : 'even',
        mcpUrl: `http://u${i % 3}.invalid/`,
        metadata: { five: i % 5 },
      })),
    );
    const wanted = (keep: (i: number) => boolean) => all.filter((_id, i) => keep(i)).toReversed();
    const queries: [Record<string, string>, string[]][] = [
      [{ name: 'odd' }, wanted((i) => i % 2 === 1)],
      [{ mcpUrl: 'http://u1.invalid/' }, wanted((i) => i % 3 === 1)],
      [{ 'metadata.five': '4' }, wanted((i) => i % 5 === 4)],
      [{ name: 'odd', 'metadata.five': '4' }, wanted((i) => i % 2 === 1 && i % 5 === 4)],
    ];
    for (const [query, expected] of queries) {
      const pages = await walk(namespace, { ...query, limit: '2' });
      expect(pages.flat()).toEqual(expected);
      expect(pages).toHaveLength(Math.ceil(expected.length / 2));
    }
  });

  verifies(
    'connection:list:cursor-stable',
    'what is created or deleted between two pages disturbs no other',
    async () => {
      const { namespace, all } = await seeded(times(10, () => ({})));
      const first = await page(namespace, { limit: '4' });
      const [seen, unseen] = [all.slice(6), all.slice(0, 6)];
      expect(first.connections.map(({ connectionId }) => connectionId)).toEqual(seen.toReversed());
      await seedConnections(
        app,
        namespace,
        times(5, () => ({})),
      );
      // The very row the cursor stands on, one that was shown and one that was not.
      for (const id of [seen[0], seen[2], unseen[4]])
        await app.as(owner).delete(`/connect/${namespace}/${id}`).expect(200);
      const rest = await page(namespace, { cursor: first.nextCursor as string });
      expect(rest.connections.map(({ connectionId }) => connectionId)).toEqual([
        unseen[5],
        unseen[3],
        unseen[2],
        unseen[1],
        unseen[0],
      ]);
      expect(rest.nextCursor).toBeNull();
    },
  );

  verifies('connection:list:cursor-invalid', 'a cursor the service did not make is refused', async () => {
    const { namespace, all } = await seeded(times(3, () => ({})));
    const { nextCursor } = await page(namespace, { limit: '1' });
    const made = nextCursor as string;
    const encoded = (text: string) => Buffer.from(text).toString('base64url');
    for (const cursor of [
      ...['', '0', '1', 'x', 'null', ' ', all[0], `${made}=`, `${made} `, ` ${made}`, `${made}A`, made.slice(0, -1)],
      ...[made.toUpperCase(), 's1', encoded('1'), encoded('s0'), encoded('s-1'), encoded('s1.5'), encoded('s1 OR 1=1')],
      ...[encoded('s9223372036854775808'), encoded('s99999999999999999999'), '\0', 'ü', `${made}&cursor=${made}`],
    ]) {
      const query = cursor.includes('&') ? `cursor=${cursor}` : new URLSearchParams({ cursor }).toString();
      const { status, body } = await app.as(owner).get(`/connect/${namespace}?${query}`);
      expect([cursor, status, body]).toEqual([
        cursor,
        400,
        { error: 'validation_error', message: expect.stringContaining('cursor must') },
      ]);
    }
    expect(await ids(namespace, { cursor: made })).toEqual([all[1], all[0]]);
  });

  verifies('connection:list:filter-name', 'a name is matched exactly', async () => {
    const names = ['Acme', 'acme', 'Acme ', 'Acm', 'Acme%', 'ünï 🚀', 'a&b=c', '_cme', '%'];
    const { namespace, all } = await seeded([...names.map((name) => ({ name })), { name: 'Acme' }]);
    expect(await ids(namespace, { name: 'Acme' })).toEqual([all[9], all[0]]);
    for (const [i, name] of names.slice(1).entries()) expect(await ids(namespace, { name })).toEqual([all[i + 1]]);
    for (const name of ['', 'A', 'ACME', all[0]]) expect(await ids(namespace, { name })).toEqual([]);
  });

  verifies('connection:list:filter-url', 'a URL is matched exactly', async () => {
    const urls = ['http://a.invalid/mcp', 'http://a.invalid/mcp/', 'http://A.invalid/mcp'];
    const { namespace, all } = await seeded([...urls.map((mcpUrl) => ({ mcpUrl })), { mcpUrl: urls[0] }]);
    expect(await ids(namespace, { mcpUrl: urls[0] })).toEqual([all[3], all[0]]);
    for (const i of [1, 2]) expect(await ids(namespace, { mcpUrl: urls[i] })).toEqual([all[i]]);
    expect(await ids(namespace, { mcpUrl: 'http://a.invalid/' })).toEqual([]);
  });

  verifies('connection:list:filter-state', 'a state is matched, and another word is refused', async () => {
    const { namespace, all } = await seeded([{}, {}, {}]);
    await app.database.query(`UPDATE connections SET status_state = 'error' WHERE connection_id = $1`, [all[1]]);
    await app.database.query(`UPDATE connections SET status_state = 'connected' WHERE connection_id = ANY ($1)`, [
      [all[0], all[2]],
    ]);
    expect(await ids(namespace, { state: 'error' })).toEqual([all[1]]);
    expect(await ids(namespace, { state: 'connected' })).toEqual([all[2], all[0]]);
    expect(await ids(namespace, { state: 'auth_required' })).toEqual([]);
    const { status, text } = await app.as(owner).get(`/connect/${namespace}?state=failed`);
    expect([status, text]).toEqual([400, expect.stringContaining('auth_required')]);
  });

  verifies('connection:list:filter-server', 'a qualified name finds the connections to its server', async () => {
    const { namespace } = await seeded([{}]);
    const server = await createServer(app, owner, { namespace });
    await releaseServer(app, server, { upstreamUrl: 'http://a.invalid/mcp' });
    const { path } = await createConnection(app, owner, { server }, { namespace });
    expect(await ids(namespace, { server })).toEqual([path.split('/').at(-1)]);
    expect(await ids(namespace, { server, mcpUrl: 'http://a.invalid/mcp' })).toEqual([]);
    expect(await ids(namespace, { server: `${namespace}/none` })).toEqual([]);
    expect(await ids(namespace, { server: 'weather' })).toEqual([]);
  });

  verifies(
    ['connection:list:filter-name', 'connection:list:filter-url', 'connection:list:filter-metadata'],
    'a filter that no connection can match succeeds or is rejected, without a 500',
    async () => {
      const { namespace } = await seeded([{}]);
      for (const [query, status] of [
        ...[
          ['name=%00', 400],
          ['mcpUrl=%00', 400],
          ['metadata.a=%00', 400],
          ['metadata.%00=a', 400],
          ['metadata.=a', 400],
        ],
        ...[
          ['name=a&name=b', 400],
          ['mcpUrl=a&mcpUrl=b', 400],
          ['metadata.a=1&metadata.a=2', 400],
        ],
        ...[
          ['name=%FF', 200],
          [`name=${'x'.repeat(256)}`, 400],
          ['metadata.a=%5B%22%5Cu0000%22%5D', 200],
        ],
        ...[
          ['metadata.a=%5B%22%5Cud800%22%5D', 200],
          ['metadata.a=1e400', 200],
          [`metadata.a=${'['.repeat(6000)}`, 200],
        ],
        [`metadata.a=${'['.repeat(6000)}${']'.repeat(6000)}`, 200],
      ] as [string, number][]) {
        const response = await app.as(owner).get(`/connect/${namespace}?${query}`);
        expect([query, response.status]).toEqual([query, status]);
        if (status === 400) expect(response.body).toMatchObject({ error: 'validation_error' });
        else expect(response.body).toEqual({ connections: [], nextCursor: null });
      }
    },
  );

  verifies('connection:list:filter-metadata', 'a value is matched under its key alone, and as a whole', async () => {
    const { namespace, all } = await seeded([
      { metadata: { userId: 'u-1' } },
      { metadata: { userId: 'u-12' } },
      { metadata: { userID: 'u-1', other: 'u-1' } },
      { metadata: { nested: { userId: 'u-1' } } },
      { metadata: { userId: ['u-1'] } },
      { metadata: { userId: 'U-1' } },
      { metadata: { userId: 'u-1', plan: 'pro' } },
      { metadata: { 'a.b c&d=e/ü': 'x y&z=ü%20🚀' } },
      { metadata: { userId: '' } },
      {},
    ]);
    expect(await ids(namespace, { 'metadata.userId': 'u-1' })).toEqual([all[6], all[0]]);
    expect(await ids(namespace, { 'metadata.a.b c&d=e/ü': 'x y&z=ü%20🚀' })).toEqual([all[7]]);
    expect(await ids(namespace, { 'metadata.userId': '' })).toEqual([all[8]]);
    for (const key of ['userid', 'nested.userId', 'missing', 'constructor', '__proto__', 'userId ']) {
      expect(await ids(namespace, { [`metadata.${key}`]: 'u-1' })).toEqual([]);
    }
  });

  verifies('connection:list:filter-metadata-and', 'all filters must match, of every kind', async () => {
    const { namespace, all } = await seeded([
      { name: 'n', mcpUrl: 'http://a.invalid/', metadata: { a: '1', b: '2' } },
      { name: 'n', mcpUrl: 'http://a.invalid/', metadata: { a: '1', b: '3' } },
      { name: 'n', mcpUrl: 'http://b.invalid/', metadata: { a: '1', b: '2' } },
      { name: 'm', mcpUrl: 'http://a.invalid/', metadata: { a: '1', b: '2' } },
      { name: 'n', mcpUrl: 'http://a.invalid/', metadata: { a: '1' } },
      { name: 'n', mcpUrl: 'http://a.invalid/', metadata: { b: '2' } },
    ]);
    expect(await ids(namespace, { 'metadata.a': '1', 'metadata.b': '2' })).toEqual([all[3], all[2], all[0]]);
    const both = { 'metadata.a': '1', 'metadata.b': '2', name: 'n' };
    expect(await ids(namespace, both)).toEqual([all[2], all[0]]);
    expect(await ids(namespace, { ...both, mcpUrl: 'http://a.invalid/' })).toEqual([all[0]]);
    expect(await ids(namespace, { ...both, 'metadata.c': '1' })).toEqual([]);
  });

  verifies(
    'connection:list:filter-metadata-max',
    'takes 16 filters, and names the limit to one with more',
    async () => {
      const metadata = Object.fromEntries(times(17, (i) => [`k${i}`, String(i)]));
      const { namespace, all } = await seeded([{ metadata }]);
      const filters = (count: number) =>
        Object.fromEntries(times(count, (i) => [`metadata.k${i}`, String(i)])) as Record<string, string>;
      expect(await ids(namespace, filters(16))).toEqual(all);
      const query = new URLSearchParams(filters(17)).toString();
      const { status, body } = await app.as(owner).get(`/connect/${namespace}?${query}`);
      const message = 'at most 16 metadata filters are allowed';
      expect([status, body]).toEqual([400, { error: 'validation_error', message }]);
    },
  );

  verifies(
    'connection:list:filter-metadata-json',
    'numbers, booleans, null, lists and objects match by their JSON, texts by themselves',
    async () => {
      const values: unknown[] = [
        ...[
          5,
          '5',
          1.5,
          true,
          'true',
          null,
          'null',
          {},
          { a: 1 },
          { a: 1, b: 2 },
          [],
          [1],
          [1, 2],
          [1, 1],
          [2, 1],
          '{"a":1}',
        ],
        ...['"5"', [{ a: [] }], 'x'],
      ];
      const { namespace, all } = await seeded(values.map((value) => ({ metadata: { key: value } })));
      const found = async (text: string) =>
        (await ids(namespace, { 'metadata.key': text })).toReversed().map((id) => values[all.indexOf(id)]);
      for (const [text, expected] of [
        ...[
          ['5', [5, '5']],
          ['5.0', [5]],
          ['50e-1', [5]],
          ['"5"', ['"5"']],
          ['1.5', [1.5]],
          ['true', [true, 'true']],
        ],
        ...[
          ['null', [null, 'null']],
          ['{}', [{}]],
          ['{"a":1}', [{ a: 1 }, '{"a":1}']],
          ['{ "a" : 1.0 }', [{ a: 1 }]],
        ],
        ...[
          ['{"b":2,"a":1}', [{ a: 1, b: 2 }]],
          ['[]', [[]]],
          ['[1]', [[1]]],
          ['[1,1]', [[1, 1]]],
          ['[2,1]', [[2, 1]]],
        ],
        ...[
          ['[{"a":[]}]', [[{ a: [] }]]],
          ['[{}]', []],
          ['x', ['x']],
          ['"x"', []],
          ['false', []],
          ['', []],
          ['TRUE', []],
        ],
      ] as [string, unknown[]][]) {
        expect([text, await found(text)]).toEqual([text, expected]);
      }
    },
  );

  verifies(
    ['connection:list:not-found', 'connection:list:foreign'],
    'an unknown and a foreign namespace have the same answer, also with an invalid query',
    async () => {
      const { namespace } = await seeded([{}]);
      const answers = [
        await app.as(other).get(`/connect/${namespace}`),
        await app.as(other).get(`/connect/${uniqueName('ns')}`),
        await app.as(other).get(`/connect/${namespace}?limit=0`),
        await app.as(other).get('/connect/Not-a-namespace'),
        await app.as(app.operator).get(`/connect/${namespace}`),
      ];
      expect([answers[0].status, answers[0].body]).toEqual([404, notFound]);
      expectAlike(...answers);
    },
  );

  verifies('connection:list:foreign', 'a cursor of another namespace is refused', async () => {
    const { namespace } = await seeded(times(3, () => ({})));
    const { nextCursor } = await page(namespace, { limit: '1' });
    const theirs = await createNamespace(app, other);
    const response = await app.as(other).get(`/connect/${theirs}?cursor=${nextCursor}`);
    expect([response.status, response.body.error]).toEqual([400, 'validation_error']);
  });
});
