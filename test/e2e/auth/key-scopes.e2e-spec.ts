import { beforeAll, describe, expect } from '@jest/globals';
import { keyLevels, type KeyLevel } from '../../../src/modules/auth/access.types.js';
import { testAccount, testApp, uniqueName, type TestClient } from '../../support/app.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
let upstream: Upstream;
const owner = testAccount(app);
let namespace: string;
/** Another namespace of the owner. */
let sibling: string;
/** A namespace of another account, with a connection and a server. */
let foreign: string;

beforeAll(async () => {
  upstream = await startUpstream();
  namespace = await createNamespace(app, owner);
  sibling = await createNamespace(app, owner);
  const stranger = await app.account();
  foreign = await createNamespace(app, stranger);
  for (const [account, name] of [
    [owner, namespace],
    [owner, sibling],
    [stranger, foreign],
  ] as const) {
    await createServer(app, account, { namespace: name, server: 'weather' });
    await createConnection(app, account, { mcpUrl: upstream.url }, { namespace: name, connectionId: 'mine' });
  }
});

interface Made {
  id: string;
  key: string;
}

async function makeKey(more: object = {}, maker = owner): Promise<Made> {
  const { body, status } = await app.as(maker).post('/accounts/me/api-keys', { name: 'scoped', ...more });
  expect([body, status]).toEqual([body, 201]);
  return body as Made;
}

/** Requests of the owner with a new key of these scopes. */
async function scoped(...scopes: string[]): Promise<TestClient> {
  return app.as({ ...owner, key: (await makeKey({ scopes })).key });
}

type Answer = Awaited<ReturnType<TestClient['get']>>;

interface Row {
  /** Operation of the route's declared scope. */
  route: string;
  ask: (client: TestClient, namespace: string) => Promise<Answer>;
  /** Levels that cover it, written out. */
  levels: KeyLevel[];
  /** Status for a key that covers it. */
  status: number;
  family: 'registry' | 'connections';
}

const server = (name: string, rest = '') => `/servers/${name}%2Fweather${rest}`;
const connection = (name: string, rest = '') => `/connect/${name}/mine${rest}`;

/** One route of each kind in a namespace. */
const inNamespace: Row[] = [
  {
    route: 'servers:read',
    ask: (client, name) => client.get(server(name, '/secrets')),
    levels: ['read', 'call', 'publish', 'manage'],
    status: 200,
    family: 'registry',
  },
  {
    route: 'servers:write',
    ask: (client, name) => client.patch(server(name), { license: 'MIT' }),
    levels: ['manage'],
    status: 200,
    family: 'registry',
  },
  {
    route: 'servers:publish',
    ask: (client, name) => client.post(server(name, '/releases/none/promote')),
    levels: ['publish', 'manage'],
    status: 404,
    family: 'registry',
  },
  {
    route: 'connections:read',
    ask: (client, name) => client.get(connection(name)),
    levels: ['read', 'call', 'publish', 'manage'],
    status: 200,
    family: 'connections',
  },
  {
    route: 'connections:execute',
    ask: (client, name) => client.post(connection(name, '/.tools/echo'), { message: 'hi' }),
    levels: ['call', 'manage'],
    status: 200,
    family: 'connections',
  },
  {
    route: 'connections:write',
    ask: (client, name) => client.put(connection(name, '/recording'), { enabled: false }),
    levels: ['manage'],
    status: 200,
    family: 'connections',
  },
];

/** One route of each kind of the whole account. */
const ofAccount: Omit<Row, 'family'>[] = [
  {
    route: 'accounts:read',
    ask: (client) => client.get('/accounts/me/api-keys'),
    levels: ['read', 'call', 'publish', 'manage'],
    status: 200,
  },
  {
    route: 'accounts:write',
    ask: (client) => client.post('/accounts/me/api-keys', { name: 'child', scopes: ['read'] }),
    levels: ['manage'],
    status: 201,
  },
  {
    route: 'namespaces:write',
    ask: (client) => client.put(`/namespaces/${uniqueName('ns')}`),
    levels: ['manage'],
    status: 201,
  },
];

function expectRefused({ status, body }: Answer, { family }: Pick<Row, 'family'>, needed: RegExp): void {
  const text = expect.stringMatching(needed);
  expect([status, body]).toEqual([
    403,
    family === 'connections' ? { error: 'forbidden', message: text } : { error: text },
  ]);
}

