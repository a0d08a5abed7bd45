import { beforeAll, describe, expect } from '@jest/globals';
import { generateApiKey, hashApiKey, prefixOf } from '../../../src/modules/auth/api-key.js';
import { PubSub } from '../../../src/platform/queue/pub-sub.js';
import { testAccount, testApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import { pathOf, releaseServer, serverIdOf } from '../../support/database/server-rows.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { eventsOf, mcp, mcpAccept, open, request, send, toolCall, type Answer } from '../../support/mcp/calls.js';
import { images, uploadIcon } from '../../support/releases/icons.js';
import { publish } from '../../support/releases/releases.js';
import { startScripted, type ScriptedUpstream } from '../../support/special-upstreams/scripted-upstream.js';
import { until } from '../../support/until.js';
import { aloneVerifies, verifies } from '../../support/verifies.js';

/** The longest time in which a stream may go on after the server became private. */
const END_MS_MAX = 5_000;

const TOOLS = '{"tools":[{"name":"forecast","inputSchema":{"type":"object"}}]}';

const app = testApp({ PUBLIC_READS: 'true', REGISTRY_HOSTS: 'server.smithery.ai' });
/** Another process, and one that receives no messages. */
let second: TestApp;
let deaf: TestApp;
const owner = testAccount(app);
const grantee = testAccount(app);
const stranger = testAccount(app);
let upstream: ScriptedUpstream;
let namespace: string;
/** Its only other server; public, so that the namespace is listed for everybody. */
let shown: string;

beforeAll(async () => {
  upstream = await startScripted(() => TOOLS);
  second = await app.sibling();
  deaf = await app.sibling({ QUEUE_PREFIX: uniqueName('deaf') });
  namespace = await createNamespace(app, owner);
  shown = await released({ namespace });
});

interface Kind {
  namespace?: string;
  server?: string;
  visibility?: 'public' | 'private';
}

/** A server of the owner with a release, an icon and tools. */
async function released({ visibility = 'public', ...more }: Kind = {}): Promise<string> {
  const name = await createServer(app, owner, more);
  await releaseServer(app, name, {
    upstreamUrl: upstream.url,
    tools: [{ name: 'forecast', inputSchema: { type: 'object' }, outputSchema: { type: 'object' } }],
  });
  if (visibility === 'private') await change(name, visibility);
  return name;
}

async function change(name: string, visibility: 'public' | 'private'): Promise<void> {
  const { status } = await app.as(owner).patch(pathOf(name), { visibility });
  expect(status).toBe(200);
}

async function grant(name: string, to: TestAccount, level: 'call' | 'manage' = 'call'): Promise<void> {
  await app.database.query('INSERT INTO grants (subject_id, server_id, level, created_by) VALUES ($1, $2, $3, $4)', [
    to.id,
    await serverIdOf(app, name),
    level,
    owner.id,
  ]);
}

const slugOf = (name: string) => name.replace('/', '--');

/** What an answer tells, with the name of the server and its slug taken out. */
function told({ status, headers, text }: Answer, name: string): object {
  const plain = (value: string) =>
    value.replaceAll(name, 'NAME').replaceAll(slugOf(name), 'SLUG').replaceAll(encodeURIComponent(name), 'NAME');
  const kept = [...headers].filter(
    ([key]) => !/^(date|x-request-id|x-ratelimit-.*|ratelimit.*|traceparent)$/.test(key),
  );
  return {
    status,
    headers: kept.map(([key, value]) => [key, plain(value)]),
    body: plain(text).replace(/req_\w+|"requestId":"[^"]*"/g, ''),
  };
}

/** Places where a server is named, as requests. */
const places: [string, (name: string) => { path: string; method?: string; body?: object }][] = [
  ['detail', (name) => ({ path: pathOf(name) })],
  ['detail in another case', (name) => ({ path: pathOf(name.replace('server', 'SERVER')) })],
  ['icon', (name) => ({ path: pathOf(name, '/icon') })],
  ['download', (name) => ({ path: pathOf(name, '/download') })],
  ['changes', (name) => ({ path: pathOf(name, '/changes') })],
  ['output schema', (name) => ({ path: pathOf(name, '/experimental/tools/forecast/output-schema') })],
  ['list by name', (name) => ({ path: `/servers?qualifiedName=${encodeURIComponent(name)}` })],
  [
    'list by name, some members',
    (name) => ({ path: `/servers?fields=id,slug&qualifiedName=${encodeURIComponent(name)}` }),
  ],
  ['search', (name) => ({ path: `/servers?fields=id&q=${encodeURIComponent(name)}&namespace=${namespace}` })],
  ['releases', (name) => ({ path: pathOf(name, '/releases') })],
  ['secrets', (name) => ({ path: pathOf(name, '/secrets') })],
  ['logs', (name) => ({ path: pathOf(name, '/logs') })],
  ['change', (name) => ({ path: pathOf(name), method: 'PATCH', body: { description: 'x' } })],
  ['deletion', (name) => ({ path: pathOf(name), method: 'DELETE' })],
  [
    'request for access',
    (name) => ({ path: pathOf(name, '/access-requests'), method: 'POST', body: { text: 'Please.' } }),
  ],
  ['requests for access', (name) => ({ path: pathOf(name, '/access-requests') })],
  [
    'decision of a request',
    (name) => ({
      path: pathOf(name, '/access-requests/7c9e6679-7425-40de-944b-e07fc1f90ae7'),
      method: 'POST',
      body: { refuse: 'No.' },
    }),
  ],
  ['suspension', (name) => ({ path: pathOf(name, '/suspension'), method: 'PUT', body: { reason: 'x' } })],
  ['run endpoint', (name) => ({ path: `/run/${slugOf(name)}`, method: 'POST', body: request(1, 'tools/list') })],
  [
    'run endpoint, /mcp',
    (name) => ({ path: `/run/${slugOf(name)}/mcp`, method: 'POST', body: toolCall(1, 'forecast') }),
  ],
  ['run endpoint, stream', (name) => ({ path: `/run/${slugOf(name)}`, method: 'GET' })],
  ['run endpoint, session', (name) => ({ path: `/run/${slugOf(name)}`, method: 'DELETE' })],
  ['run endpoint, below', (name) => ({ path: `/run/${slugOf(name)}/page`, method: 'GET' })],
  ['run endpoint, below, PUT', (name) => ({ path: `/run/${slugOf(name)}/page`, method: 'PUT', body: {} })],
];

/** What is asked of the connections of a namespace of one's own. */
const targets: [string, (name: string) => object][] = [
  ['server', (name) => ({ server: name })],
  ['run address', (name) => ({ mcpUrl: `${app.url}/run/${slugOf(name)}` })],
  ['address of another registry', (name) => ({ mcpUrl: `https://server.smithery.ai/${name}/mcp` })],
];

function ask(
  on: TestApp,
  account: TestAccount | undefined,
  place: { path: string; method?: string; body?: object },
): Promise<Answer> {
  return send(on, account, place.path, place.body, { method: place.method ?? 'GET', headers: mcpAccept });
}

describe('a private server', () => {
  let name: string;
  let none: string;

  beforeAll(async () => {
    name = await released({ namespace, server: uniqueName('server'), visibility: 'private' });
    none = `${namespace}/${uniqueName('server')}`;
    await grant(name, grantee);
  });

  verifies('private:hidden', 'is missing for other accounts and without a key, at every place', async () => {
    for (const on of [app, second]) {
      for (const account of [stranger, undefined]) {
        for (const [place, at] of places) {
          const [hidden, missing] = [await ask(on, account, at(name)), await ask(on, account, at(none))];
          expect([place, told(hidden, name)]).toEqual([place, told(missing, none)]);
        }
      }
    }
  });

  verifies('private:hidden', 'cannot be connected to: it looks like a missing one', async () => {
    const inside = await createNamespace(app, stranger);
    for (const [target, bodyOf] of targets) {
      const path = `/connect/${inside}/${uniqueName('conn')}`;
      const [hidden, missing] = [
        await send(app, stranger, path, bodyOf(name), { method: 'PUT' }),
        await send(app, stranger, path, bodyOf(none), { method: 'PUT' }),
      ];
      expect([target, hidden.status]).toEqual([target, 400]);
      expect([target, told(hidden, name)]).toEqual([target, told(missing, none)]);
    }
  });

  verifies('private:granted', 'is found and called by its owner and by whom the owner granted it', async () => {
    for (const on of [app, second]) {
      for (const account of [owner, grantee]) {
        const { body, status } = await on.as(account).get(pathOf(name));
        expect([status, body.visibility]).toEqual([200, 'private']);
        const list = await on.as(account).get(`/servers?namespace=${namespace}&fields=qualifiedName,visibility`);
        expect(list.body.servers).toContainEqual({ qualifiedName: name, visibility: 'private' });
        expect(list.body.pagination.totalCount).toBe(2);
        const found = await on.as(account).get(`/servers?q=${encodeURIComponent(name)}`);
        expect(found.body.servers[0]).toMatchObject({ qualifiedName: name });
        const called = await ask(on, account, {
          path: `/run/${slugOf(name)}`,
          method: 'POST',
          body: request(1, 'tools/list'),
        });
        expect(called.text).toContain('forecast');
      }
    }
    const { path } = await createConnection(app, grantee, { server: name });
    expect((await mcp(app, grantee, path, request(1, 'tools/list'))).body.result.tools).toMatchObject([
      { name: 'forecast' },
    ]);
  });

  verifies('private:granted', 'is changed by whom the owner let manage it, and deleted by its owner only', async () => {
    const manager = await app.account();
    const managed = await released({ visibility: 'private' });
    const patch = (account: TestAccount) => app.as(account).patch(pathOf(managed), { description: 'Changed.' });
    expect((await patch(manager)).status).toBe(403);
    await grant(managed, manager, 'manage');
    expect((await patch(manager)).status).toBe(200);
    expect((await app.as(manager).delete(pathOf(managed))).status).toBe(403);
    expect((await app.as(owner).delete(pathOf(managed))).status).toBe(200);
  });

  verifies('private:hidden', 'is not counted, and no namespace is listed for it', async () => {
    const alone = await released({ visibility: 'private' });
    const [home = ''] = alone.split('/');
    await grant(alone, grantee);
    const totals = async (account: TestAccount | undefined) => {
      const { body } = await app.as(account).get(`/servers?namespace=${home}`);
      return [body.servers.length, body.pagination.totalCount, body.pagination.totalPages];
    };
    const holds = async (account: TestAccount, wanted: boolean) => {
      const { body } = await app.as(account).get(`/namespaces?q=${home}&hasServers=${wanted}`);
      return [body.namespaces.length, body.pagination.totalCount];
    };
    for (const account of [owner, grantee]) {
      expect(await totals(account)).toEqual([1, 1, 1]);
      expect([await holds(account, true), await holds(account, false)]).toEqual([
        [1, 1],
        [0, 0],
      ]);
    }
    expect([await totals(stranger), await totals(undefined)]).toEqual([
      [0, 0, 0],
      [0, 0, 0],
    ]);
    expect([await holds(stranger, true), await holds(stranger, false)]).toEqual([
      [0, 0],
      [1, 1],
    ]);
  });

  verifies('private:signed', 'is shown by a signed link that was made for it, as long as the link lives', async () => {
    const pictured = await released({ visibility: 'private' });
    await uploadIcon(app, owner, pictured, images['image/png']);
    const { iconUrl } = (await app.as(owner).get(pathOf(pictured))).body as { iconUrl: string };
    expect((await fetch(iconUrl)).status).toBe(200);
    expect((await send(app, stranger, pathOf(pictured, '/icon'), undefined, { method: 'GET' })).status).toBe(404);
  });
});

describe('a key with scopes', () => {
  /** The same account by a key with these scopes. */
  async function scoped(account: TestAccount, ...scopes: string[]): Promise<TestAccount> {
    const key = generateApiKey();
    await app.database.query(
      'INSERT INTO api_keys (account_id, name, prefix, hash, scopes) VALUES ($1, $2, $3, $4, $5)',
      [account.id, 'scoped', prefixOf(key), hashApiKey(key), scopes],
    );
    return { ...account, key };
  }

  verifies('private:scopes', 'calls a run endpoint only in a namespace of its scopes', async () => {
    const [here, elsewhere] = [await released(), await released({ visibility: 'private' })];
    const [inside = ''] = here.split('/');
    const call = async (account: TestAccount, name: string) =>
      (await ask(app, account, { path: `/run/${slugOf(name)}`, method: 'POST', body: request(1, 'tools/list') }))
        .status;
    const keys: [string[], number, number][] = [
      [['call'], 200, 200],
      [[`call:${inside}`], 200, 403],
      [[`manage:${inside}`], 200, 403],
      [['read'], 403, 403],
      [[`call:${inside}`, 'read'], 200, 403],
    ];
    for (const [scopes, own, other] of keys) {
      const key = await scoped(owner, ...scopes);
      expect([scopes, await call(key, here), await call(key, elsewhere)]).toEqual([scopes, own, other]);
    }
    // A public server of somebody else: its namespace is none of the key's.
    expect(await call(await scoped(stranger, `call:${inside}`), here)).toBe(200);
    expect(await call(await scoped(stranger, `call:${uniqueName('ns')}`), here)).toBe(403);
    // What the account may not find stays missing, whatever the key may do.
    expect(await call(await scoped(stranger, 'call'), elsewhere)).toBe(404);
    expect(await call(await scoped(stranger, 'read'), elsewhere)).toBe(403);
    expect(await call(await scoped(stranger, 'read'), `${namespace}/${uniqueName('server')}`)).toBe(403);
  });

  verifies('private:scopes', 'connects to private servers of its namespaces only', async () => {
    const [inside, outside] = [await released({ visibility: 'private' }), await released({ visibility: 'private' })];
    const [home = ''] = inside.split('/');
    const key = await scoped(owner, `manage:${home}`);
    const connect = async (body: object) =>
      (await app.as(key).put(`/connect/${home}/${uniqueName('conn')}`, body)).status;
    for (const [server, status] of [
      [inside, 201],
      [outside, 403],
    ] as const) {
      expect(await connect({ server })).toBe(status);
      expect(await connect({ mcpUrl: `${app.env.baseUrl}/run/${slugOf(server)}` })).toBe(status);
      const created = await app.as(key).post(`/connect/${home}`, { server });
      expect(created.status).toBe(status);
    }
  });

  verifies('private:scopes', 'lists the private servers of its namespaces only', async () => {
    const [one, two] = [await released({ visibility: 'private' }), await released({ visibility: 'private' })];
    const ids = (await Promise.all([one, two].map((name) => serverIdOf(app, name)))).join();
    const names = async (account: TestAccount) => {
      const { body } = await app.as(account).get(`/servers?ids=${ids}&fields=qualifiedName`);
      return [
        (body.servers as { qualifiedName: string }[]).map(({ qualifiedName }) => qualifiedName),
        body.pagination.totalCount,
      ];
    };
    expect(await names(await scoped(owner, 'read'))).toEqual([[two, one], 2]);
    expect(await names(await scoped(owner, `read:${one.split('/')[0]}`))).toEqual([[one], 1]);
    expect(await names(await scoped(owner, `call:${two.split('/')[0]}`, `read:${namespace}`))).toEqual([[two], 1]);
  });
});

describe('the visibility of a server', () => {
  verifies('private:settable', 'is set at creation, by a change and at publish, and shown', async () => {
    const visibilityOf = async (name: string) => (await app.as(owner).get(pathOf(name))).body.visibility as string;
    const name = `${namespace}/${uniqueName('server')}`;
    expect((await app.as(owner).put(pathOf(name), { visibility: 'private' })).status).toBe(201);
    expect(await visibilityOf(name)).toBe('private');
    expect((await app.as(owner).put(pathOf(name), { visibility: 'public' })).status).toBe(201);
    expect(await visibilityOf(name)).toBe('public');
    await change(name, 'private');
    expect(await visibilityOf(name)).toBe('private');
    await change(name, 'public');
    const payload = { type: 'external', upstreamUrl: upstream.url, visibility: 'private' };
    expect((await publish(app, owner, name, payload)).status).toBe(202);
    expect(await visibilityOf(name)).toBe('private');
    for (const visibility of ['hidden', '', 1, null]) {
      expect([visibility, (await app.as(owner).patch(pathOf(name), { visibility })).status]).toEqual([visibility, 400]);
    }
    expect(await visibilityOf(shown)).toBe('public');
  });

  verifies('private:settable', 'is that of DEFAULT_VISIBILITY where the creator sends none', async () => {
    const closed = await app.sibling({ DEFAULT_VISIBILITY: 'private' });
    try {
      const name = await createServer(closed, owner, { namespace });
      expect((await closed.as(owner).get(pathOf(name))).body.visibility).toBe('private');
      expect((await closed.as(stranger).get(pathOf(name))).status).toBe(404);
    } finally {
      await closed.close();
    }
  });
});

interface Opened {
  isOpen: boolean;
  /** Milliseconds since the epoch. */
  endedAt: number;
}

describe('a server that becomes private', () => {
  /** A session at an MCP address, and its stream. */
  async function session(on: TestApp, account: TestAccount, path: string): Promise<Opened & { id: string }> {
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'spec', version: '1' } };
    const begun = await send(on, account, path, request(1, 'initialize', params), { headers: mcpAccept });
    const id = begun.headers.get('mcp-session-id') ?? '';
    const headers = { accept: 'text/event-stream', 'mcp-session-id': id, 'mcp-protocol-version': '2025-06-18' };
    const response = await open(on, account, path, undefined, { method: 'GET', headers });
    expect(response.status).toBe(200);
    const opened = { id, isOpen: true, endedAt: NaN };
    const ended = () => Object.assign(opened, { isOpen: false, endedAt: Date.now() });
    void response.text().then(ended, ended);
    return opened;
  }

  const listIn = (on: TestApp, account: TestAccount, path: string, id: string) =>
    send(on, account, path, request(2, 'tools/list'), { headers: { ...mcpAccept, 'mcp-session-id': id } });

  aloneVerifies(
    'private:ends',
    'closes the sessions and streams of others in every process, not those with access',
    async () => {
      const name = await released();
      await grant(name, grantee);
      const path = `/run/${slugOf(name)}`;
      const all = [app, second, deaf];
      const theirs = await Promise.all(all.map((on) => session(on, stranger, path)));
      const kept = await Promise.all(all.flatMap((on) => [session(on, owner, path), session(on, grantee, path)]));
      await change(name, 'private');
      const changedAt = Date.now();
      await until(() => theirs.every(({ isOpen }) => !isOpen), 'the streams of others end');
      for (const { endedAt } of theirs) expect(endedAt - changedAt).toBeLessThan(END_MS_MAX);
      expect(kept.map(({ isOpen }) => isOpen)).toEqual(kept.map(() => true));
      const refused = await until(
        async () => {
          const answers = await Promise.all(all.map((on, at) => listIn(on, stranger, path, theirs[at]?.id ?? '')));
          return answers.every(({ status }) => status === 404) ? answers : null;
        },
        'the sessions of others are rejected',
        END_MS_MAX,
      );
      const missing = await listIn(
        app,
        stranger,
        `/run/${slugOf(`${namespace}/${uniqueName('server')}`)}`,
        theirs[0].id,
      );
      for (const { text } of refused) expect(text).toBe(missing.text);
      for (const on of all) expect((await listIn(on, owner, path, kept[0].id)).status).toBe(200);
    },
  );

  verifies('private:ends', 'is missing for connections and namespaces of others, and back with a grant', async () => {
    const name = await released();
    const [theirs, mine] = [
      await createConnection(app, stranger, { server: name }),
      await createConnection(app, owner, { server: name }),
    ];
    const tools = async (on: TestApp, account: TestAccount, path: string) => {
      const answer = await send(on, account, path, request(1, 'tools/list'), { headers: mcpAccept });
      const text = answer.headers.get('content-type')?.startsWith('text/event-stream')
        ? (eventsOf(answer.text).at(-1) ?? '')
        : answer.text;
      const body = JSON.parse(text) as { result?: { tools: object[] }; error?: object };
      return body.result?.tools.length ?? body.error;
    };
    const [at, own] = [`${theirs.path}/mcp`, `${mine.path}/mcp`];
    const inside = `/connect/${theirs.namespace}/.mcp`;
    for (const on of [app, second, deaf]) {
      expect([await tools(on, stranger, at), await tools(on, stranger, inside)]).toEqual([1, 1]);
    }
    await change(name, 'private');
    await until(
      async () => {
        const found = await Promise.all([app, second, deaf].map((on) => tools(on, stranger, at)));
        return found.every((one) => one !== 1);
      },
      'the connections of others are rejected',
      END_MS_MAX,
    );
    for (const on of [app, second, deaf]) {
      expect(await tools(on, stranger, at)).toMatchObject({ message: expect.stringMatching(/was deleted/) });
      expect(await tools(on, stranger, inside)).not.toBe(1);
      expect(await tools(on, owner, own)).toBe(1);
    }
    await grant(name, stranger);
    app.get(PubSub).publish('grants.changed', { serverId: await serverIdOf(app, name) });
    await until(async () => (await tools(app, stranger, at)) === 1, 'the grant opens the connection');
  });
});
