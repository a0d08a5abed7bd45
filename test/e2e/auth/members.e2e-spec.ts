import { beforeAll, describe, expect } from '@jest/globals';
import supertest from 'supertest';
import type { Role } from '../../../src/modules/auth/access.types.js';
import { testAccount, testApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import { releaseServer } from '../../support/database/server-rows.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { LoginClient } from '../../support/oauth-clients/login.js';
import { openBrowser, signedInBrowser } from '../../support/people/browser-session.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { until } from '../../support/until.js';
import { aloneVerifies, verifies } from '../../support/verifies.js';

/** The longest time in which a membership, or what it holds open, may outlive its end. */
const END_MS_MAX = 5_000;

const PASSWORD = 'correct horse battery';

const app = testApp();
/** A process that receives no message of the others: it listens on another channel. */
let deaf: TestApp;
let upstream: Upstream;
const owner = testAccount(app);
const editor = testAccount(app);
const member = testAccount(app);
const guest = testAccount(app);
const stranger = testAccount(app);
const everybody: [Role, TestAccount][] = [
  ['owner', owner],
  ['editor', editor],
  ['member', member],
  ['guest', guest],
];

beforeAll(async () => {
  upstream = await startUpstream();
  deaf = await app.sibling({ QUEUE_PREFIX: uniqueName('deaf') });
});

const listTools = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

type Asked = [method: 'get' | 'put' | 'post' | 'patch' | 'delete', path: string, body?: object];

async function ask(account: TestAccount, [method, path, body]: Asked, at: TestApp = app): Promise<supertest.Response> {
  const request = supertest(at.url)[method](path).set('authorization', `Bearer ${account.key}`);
  return body === undefined ? request : request.send(body);
}

const setMember = (by: TestAccount, organization: { id: string }, account: { id: string }, role: Role, at?: TestApp) =>
  ask(by, ['put', `/accounts/${organization.id}/members/${account.id}`, { role }], at);

const removeMember = (
  by: TestAccount,
  organization: { id: string },
  account: { id: string },
  query = '',
  at?: TestApp,
) => ask(by, ['delete', `/accounts/${organization.id}/members/${account.id}${query}`], at);

/** A new organization with these members. */
async function organizationOf(members: [Role, TestAccount][]): Promise<TestAccount> {
  const organization = await app.account({ kind: 'organization' });
  for (const [role, account] of members) {
    const added = await setMember(app.operator, organization, account, role);
    expect([added.status, added.body]).toEqual([200, expect.objectContaining({ accountId: account.id, role })]);
  }
  return organization;
}

/** Accepts (`post`) or declines (`delete`) an invitation, by the response to the request that created it. */
const answer = (by: TestAccount, { body }: supertest.Response, method: 'post' | 'delete') =>
  ask(by, [method, `/accounts/me/invitations/${(body as { id: string }).id}`]);

const invitationsOf = async (account: TestAccount): Promise<{ id: string; role: Role }[]> =>
  (await ask(account, ['get', '/accounts/me/invitations'])).body.invitations;

/** A namespace of an organization with a connection. */
async function connectionOf(organization: TestAccount, by = owner): Promise<{ namespace: string; path: string }> {
  const namespace = uniqueName('org');
  const claimed = await ask(by, ['put', `/namespaces/${namespace}`, { organizationId: organization.id }]);
  expect(claimed.status).toBe(201);
  return createConnection(app, by, { mcpUrl: upstream.url }, { namespace });
}

/** A private server. @returns its qualified name */
async function privateServer(by: TestAccount, namespace: string): Promise<string> {
  const name = await createServer(app, by, { namespace });
  const hidden = await ask(by, ['patch', `/servers/${encodeURIComponent(name)}`, { visibility: 'private' }]);
  expect(hidden.status).toBe(200);
  return name;
}

describe('a role', () => {
  verifies(
    'team:roles',
    'opens as much as the table says, with a key, to members, former members and outsiders',
    async () => {
      const organization = await organizationOf(everybody);
      const { namespace, path } = await connectionOf(organization, editor);
      const server = await privateServer(editor, namespace);
      const removed = await app.account();
      await setMember(app.operator, organization, removed, 'editor');
      expect((await ask(removed, ['get', path])).status).toBe(200);
      expect((await removeMember(owner, organization, removed)).status).toBe(200);

      const serverPath = `/servers/${encodeURIComponent(server)}`;
      const own = `/accounts/${organization.id}`;
      const table: [asked: Asked, statuses: [owner: number, editor: number, member: number, guest: number]][] = [
        [
          ['get', serverPath],
          [200, 200, 200, 404],
        ],
        [
          ['get', path],
          [200, 200, 200, 404],
        ],
        [
          ['get', `${path}/.tools`],
          [200, 200, 200, 404],
        ],
        [
          ['post', `${path}/.tools/echo`, { message: 'hello' }],
          [200, 200, 200, 404],
        ],
        [
          ['post', `${path}/mcp`, listTools],
          [200, 200, 200, 404],
        ],
        [
          ['get', `${path}/logs`],
          [200, 200, 200, 404],
        ],
        [
          ['get', `${path}/recording`],
          [200, 200, 403, 404],
        ],
        [
          ['get', `${serverPath}/secrets`],
          [200, 200, 403, 404],
        ],
        [
          ['get', `/connect/${namespace}`],
          [200, 200, 403, 404],
        ],
        [
          ['put', path, { name: 'renamed' }],
          [200, 200, 403, 404],
        ],
        [
          ['patch', serverPath, { license: 'MIT' }],
          [200, 200, 403, 403],
        ],
        [
          ['put', `/namespaces/${namespace}`],
          [201, 201, 409, 409],
        ],
        [
          ['get', `${path}/grants`],
          [200, 200, 403, 404],
        ],
        [
          ['get', `${own}/members`],
          [200, 200, 200, 403],
        ],
        [
          ['get', `${own}/api-keys`],
          [200, 403, 403, 403],
        ],
        [
          ['post', `${own}/api-keys`, { name: 'ci' }],
          [201, 403, 403, 403],
        ],
        [
          ['put', `${own}/members/${stranger.id}`, { role: 'everything' }],
          [400, 403, 403, 403],
        ],
        [
          ['delete', `${own}/members/${owner.id}`],
          [409, 403, 403, 403],
        ],
        [
          ['delete', `/namespaces/${namespace}`],
          [409, 403, 403, 403],
        ],
      ];
      const outsiders = [removed, stranger];
      for (const [asked, expected] of table) {
        const statuses = [];
        for (const [, account] of everybody) statuses.push((await ask(account, asked)).status);
        expect([asked, statuses]).toEqual([asked, expected]);
        const isOfAccount = asked[1].startsWith('/accounts/');
        for (const account of outsiders) {
          expect([asked, (await ask(account, asked)).status]).toEqual([asked, isOfAccount ? 404 : expected[3]]);
        }
      }
      const locked = await startUpstream({ requireHeaders: { authorization: 'Bearer secret' } });
      const waiting = (await createConnection(app, editor, { mcpUrl: locked.url }, { namespace })).path;
      const links = [];
      for (const account of [editor, member]) links.push((await ask(account, ['get', waiting])).body.status.setupUrl);
      expect(links).toEqual([expect.stringContaining('/setup/'), undefined]);
      const deletions: Asked[] = [
        ['delete', path],
        ['delete', serverPath],
      ];
      for (const deletion of deletions) {
        expect((await ask(member, deletion)).status).toBe(403);
        expect([200, 204]).toContain((await ask(editor, deletion)).status);
      }
    },
  );

  verifies('team:lists', 'shows what the organization has in lists, to others than guests', async () => {
    const organization = await organizationOf(everybody);
    const { namespace } = await connectionOf(organization);
    const qualifiedName = await privateServer(owner, namespace);
    const sees: Record<string, boolean[]> = {};
    for (const [role, account] of everybody) {
      const namespaces = await ask(account, ['get', '/namespaces']);
      const servers = await ask(account, ['get', `/servers?namespace=${namespace}`]);
      const names = (servers.body.servers as { qualifiedName: string }[]).map((row) => row.qualifiedName);
      sees[role] = [
        (namespaces.body.namespaces as { name: string }[]).some(({ name }) => name === namespace),
        (await ask(account, ['get', `/servers/${encodeURIComponent(qualifiedName)}`])).status === 200,
        names.includes(qualifiedName),
      ];
    }
    const yes = [true, true, expect.any(Boolean)];
    expect(sees).toEqual({ owner: yes, editor: yes, member: yes, guest: [false, false, false] });
  });

  verifies('team:editors', 'lets an editor grant to members, and make nothing public', async () => {
    const organization = await organizationOf(everybody);
    const { namespace, path } = await connectionOf(organization, editor);
    const server = await privateServer(editor, namespace);
    const serverPath = `/servers/${encodeURIComponent(server)}`;
    for (const target of [serverPath, path, `/namespaces/${namespace}`]) {
      const grants = `${target}/grants`;
      const given = await ask(editor, ['post', grants, { account: guest.id, level: 'call' }]);
      expect([given.status, given.body.account?.id]).toEqual([201, guest.id]);
      const others = { everyone: { everyone: true }, outsider: { account: stranger.id } };
      for (const [name, subject] of Object.entries(others)) {
        const refused = await ask(editor, ['post', grants, { ...subject, level: 'call' }]);
        expect([name, refused.status, refused.text]).toEqual([name, 403, expect.stringContaining('to members of the')]);
      }
      expect((await ask(editor, ['post', grants, { account: organization.id, level: 'call' }])).status).toBe(400);
      const byOwner = await ask(owner, ['post', grants, { account: stranger.id, level: 'call' }]);
      expect(byOwner.status).toBe(201);
      expect((await ask(editor, ['get', grants])).body.pagination.totalCount).toBe(2);
      expect((await ask(editor, ['delete', `${grants}/${byOwner.body.id}`])).status).toBe(403);
      expect((await ask(member, ['get', grants])).status).toBe(403);
      expect((await ask(editor, ['delete', `${grants}/${given.body.id}`])).status).toBe(200);
    }
    const open = { visibility: 'public' };
    for (const asked of [
      ['patch', serverPath, open],
      ['put', serverPath, open],
      ['put', `${serverPath}-2`, open],
    ] as Asked[]) {
      const refused = await ask(editor, asked);
      expect([asked, refused.status, refused.body.error]).toEqual([
        asked,
        403,
        expect.stringContaining('makes it more visible'),
      ]);
    }
    expect((await ask(editor, ['get', serverPath])).body.visibility).toBe('private');
    for (const account of [owner, editor]) expect((await ask(account, ['patch', serverPath, open])).status).toBe(200);
  });

  verifies('team:editors', 'lets an editor decide access requests: grant to members, deny any', async () => {
    const organization = await organizationOf(everybody);
    const { namespace } = await connectionOf(organization, editor);
    const serverPath = `/servers/${encodeURIComponent(await privateServer(editor, namespace))}`;
    expect((await ask(owner, ['patch', serverPath, { visibility: 'restricted' }])).status).toBe(200);
    const decide = async (by: TestAccount, account: TestAccount, body: object) => {
      const { body: request } = await ask(account, ['post', `${serverPath}/access-requests`, { text: 'Please.' }]);
      return (await ask(by, ['post', `${serverPath}/access-requests/${request.id}`, body])).status;
    };
    const grant = { grant: { level: 'call' } };
    const colleague = await app.account();
    await setMember(app.operator, organization, colleague, 'guest');
    expect(await decide(editor, colleague, grant)).toBe(200);
    expect(await decide(editor, stranger, grant)).toBe(403);
    expect(await decide(editor, stranger, { refuse: 'No.' })).toBe(200);
    expect(await decide(owner, stranger, grant)).toBe(200);
  });

  verifies(
    'team:grants',
    'takes what was granted to the organization: a member calls only, a guest has nothing of it',
    async () => {
      const organization = await organizationOf(everybody);
      const { path } = await createConnection(app, stranger, { mcpUrl: upstream.url });
      const granted = await ask(stranger, ['post', `${path}/grants`, { account: organization.id, level: 'manage' }]);
      expect(granted.status).toBe(201);
      const statuses: Record<string, number[]> = {};
      for (const [role, account] of everybody) {
        const tools = await ask(account, ['get', `${path}/.tools`]);
        statuses[role] = [tools.status, (await ask(account, ['get', `${path}/recording`])).status];
        const received = await ask(account, ['get', '/accounts/me/grants']);
        expect(received.body.grants).toHaveLength(role === 'guest' ? 0 : 1);
      }
      expect(statuses).toEqual({ owner: [200, 200], editor: [200, 200], member: [200, 403], guest: [404, 404] });
    },
  );
});

describe('members', () => {
  verifies('team:members', 'are listed by name, and begin with an owner whom the operator adds', async () => {
    const organization = await app.account({ kind: 'organization' });
    const early = await setMember(app.operator, organization, member, 'member');
    expect([early.status, early.body.error]).toEqual([409, expect.stringContaining('keeps an owner')]);
    for (const [account, status] of [
      [organization, 404],
      [{ id: organization.id.replace(/^./, (digit) => (digit === '0' ? '1' : '0')) }, 404],
      [owner, 200],
    ] as const) {
      expect((await setMember(app.operator, organization, account, 'owner')).status).toBe(status);
    }
    expect((await setMember(app.operator, organization, guest, 'guest')).status).toBe(200);
    const { body } = await ask(owner, ['get', `/accounts/${organization.id}/members`]);
    const names = [owner.name, guest.name].toSorted();
    expect((body.members as { accountName: string }[]).map(({ accountName }) => accountName)).toEqual(names);
    expect(body.pagination.totalCount).toBe(2);
    expect((await setMember(owner, { id: owner.id }, guest, 'owner')).status).toBe(409);
  });

  verifies('team:memberships', 'are listed to the account itself and to the operator, by name', async () => {
    const account = await app.account();
    const organizations = [await app.account({ kind: 'organization' }), await app.account({ kind: 'organization' })];
    for (const { id } of organizations) {
      await app.as(app.operator).put(`/accounts/${id}/members/${account.id}`, { role: 'owner' });
    }
    const [first, second] = organizations.map(({ id, name }) => ({ organizationId: id, organizationName: name }));
    const list = async (by: TestAccount, id = account.id) => (await app.as(by).get(`/accounts/${id}/memberships`)).body;
    const expected = [first, second].sort((a, b) => (a.organizationName < b.organizationName ? -1 : 1));
    expect(await list(account, 'me')).toMatchObject({
      memberships: expected.map((one) => ({ ...one, role: 'owner' })),
    });
    expect((await list(app.operator)).memberships).toHaveLength(2);
    expect(await list(stranger)).toMatchObject({ error: 'Account not found' });
    await app.as(app.operator).patch(`/accounts/${first.organizationId}`, { disabled: true });
    expect(await list(account)).toMatchObject({ memberships: [second] });
  });

  verifies('team:last-owner', 'keep one owner, also of two who leave at the same moment in two processes', async () => {
    const organization = await organizationOf([
      ['owner', owner],
      ['owner', editor],
    ]);
    const left = await Promise.all([
      removeMember(owner, organization, owner),
      removeMember(editor, organization, editor, '', deaf),
    ]);
    expect(left.map(({ status }) => status).toSorted()).toEqual([200, 409]);
    const last = left[0].status === 409 ? owner : editor;
    expect((await setMember(app.operator, organization, last, 'editor')).status).toBe(409);
  });

  verifies('team:leave', 'leave by themselves, and change nobody else', async () => {
    const organization = await organizationOf(everybody);
    const { path } = await connectionOf(organization);
    expect((await ask(owner, ['post', `${path}/grants`, { account: guest.id, level: 'call' }])).status).toBe(201);
    expect((await removeMember(member, organization, guest)).status).toBe(403);
    for (const account of [member, guest])
      expect((await removeMember(account, organization, account)).status).toBe(200);
    expect((await removeMember(owner, organization, member)).status).toBe(404);
    // What was granted to the guest by the organization ended with the membership.
    expect((await ask(owner, ['get', `${path}/grants`])).body.grants).toEqual([]);
  });
});

describe('an account that an owner adds', () => {
  verifies('team:consent', 'is invited, and becomes a member when it accepts', async () => {
    const organization = await organizationOf([['owner', owner]]);
    const { path } = await connectionOf(organization);
    const account = await app.account();
    const first = await setMember(owner, organization, account, 'guest');
    expect([first.status, first.body]).toEqual([
      202,
      expect.objectContaining({ organizationName: organization.name, accountId: account.id, role: 'guest' }),
    ]);
    const sent = await setMember(owner, organization, account, 'member');
    expect(await invitationsOf(account)).toEqual([sent.body]);
    const { body: ofTeam } = await ask(owner, ['get', `/accounts/${organization.id}/invitations`]);
    expect(ofTeam).toMatchObject({ invitations: [sent.body], pagination: { totalCount: 1 } });
    const { body } = await ask(account, ['get', '/accounts/me/memberships']);
    expect([body.memberships, (await ask(account, ['get', path])).status]).toEqual([[], 404]);
    // Replaced by another one, and for nobody else.
    expect((await answer(account, first, 'post')).status).toBe(404);
    for (const by of [stranger, owner, app.operator]) {
      expect((await answer(by, sent, 'post')).status).toBe(404);
      expect((await answer(by, sent, 'delete')).status).toBe(404);
    }
    const key = await ask(account, ['post', '/accounts/me/api-keys', { name: 'calls', scopes: ['call'] }]);
    expect((await answer({ ...account, key: key.body.key as string }, sent, 'post')).status).toBe(403);
    const accepted = await answer(account, sent, 'post');
    expect([accepted.status, accepted.body]).toEqual([
      200,
      expect.objectContaining({ organizationId: organization.id, role: 'member' }),
    ]);
    expect((await ask(account, ['get', path])).status).toBe(200);
    expect([await invitationsOf(account), (await answer(account, sent, 'post')).status]).toEqual([[], 404]);
    expect((await setMember(owner, organization, account, 'editor')).status).toBe(200);
    await removeMember(account, organization, account);
    expect((await setMember(owner, organization, account, 'owner')).status).toBe(202);
  });

  const ends: [
    string,
    (context: Record<'team' | 'maker' | 'account', TestAccount> & { sent: supertest.Response }) => unknown,
  ][] = [
    ['declined', ({ account, sent }) => answer(account, sent, 'delete')],
    ['withdrawn', ({ team, account }) => removeMember(owner, team, account)],
    [
      'withdrawn by its id',
      ({ team, sent }) => ask(owner, ['delete', `/accounts/${team.id}/invitations/${sent.body.id}`]),
    ],
    ['of a former owner', ({ team, maker }) => setMember(owner, team, maker, 'editor')],
    [
      'of a disabled organization',
      ({ team }) => ask(app.operator, ['patch', `/accounts/${team.id}`, { disabled: true }]),
    ],
    [
      'past its end',
      ({ sent }) => app.database.query('UPDATE invitations SET expires_at = now() WHERE id = $1', [sent.body.id]),
    ],
  ];

  verifies('team:consent', 'cannot accept an invitation that has ended', async () => {
    for (const [name, end] of ends) {
      const [maker, account] = [await app.account(), await app.account()];
      const team = await organizationOf([
        ['owner', owner],
        ['owner', maker],
      ]);
      const sent = await setMember(maker, team, account, 'member');
      expect([name, sent.status, await invitationsOf(account)]).toEqual([name, 202, [sent.body]]);
      await end({ team, maker, account, sent });
      expect([name, await invitationsOf(account)]).toEqual([name, []]);
      expect([name, (await answer(account, sent, 'post')).status]).toEqual([name, 404]);
    }
  });
});

describe('unused invitations', () => {
  const link = (organization: TestAccount) =>
    ask(owner, ['post', `/accounts/${organization.id}/members/invitations`, { role: 'owner' }]);
  const opened = async ({ body }: supertest.Response) => (await fetch(String(body.url))).status;

  verifies(
    'team:invitations',
    'are listed without their secrets, and can be revoked: links and passwords',
    async () => {
      const organization = await organizationOf([['owner', owner]]);
      const account = await app.account();
      const join = await link(organization);
      const password = await ask(app.operator, ['post', `/accounts/${account.id}/invitations`]);
      for (const [sent, by, of, role] of [
        [join, owner, organization, 'owner'],
        [password, app.operator, account, null],
      ] as const) {
        expect(await opened(sent)).toBe(200);
        const list = await ask(by, ['get', `/accounts/${of.id}/invitations`]);
        const [invitation] = list.body.invitations as Record<string, string | null>[];
        const accountId = role === null ? account.id : null;
        expect(invitation).toMatchObject({ accountId, role, createdBy: by.id, madeByKey: expect.any(String) });
        expect(JSON.stringify(list.body)).not.toContain('token');
        expect((await ask(by, ['delete', `/accounts/${of.id}/invitations/${invitation?.id}`])).status).toBe(200);
        expect(await opened(sent)).toBe(410);
      }
    },
  );

  verifies('team:invitations', 'are 100 of an organization at most', async () => {
    const organization = await organizationOf([['owner', owner]]);
    await app.database.query(
      `INSERT INTO invitations (hash, account_id, role, created_by, expires_at)
       SELECT sha256(($1 || n)::bytea), $1::uuid, 'member', $2, now() + interval '1 day' FROM generate_series(1, 99) n`,
      [organization.id, owner.id],
    );
    expect((await link(organization)).status).toBe(201);
    const refused = [await link(organization), await setMember(owner, organization, await app.account(), 'member')];
    for (const { status, body } of refused) {
      expect([status, body.error]).toEqual([409, expect.stringContaining('100 unused invitations, the maximum')]);
    }
  });

  verifies('team:invitations', 'create 5,000 accounts for an organization at most', async () => {
    const organization = await organizationOf([['owner', owner]]);
    await app.database.query(
      `INSERT INTO accounts (name, kind, made_for) SELECT $1 || n, 'user', $1::uuid FROM generate_series(1, 4999) n`,
      [organization.id],
    );
    const join = async () => {
      const form = { name: uniqueName('new'), password: PASSWORD, repeated: PASSWORD };
      const { pathname, search } = new URL(String((await link(organization)).body.url));
      return openBrowser(app).submit(pathname + search, form);
    };
    expect((await join()).status).toBe(303);
    expect((await join()).text).toContain('have created 5000 accounts, the maximum');
    await app.database.query(
      'DELETE FROM accounts WHERE made_for = $1 AND id NOT IN (SELECT account_id FROM memberships)',
      [organization.id],
    );
  });
});

describe('an API key of an organization', () => {
  verifies('team:keys', 'manages but does not own, and outlives the member who made it', async () => {
    const organization = await organizationOf([
      ['owner', owner],
      ['owner', editor],
    ]);
    const made = await ask(editor, ['post', `/accounts/${organization.id}/api-keys`, { name: 'ci' }]);
    const key = { ...organization, key: made.body.key as string };
    const { path } = await connectionOf(organization, key);
    for (const [asked, status] of [
      [['get', path], 200],
      [['get', `${path}/grants`], 200],
      [['post', `${path}/grants`, { everyone: true, level: 'call' }], 403],
      [['get', '/accounts/me/members'], 200],
      [['post', '/accounts/me/api-keys', { name: 'another' }], 403],
    ] as [Asked, number][]) {
      expect([asked, (await ask(key, asked)).status]).toEqual([asked, status]);
    }
    const left = await removeMember(owner, organization, editor);
    const keys = [{ id: made.body.id, name: 'ci' }];
    expect(left.body).toEqual({ success: true, keys, revoked: false });
    expect((await ask(key, ['get', path])).status).toBe(200);

    await setMember(app.operator, organization, editor, 'owner');
    expect((await removeMember(owner, organization, editor, '?revokeKeys=true')).body).toEqual({
      success: true,
      keys,
      revoked: true,
    });
    expect((await ask(key, ['get', path])).status).toBe(401);
  });
});

describe('the first member', () => {
  verifies('team:no-sign-in', 'revokes the browser sessions of the organization, whose keys remain valid', async () => {
    const organization = await app.account({ kind: 'organization' });
    await signedInBrowser(app, organization);
    const sessions = () =>
      app.database.query<unknown[]>('SELECT FROM sessions WHERE account_id = $1', [organization.id]);
    expect(await sessions()).toHaveLength(1);
    expect((await setMember(organization, organization, owner, 'guest')).status).toBe(409);
    const invited = await setMember(organization, organization, owner, 'owner');
    expect([invited.status, (await sessions()).length]).toEqual([202, 1]);
    expect((await answer(owner, invited, 'post')).status).toBe(200);
    expect(await sessions()).toHaveLength(0);
    await expect(signedInBrowser(app, organization)).rejects.toThrow();
    for (const fields of [
      { key: organization.key },
      { name: organization.name, password: 'a long password' },
    ] as Record<string, string>[]) {
      const { status, text } = await openBrowser(app).submit('/login', fields);
      expect([status, text]).toEqual([403, expect.stringContaining('sign in with their own accounts')]);
    }
    const link = await ask(app.operator, ['post', `/accounts/${organization.id}/invitations`]);
    expect([link.status, link.body.error]).toEqual([409, expect.stringContaining('with members')]);
    expect((await ask(organization, ['get', '/accounts/me'])).status).toBe(200);
    expect((await setMember(organization, organization, editor, 'owner')).status).toBe(403);
  });
});

describe('a connection of a member', () => {
  verifies(
    'team:own-connections',
    'reaches a private server of the organization until the membership ends',
    async () => {
      const organization = await organizationOf(everybody);
      const { namespace } = await connectionOf(organization);
      const server = await privateServer(owner, namespace);
      await releaseServer(app, server, { upstreamUrl: upstream.url });
      const own = await createNamespace(app, member);
      const connect = (by: TestAccount, into: string) => ask(by, ['post', `/connect/${into}`, { server }]);
      expect((await connect(guest, await createNamespace(app, guest))).status).toBe(400);
      const made = await connect(member, own);
      expect(made.status).toBe(201);
      const call = () =>
        ask(member, ['post', `/connect/${own}/${made.body.connectionId}/.tools/echo`, { message: 'hello' }]);
      expect((await call()).status).toBe(200);
      expect((await removeMember(owner, organization, member)).status).toBe(200);
      await until(async () => (await call()).status !== 200, 'the connection reaches the server no longer');
    },
  );
});

describe('the end of a membership', () => {
  verifies('team:logins', 'revokes logins by URL that it opened, permanently', async () => {
    const organization = await organizationOf(everybody);
    const { path } = await connectionOf(organization);
    const browser = await signedInBrowser(app, member);
    const client = new LoginClient(app, `${app.url}${path}/mcp`, 'https://app.example/callback');
    const { access_token: token } = await client.login(browser);
    const call = () => ask({ ...member, key: token }, ['post', `${path}/mcp`, listTools]);
    expect((await call()).status).toBe(200);
    await setMember(owner, organization, member, 'editor');
    expect((await call()).status).toBe(200);
    await removeMember(owner, organization, member);
    await until(async () => (await call()).status === 401, 'the login ends');
    await setMember(app.operator, organization, member, 'member');
    expect((await call()).status).toBe(401);
  });

  aloneVerifies(
    'team:end',
    'rejects calls and closes streams in every process, even in one without the message',
    async () => {
      const organization = await organizationOf(everybody);
      const { path } = await connectionOf(organization);
      let open = 0;
      for (const at of [app, deaf]) {
        const headers = { authorization: `Bearer ${member.key}`, accept: 'text/event-stream' };
        const response = await fetch(`${at.url}${path}/mcp`, { headers });
        expect(response.status).toBe(200);
        open += 1;
        void response.text().then(() => (open -= 1));
      }
      expect((await removeMember(owner, organization, member)).status).toBe(200);
      expect((await ask(member, ['get', `${path}/.tools`])).status).toBe(404);
      const isOver = async () => open === 0 && (await ask(member, ['get', `${path}/.tools`], deaf)).status === 404;
      await until(isOver, 'streams are closed, and the other process rejects calls', END_MS_MAX);
    },
  );
});
