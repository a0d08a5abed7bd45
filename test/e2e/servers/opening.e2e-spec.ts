import { beforeAll, describe, expect, test } from '@jest/globals';
import { testAccount, testApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import { pathOf } from '../../support/database/server-rows.js';
import { createNamespace, createOrganization, createServer } from '../../support/factories.js';
import { publish } from '../../support/releases/releases.js';

const app = testApp();
/** A process whose new servers are public by default. */
let open: TestApp;
const owner = testAccount(app);
const manager = testAccount(app);
const namespaceManager = testAccount(app);
const lead = testAccount(app);
const editor = testAccount(app);
const member = testAccount(app);
const callers: Record<string, TestAccount> = {};
let own: string;
let inTeam: string;

const visibilities = ['public', 'restricted', 'private'];
const pairs = visibilities.flatMap((from) => visibilities.map((to) => [from, to]));

async function keyOf(account: TestAccount, scope: string, accountId = 'me'): Promise<TestAccount> {
  const { status, body } = await app
    .as(account)
    .post(`/accounts/${accountId}/api-keys`, { name: scope, scopes: [scope] });
  expect(status).toBe(201);
  return { ...account, key: body.key as string };
}

async function grant(path: string, { id }: TestAccount): Promise<void> {
  expect((await app.as(owner).post(`${path}/grants`, { account: id, level: 'manage' })).status).toBe(201);
}

beforeAll(async () => {
  open = await app.sibling({ DEFAULT_VISIBILITY: 'public' });
  own = await createServer(app, owner);
  const namespace = own.split('/')[0];
  await grant(pathOf(own), manager);
  await grant(`/namespaces/${namespace}`, namespaceManager);
  const { id: organizationId } = await createOrganization(app, { owner: lead, editor, member });
  const team = uniqueName('team');
  await app.as(lead).put(`/namespaces/${team}`, { organizationId }).expect(201);
  inTeam = await createServer(app, lead, { namespace: team });
  Object.assign(callers, {
    owner,
    'owner with a manage key': await keyOf(owner, `manage:${namespace}`),
    'owner with a publish key': await keyOf(owner, `publish:${namespace}`),
    'owner with a manage key of another namespace': await keyOf(owner, `manage:${await createNamespace(app, owner)}`),
    manager,
    'namespace manager': namespaceManager,
    'namespace manager with a publish key': await keyOf(namespaceManager, `publish:${namespace}`),
    lead,
    'lead with a publish key': await keyOf(lead, 'publish'),
    editor,
    member,
    'key of the organization': await keyOf(lead, 'manage', organizationId),
  });
});

const interfaces: Record<string, (by: TestAccount, server: string, visibility: string) => Promise<{ status: number }>> =
  {
    PATCH: (by, server, visibility) => app.as(by).patch(pathOf(server), { visibility }),
    PUT: (by, server, visibility) => app.as(by).put(pathOf(server), { visibility }),
    'PUT under the namespace': (by, server, visibility) =>
      app.as(by).put(`/namespaces/${server.replace('/', '/servers/')}`, { visibility }),
    publish: (by, server, visibility) =>
      publish(app, by, server, { type: 'external', upstreamUrl: 'http://127.0.0.1:9/mcp', visibility }),
  };

async function visibilityOf(server: string): Promise<string> {
  const [row] = await app.database.query<[{ visibility: string }]>(
    `SELECT s.visibility FROM servers s JOIN namespaces n ON n.id = s.namespace_id WHERE n.name || '/' || s.name = $1`,
    [server],
  );
  return row.visibility;
}

async function setVisibility(server: string, visibility: string): Promise<void> {
  const by = server === own ? owner : lead;
  await app.as(by).patch(pathOf(server), { visibility, confirmSecrets: true }).expect(200);
}

/** What each caller can do: `open`, `close` only, or nothing. In the order PATCH, PUT, PUT under the namespace, publish. */
const rows: [caller: string, rights: ('open' | 'close' | 'nothing')[]][] = [
  ['owner', ['open', 'open', 'open', 'open']],
  ['owner with a manage key', ['open', 'open', 'open', 'open']],
  ['owner with a publish key', ['nothing', 'nothing', 'nothing', 'close']],
  ['owner with a manage key of another namespace', ['nothing', 'nothing', 'nothing', 'nothing']],
  ['manager', ['close', 'nothing', 'nothing', 'close']],
  ['namespace manager', ['close', 'close', 'close', 'close']],
  ['namespace manager with a publish key', ['nothing', 'nothing', 'nothing', 'close']],
  ['lead', ['open', 'open', 'open', 'open']],
  ['lead with a publish key', ['nothing', 'nothing', 'nothing', 'close']],
  ['editor', ['close', 'close', 'close', 'close']],
  ['member', ['nothing', 'nothing', 'nothing', 'nothing']],
  ['key of the organization', ['close', 'close', 'close', 'close']],
];

describe('the visibility of a server', () => {
  test.each(
    rows.flatMap(([caller, rights]) => Object.keys(interfaces).map((door, at) => [caller, door, rights[at]] as const)),
  )('set by the %s with %s: %s', async (caller, door, right) => {
    const server = rows.findIndex(([name]) => name === caller) < 7 ? own : inTeam;
    const results: Record<string, [boolean, string]> = {};
    const expected: typeof results = {};
    for (const [from, to] of pairs) {
      await setVisibility(server, from);
      const { status } = await interfaces[door](callers[caller], server, to);
      const isOpening = visibilities.indexOf(to) < visibilities.indexOf(from);
      const isDone = right === 'open' || (right === 'close' && !isOpening);
      results[`${from} to ${to}`] = [status < 300, await visibilityOf(server)];
      expected[`${from} to ${to}`] = [isDone, isDone ? to : from];
      if (!isDone) expect([403, 404]).toContain(status);
    }
    expect(results).toEqual(expected);
  });

  test('says who can open it', async () => {
    const message = 'Forbidden: only the owner of a server, or an owner of its organization, makes it more visible.';
    for (const [by, server] of [
      [manager, own],
      [editor, inTeam],
    ] as const) {
      await setVisibility(server, 'private');
      const { status, body } = await app.as(by).patch(pathOf(server), { visibility: 'restricted' });
      expect([status, body.error]).toEqual([403, expect.stringContaining(message)]);
    }
  });

  test('takes the confirmation for its secrets from its owners only', async () => {
    for (const [server, by, others] of [
      [own, owner, [manager, namespaceManager]],
      [inTeam, lead, [editor, callers['key of the organization']]],
    ] as const) {
      await app.as(by).put(pathOf(server, '/secrets'), { name: 'TOKEN', value: 'secret' }).expect(200);
      const body = { visibility: 'public', confirmSecrets: true };
      for (const from of ['private', 'public']) {
        await setVisibility(server, from);
        for (const other of others) expect((await app.as(other).patch(pathOf(server), body)).status).toBe(403);
        expect(await visibilityOf(server)).toBe(from);
      }
      expect((await app.as(by).patch(pathOf(server), body)).status).toBe(200);
    }
  });
});

describe('a new server', () => {
  test.each([
    ['owner', ['public', 'public', 'restricted', 'private']],
    ['namespace manager', ['restricted', null, 'restricted', 'private']],
    ['lead', ['public', 'public', 'restricted', 'private']],
    ['editor', ['restricted', null, 'restricted', 'private']],
    ['key of the organization', ['restricted', null, 'restricted', 'private']],
  ])('created by the %s has the visibility %j: by default, and for each in the body', async (caller, expected) => {
    const inside = (['owner', 'namespace manager'].includes(caller) ? own : inTeam).split('/')[0];
    const results: unknown[] = [];
    for (const visibility of [undefined, ...visibilities]) {
      const server = `${inside}/${uniqueName('new')}`;
      const { status } = await open.as(callers[caller]).put(pathOf(server), { visibility });
      results.push(status === 201 ? await visibilityOf(server) : null);
      if (status !== 201) expect(status).toBe(403);
    }
    expect(results).toEqual(expected);
  });
});

describe('a transfer of a server that is not public', () => {
  test('requires an owner of the organization if the target belongs to another account', async () => {
    for (const [by, to, status] of [
      [editor, editor, 403],
      [editor, await createOrganization(app, { owner, editor }), 403],
      [lead, lead, 200],
      [lead, await createOrganization(app, { owner, editor: lead }), 200],
    ] as const) {
      const server = await createServer(app, lead, { namespace: inTeam.split('/')[0], visibility: 'private' });
      const targetNamespace = uniqueName('ns');
      const claim = to === by ? {} : { organizationId: to.id };
      expect((await app.as(by).put(`/namespaces/${targetNamespace}`, claim)).status).toBe(201);
      const moved = await app
        .as(by)
        .post(pathOf(server, '/transfer'), { targetNamespace, targetOrganizationId: to.id });
      expect([by.name, to.name, moved.status]).toEqual([by.name, to.name, status]);
    }
  });
});