describe('a key with scopes', () => {
  verifies('key:scopes', 'may do what its level says and no more, in both forms of errors', async () => {
    const statuses: unknown[] = [];
    for (const level of keyLevels) {
      const client = await scoped(level);
      for (const row of [...inNamespace, ...ofAccount.map((one) => ({ ...one, family: 'registry' as const }))]) {
        const answer = await row.ask(client, namespace);
        statuses.push([level, row.route, answer.status]);
        if (row.levels.includes(level))
          expect([level, row.route, answer.status]).toEqual([level, row.route, row.status]);
        else expectRefused(answer, row, /^Forbidden: this API key lacks the scope "\w+"/);
      }
    }
    expect(statuses).toHaveLength(4 * 9);
  });

  verifies('key:scopes', 'lacks the right to call, at the run endpoint and the MCP endpoints too', async () => {
    const message = { jsonrpc: '2.0', id: 1, method: 'ping' };
    const [reading, calling] = [await scoped('read'), await scoped('call')];
    for (const path of [connection(namespace, '/mcp'), `/connect/${namespace}/.mcp`, `/run/${namespace}--weather`]) {
      const refused = await reading.post(path, message);
      expect([path, refused.status, refused.body.error.message]).toEqual([
        path,
        403,
        expect.stringContaining('lacks the scope "call"'),
      ]);
      expect((await calling.post(path, message)).status).not.toBe(403);
    }
  });

  verifies('key:scopes', 'is limited to the namespace of its scope', async () => {
    for (const level of keyLevels) {
      const client = await scoped(`${level}:${namespace}`);
      for (const row of inNamespace.filter(({ levels }) => levels.includes(level))) {
        const own = await row.ask(client, namespace);
        expect([level, row.route, own.status]).toEqual([level, row.route, row.status]);
        expectRefused(await row.ask(client, sibling), row, new RegExp(`lacks the scope "\\w+" or "\\w+:${sibling}"`));
      }
      for (const row of ofAccount) expectRefused(await row.ask(client, ''), { family: 'registry' }, /lacks the scope/);
      expect((await client.get('/accounts/me')).body.id).toBe(owner.id);
    }
  });

  verifies('key:scopes', 'finds foreign targets missing, not forbidden: as a key without scopes does', async () => {
    const unlimited = app.as(owner);
    for (const client of [await scoped('read'), await scoped(`manage:${namespace}`), await scoped(`call:${foreign}`)]) {
      for (const { route, ask } of inNamespace) {
        const [limited, full] = [await ask(client, foreign), await ask(unlimited, foreign)];
        // A route whose kind the key has nowhere says so of every target.
        if (limited.status === 403 && full.status === 404) {
          expect((await ask(client, 'no-such-namespace')).body).toEqual(limited.body);
        } else expect([route, limited.status, limited.body]).toEqual([route, full.status, full.body]);
      }
    }
  });
});

describe('scopes of a new key', () => {
  verifies('key:scopes', 'are returned and listed as given; without them a key has all rights', async () => {
    const scopes = ['call:acme', 'read'];
    const { id } = await makeKey({ scopes });
    const [unlimited, none] = [await makeKey(), await makeKey({ scopes: null })];
    const { body } = await app.as(owner).get('/accounts/me/api-keys');
    const listed = (wanted: string) => body.apiKeys.find((one: Made) => one.id === wanted).scopes as unknown;
    expect([id, unlimited.id, none.id].map(listed)).toEqual([scopes, null, null]);
  });

  verifies('key:scopes', 'are rejected with 400 when unknown, naming them and the known ones', async () => {
    const unknown = ['write', 'own', 'call:', 'call:a:b', 'call:No', 'discover', ''];
    for (const scope of unknown) {
      const { status, body } = await app
        .as(owner)
        .post('/accounts/me/api-keys', { name: 'x', scopes: ['read', scope] });
      expect([scope, status]).toEqual([scope, 400]);
      expect(body.error).toMatch(/"call:acme"/);
      expect(body.error).toContain(`"${scope}" is not a scope: the scopes are read, call, publish, manage, each`);
    }
    for (const scopes of [[], 'read', [7], {}]) {
      const { status, body } = await app.as(owner).post('/accounts/me/api-keys', { name: 'x', scopes });
      expect([scopes, status, body]).toEqual([scopes, 400, { error: expect.stringMatching(/scopes/) }]);
    }
  });

  verifies('key:scopes', 'are never more than those of the key that makes it', async () => {
    const maker = await scoped('manage');
    const refused = await maker.post('/accounts/me/api-keys', { name: 'x' });
    expect([refused.status, refused.body]).toEqual([
      403,
      {
        error: expect.stringMatching(
          /^Forbidden: an API key cannot create a key with broader scopes than its own: manage/,
        ),
      },
    ]);
    const made = await maker.post('/accounts/me/api-keys', { name: 'x', scopes: ['manage', 'call:acme'] });
    expect(made.status).toBe(201);
  });
});

describe('GET /accounts/me/access', () => {
  verifies('key:access', 'says in words what the key may do, whatever its scopes are', async () => {
    const expiresAt = '2099-01-01T00:00:00.000Z';
    const { id, key } = await makeKey({ name: 'agent', scopes: [`call:${namespace}`, 'publish'], expiresAt });
    const limited = await app.as({ ...owner, key }).get('/accounts/me/access');
    expect([limited.status, limited.body]).toEqual([
      200,
      {
        account: expect.objectContaining({ id: owner.id, name: owner.name }),
        apiKey: { id, name: 'agent', expiresAt },
        scopes: [`call:${namespace}`, 'publish'],
        rights: [
          `Read what the account has in the namespace ${namespace}, and call its servers and connections.`,
          'Read what the account has in all of its namespaces, and publish releases and skills.',
        ],
      },
    ]);
    const full = await app.as(owner).get('/accounts/me/access');
    expect(full.body).toMatchObject({ scopes: null, rights: ['Do everything that the account may do.'] });
    const operator = await app.as(app.operator).get('/accounts/me/access');
    expect(operator.body.rights).toEqual([
      'Do everything that the account may do.',
      'Manage all accounts and their keys, as the operator.',
    ]);
    for (const scope of ['read', `manage:${namespace}`]) {
      expect((await (await scoped(scope)).get('/accounts/me/access')).body.scopes).toEqual([scope]);
    }
  });
});
