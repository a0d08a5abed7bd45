import { beforeAll, describe, expect, it } from '@jest/globals';
import { ChangesService } from '../../../src/extensions/changes/changes.service.js';
import { testAccount, testApp, type TestAccount } from '../../support/app.js';
import { createNamespace, createServer } from '../../support/factories.js';
import { signedInBrowser } from '../../support/people/browser-session.js';
import { shownFault } from '../../support/people/form-faults.js';

const app = testApp();
const alice = testAccount(app);
const bob = testAccount(app);

interface Change {
  action: string;
  target: { id: string; name: string };
  accountId: string;
  actor: { id: string; name: string } | null;
  credentialId: string | null;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
}

const changesOf = async (account: TestAccount, query = '', of = 'me') => {
  const { status, body } = await app.as(account).get(`/accounts/${of}/changes${query}`);
  expect(status).toBe(200);
  return body.changes as Change[];
};

/** The id of the key of an account. */
const keyOf = async (account: TestAccount) =>
  ((await app.as(account).get('/accounts/me/access')).body as { apiKey: { id: string } }).apiKey.id;

describe('GET /accounts/{id}/changes', () => {
  let namespace: string;
  let server: string;
  let connection: string;
  let remote: string;

  beforeAll(async () => {
    namespace = await createNamespace(app, alice);
    server = encodeURIComponent(await createServer(app, alice, { namespace }));
    connection = `${namespace}/tunnel`;
    await app.as(alice).put(`/connect/${connection}`, { transport: 'uplink' }).expect(201);
    remote = `${namespace}/remote`;
    await app
      .as(alice)
      .put(`/connect/${remote}`, { mcpUrl: 'http://127.0.0.1:1/mcp', headers: { 'x-token': 'hunter1' } });
  });

  /** What a person does, and the rows that it leaves: the action, the name of the target, before, and after. */
  const cases: [
    what: string,
    act: () => Promise<unknown>,
    rows: () => [action: string, name: string, before: unknown, after: unknown][],
  ][] = [
    [
      'a key',
      () =>
        app
          .as(alice)
          .post('/accounts/me/api-keys', { name: 'ci', scopes: ['read'] })
          .expect(201),
      () => [['key.created', 'ci', null, { scopes: ['read'], expiresAt: null }]],
    ],
    [
      'a grant',
      () => app.as(alice).post(`/servers/${server}/grants`, { account: bob.id, level: 'call' }).expect(201),
      () => [['grant.created', decodeURIComponent(server), null, { accountId: bob.id, level: 'call' }]],
    ],
    [
      'other terms of a grant',
      () => app.as(alice).post(`/servers/${server}/grants`, { account: bob.id, level: 'manage' }).expect(200),
      () => [['grant.changed', decodeURIComponent(server), { level: 'call' }, { level: 'manage' }]],
    ],
    [
      'the end of a grant',
      async () => {
        const { body } = await app.as(alice).get(`/servers/${server}/grants`);
        await app.as(alice).delete(`/servers/${server}/grants/${body.grants[0].id}`).expect(200);
      },
      () => [['grant.deleted', decodeURIComponent(server), { accountId: bob.id, level: 'manage' }, null]],
    ],
    [
      'visibility',
      () => app.as(alice).patch(`/servers/${server}`, { visibility: 'private' }).expect(200),
      () => [['server.changed', decodeURIComponent(server), { visibility: 'public' }, { visibility: 'private' }]],
    ],
    [
      'settings of a server',
      () => app.as(alice).patch(`/servers/${server}`, { displayName: 'Weather', unlisted: true }).expect(200),
      () => [
        ['server.changed', decodeURIComponent(server), { unlisted: false }, { displayName: 'Weather', unlisted: true }],
      ],
    ],
    [
      'runtime settings',
      () => app.as(alice).patch(`/servers/${server}/runtime`, { logPayloads: true }).expect(200),
      () => [['runtime.created', decodeURIComponent(server), null, { logPayloads: true }]],
    ],
    [
      'a secret, without its value',
      () => app.as(alice).put(`/servers/${server}/secrets`, { name: 'TOKEN', value: 'hunter2' }).expect(200),
      () => [['secret.created', `${decodeURIComponent(server)}/TOKEN`, null, { name: 'TOKEN' }]],
    ],
    [
      'another value of a secret',
      () => app.as(alice).put(`/servers/${server}/secrets`, { name: 'TOKEN', value: 'hunter3' }).expect(200),
      () => [['secret.changed', `${decodeURIComponent(server)}/TOKEN`, null, null]],
    ],
    [
      'the end of a secret',
      () => app.as(alice).delete(`/servers/${server}/secrets/TOKEN`).expect(200),
      () => [['secret.deleted', `${decodeURIComponent(server)}/TOKEN`, { name: 'TOKEN' }, null]],
    ],
    [
      'values of a connection, without them',
      () =>
        app
          .as(alice)
          .put(`/connect/${connection}`, { name: 'Laptop', metadata: { team: 'x' } })
          .expect(200),
      () => [['connection.changed', connection, { name: 'tunnel' }, { name: 'Laptop' }]],
    ],
    [
      'headers of a connection, without them',
      () =>
        app
          .as(alice)
          .put(`/connect/${remote}`, { headers: { 'x-token': 'hunter4' } })
          .expect(200),
      () => [['connection.changed', remote, null, null]],
    ],
    [
      'the end of a connection',
      () => app.as(alice).delete(`/connect/${connection}`).expect(200),
      () => [['connection.deleted', connection, { name: 'Laptop' }, null]],
    ],
    [
      'a namespace',
      () => app.as(alice).put(`/namespaces/${namespace}-2`).expect(201),
      () => [['namespace.created', `${namespace}-2`, null, { accountId: alice.id }]],
    ],
    [
      'a server that moves',
      () =>
        app
          .as(alice)
          .post(`/servers/${server}/transfer`, { targetNamespace: `${namespace}-2`, targetOrganizationId: 'me' })
          .expect(200),
      () => [['server.changed', expect.stringMatching(`^${namespace}-2/`) as unknown as string, {}, {}]],
    ],
  ];

  it.each(cases)('has a row for %s, with who made it and by which key', async (_, act, rows) => {
    const since = new Date();
    await act();
    const changes = await changesOf(alice, `?since=${since.toISOString()}`);
    const by = { actor: { id: alice.id, name: alice.name }, credentialId: await keyOf(alice), accountId: alice.id };
    expect(changes).toEqual(
      rows()
        .toReversed()
        .map(([action, name, before, after]) =>
          expect.objectContaining({
            action,
            ...by,
            target: { id: expect.any(String), name },
            before: before && expect.objectContaining(before),
            after: after && expect.objectContaining(after),
          }),
        ),
    );
    expect(JSON.stringify(changes)).not.toMatch(/hunter|sealed|hash|team/);
  });

  it('filters by time, actor, credential and target, and continues after a cursor', async () => {
    const operator = await keyOf(app.operator);
    await app.as(app.operator).put(`/namespaces/${namespace}/suspension`, { reason: 'abuse' }).expect(200);
    await app.as(app.operator).put(`/namespaces/${namespace}/suspension`, { reason: null }).expect(200);
    const suspended = [
      ['namespace.changed', { suspended: expect.objectContaining({ reason: 'abuse' }) }, { suspended: null }],
      ['namespace.changed', { suspended: null }, { suspended: expect.objectContaining({ reason: 'abuse' }) }],
    ];
    for (const filter of [
      `actor=${app.operator.id}`,
      `actor=${app.operator.name}`,
      `credential=${operator}`,
      `target=${namespace}&limit=2`,
    ]) {
      const found = await changesOf(alice, `?${filter}`);
      expect([filter, found.map(({ action, before, after }) => [action, before, after])]).toEqual([filter, suspended]);
    }
    // What the operator made elsewhere stands in its own list.
    expect((await changesOf(app.operator, `?target=${namespace}`)).length).toBe(2);
    const all = await changesOf(alice);
    const paged: Change[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const { body } = (await app.as(alice).get(`/accounts/me/changes?limit=5${cursor && `&cursor=${cursor}`}`)) as {
        body: { changes: Change[]; nextCursor: string | null };
      };
      paged.push(...body.changes);
      cursor = body.nextCursor;
    }
    expect(paged).toEqual(all);
    const { body } = await app.as(alice).get('/accounts/me/changes?limit=5');
    expect((await app.as(bob).get(`/accounts/me/changes?cursor=${body.nextCursor}`)).status).toBe(400);
    expect((await app.as(alice).get('/accounts/me/changes?since=yesterday')).status).toBe(400);
    expect((await app.as(bob).get(`/accounts/${alice.id}/changes`)).status).toBe(404);
  });

  it('has the move of a namespace in the lists of both accounts, and nothing of its connections', async () => {
    const moving = await createNamespace(app, alice);
    const values = { mcpUrl: 'http://127.0.0.1:1/mcp', headers: { 'x-token': 'hunter5' } };
    await app.as(alice).put(`/connect/${moving}/remote`, values).expect(201);
    const guild = await app.account({ kind: 'organization' });
    await app.as(app.operator).put(`/accounts/${guild.id}/members/${alice.id}`, { role: 'owner' }).expect(200);
    const since = `?since=${new Date().toISOString()}`;
    await app.as(alice).patch(`/namespaces/${moving}`, { accountId: guild.id }).expect(200);
    const row = expect.objectContaining({
      action: 'namespace.changed',
      target: { id: expect.any(String), name: moving },
      before: { accountId: alice.id },
      after: { accountId: guild.id },
    });
    expect(await changesOf(alice, since, guild.id)).toEqual([row]);
    expect((await changesOf(alice, since)).filter(({ accountId }) => accountId === alice.id)).toEqual([row]);
  });

  it('deletes changes after 90 days', async () => {
    const carol = await app.account();
    await app.database.query(
      `INSERT INTO changes (created_at, account_id, action, target_id, target)
       SELECT now() - days * interval '1 day', $1, 'account.changed', $1, days::text FROM unnest(ARRAY[89, 91]) AS days`,
      [carol.id],
    );
    const kept = async () =>
      (await changesOf(carol)).filter(({ action }) => action === 'account.changed').map(({ target }) => target.name);
    expect(await kept()).toEqual(['89', '91']);
    await app.get(ChangesService).deleteOld(new Date());
    expect(await kept()).toEqual(['89']);
  });

  it('answers a table that no spreadsheet executes', async () => {
    const name = '=HYPERLINK("http://a.test","x")';
    await app.as(bob).post('/accounts/me/api-keys', { name }).expect(201);
    const { text, headers } = await app.as(bob).get('/accounts/me/changes?format=csv&limit=1');
    expect(headers['content-type']).toMatch(/^text\/csv/);
    const [names, row, end] = text.split('\r\n');
    expect(names).toBe('createdAt,action,target,targetId,accountId,actor,actorId,credentialId,before,after');
    expect(row).toContain(`,key.created,"'=HYPERLINK(""http://a.test"",""x"")",`);
    expect(end).toBe('');
  });

  it('is for the owners of an organization, and names everything that a leaked key made', async () => {
    const organization = await app.account({ kind: 'organization' });
    const members = `/accounts/${organization.id}/members`;
    await app.as(app.operator).put(`${members}/${alice.id}`, { role: 'owner' }).expect(200);
    await app.as(app.operator).put(`${members}/${bob.id}`, { role: 'editor' }).expect(200);
    expect((await app.as(bob).get(`/accounts/${organization.id}/changes`)).status).toBe(403);
    const { body: leaked } = await app.as(alice).post('/accounts/me/api-keys', { name: 'leaked' }).expect(201);
    const thief = { id: alice.id, key: String(leaked.key) };
    const carol = await app.account();
    // What the key makes: an organization's key, a member, an open invitation, a grant.
    const { body: key } = await app
      .as(thief)
      .post(`/accounts/${organization.id}/api-keys`, { name: 'by the thief' })
      .expect(201);
    await app.as(thief).put(`${members}/${carol.id}`, { role: 'owner' }).expect(202);
    const { body: waiting } = await app.as(carol).get('/accounts/me/invitations');
    await app.as(carol).post(`/accounts/me/invitations/${waiting.invitations[0].id}`).expect(200);
    const { body: link } = await app.as(thief).post(`${members}/invitations`, { role: 'owner' }).expect(201);
    const { body: granted } = await app
      .as(thief)
      .post(`/namespaces/${namespace}/grants`, { account: carol.id, level: 'manage' })
      .expect(201);
    const made = await changesOf(alice, `?credential=${leaked.id}`, organization.id);
    expect(made.map(({ action, actor }) => [action, actor?.id])).toEqual([
      ['invitation.created', alice.id],
      ['member.created', carol.id],
      ['invitation.created', alice.id],
      ['key.created', alice.id],
    ]);
    expect(
      (await app.as(alice).delete(`/accounts/me/api-keys/${leaked.id}?made=true`)).body.revoked.toSorted(),
    ).toEqual([leaked.id, key.id].toSorted());
    const answers = await Promise.all([
      app.as({ key: String(key.key) }).get('/accounts/me'),
      app.as(carol).get(members),
      fetch(String(link.url)),
      app.as(carol).get(`/connect/${namespace}`),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([401, 404, 410, 404]);
    const { body: left } = await app.as(alice).get(`/namespaces/${namespace}/grants`);
    expect(left.grants.map(({ id }: { id: string }) => id)).not.toContain(granted.id);
  });

  it('revokes the rights of keys that were created with a key, even if all of them were revoked before', async () => {
    const made = async (by: { key: string }) =>
      (await app.as(by).post('/accounts/me/api-keys', { name: 'made' }).expect(201)).body as {
        id: string;
        key: string;
      };
    const first = await made(alice);
    const second = await made(first);
    const grants = `/namespaces/${namespace}/grants`;
    await app.as(second).post(grants, { account: bob.id, level: 'call' }).expect(201);
    const revoke = (key: { id: string }, query = '') => app.as(alice).delete(`/accounts/me/api-keys/${key.id}${query}`);
    for (const key of [second, first]) await revoke(key).expect(200);
    expect((await app.as(alice).get(grants)).body.grants).toHaveLength(1);
    // A request for the key of another account changes nothing.
    await app.as(bob).delete(`/accounts/me/api-keys/${first.id}?made=true`).expect(404);
    expect((await app.as(alice).get(grants)).body.grants).toHaveLength(1);
    expect((await revoke(first, '?made=true').expect(200)).body.revoked).toEqual([]);
    expect((await app.as(alice).get(grants)).body.grants).toEqual([]);
    await revoke(first, '?made=true').expect(404);
  });

  it('revokes the role of operators that a leaked key of an operator made', async () => {
    const { body: leaked } = await app.as(app.operator).post('/accounts/me/api-keys', { name: 'leaked' }).expect(201);
    const dave = await app.account();
    await app
      .as({ key: String(leaked.key) })
      .patch(`/accounts/${dave.id}`, { isOperator: true })
      .expect(200);
    expect((await app.as(dave).get('/accounts')).status).toBe(200);
    await app.as(app.operator).delete(`/accounts/me/api-keys/${leaked.id}?made=true`).expect(200);
    expect((await app.as(dave).get('/accounts')).status).toBe(403);
  });
});

describe('the page of changes', () => {
  it('shows what an account may read, and the reason for a wrong filter at its field', async () => {
    const browser = await signedInBrowser(app, bob);
    await app.as(bob).post('/accounts/me/api-keys', { name: '<b>ci</b>' }).expect(201);
    const page = await browser.get('/ui/m/changes/me?actor=' + encodeURIComponent(bob.name));
    expect(page.text).toContain(`<strong>&lt;b&gt;ci&lt;/b&gt;</strong>: key created by ${bob.name}`);
    const wrong = await browser.get('/ui/m/changes/me?since=yesterday');
    expect([wrong.status, shownFault(wrong.text)]).toEqual([
      400,
      {
        focused: ['since'],
        invalid: ['since'],
        described: expect.stringMatching(/^Since must be a time/),
        alerts: [expect.stringMatching(/^Since must be a time/)],
      },
    ]);
    expect((await browser.get('/ui/m/changes/me?cursor=none')).text).toContain('role="alert"');
    expect((await browser.get(`/ui/m/changes/${alice.id}`)).status).toBe(404);
  });
});
