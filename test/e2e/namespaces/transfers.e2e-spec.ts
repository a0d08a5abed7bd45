import { beforeAll, describe, expect } from '@jest/globals';
import { testAccount, testApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import { pathOf } from '../../support/database/server-rows.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { authorize } from '../../support/people/credentials.js';
import { startAuthorizationServer } from '../../support/people/authorization-server.js';
import { startUpstream } from '../../support/upstream/upstream.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
/** Another process. */
let second: TestApp;
let guarded: string;
const owner = testAccount(app);

beforeAll(async () => {
  second = await app.sibling();
  const [upstream, server] = await Promise.all([startUpstream(), startAuthorizationServer()]);
  guarded = (await server.protect(upstream.url)).url;
});

/** A new organization with these members. */
async function organization(...members: [account: TestAccount, role: string][]): Promise<string> {
  const { body } = await app.as(app.operator).post('/accounts', { name: uniqueName('team'), kind: 'organization' });
  const { id } = body as { id: string };
  for (const [account, role] of members) {
    const { status } = await app.as(app.operator).put(`/accounts/${id}/members/${account.id}`, { role });
    expect(status).toBe(200);
  }
  return id;
}

const epochOf = async (id: string) => {
  const [row] = await app.database.query<[{ epoch: number }]>(
    'SELECT setup_epoch AS epoch FROM connections WHERE id = $1',
    [id],
  );
  return row.epoch;
};

describe('the transfer of an account', () => {
  verifies('transfer:all', 'moves all that is owned, and ends setup links and upstream logins', async () => {
    const leaver = await app.account();
    const team = await organization([owner, 'owner'], [leaver, 'editor']);
    const namespace = await createNamespace(app, leaver);
    const server = await createServer(app, leaver, { namespace, visibility: 'private' });
    const { path } = await createConnection(app, leaver, { mcpUrl: guarded }, { namespace });
    const [{ id }] = await app.database.query<[{ id: string }]>(
      'SELECT c.id FROM connections c JOIN namespaces n ON n.id = c.namespace_id WHERE n.name = $1',
      [namespace],
    );
    await authorize(app, { kind: 'connection', id }, guarded);
    expect(await app.database.query('SELECT 1 FROM upstream_credentials WHERE owner_id = $1', [id])).toHaveLength(1);
    const epoch = await epochOf(id);
    for (const on of [app, second]) expect((await on.as(leaver).get(`${path}/logs`)).status).toBe(200);

    const transfer = (by: TestAccount, to: string) => app.as(by).post(`/accounts/${leaver.id}/transfer`, { to });
    // An editor of the organization gives it nothing.
    expect((await transfer(leaver, team)).status).toBe(403);
    expect((await transfer(owner, team)).status).toBe(404);
    expect((await transfer(app.operator, namespace)).status).toBe(400);
    await app.as(app.operator).patch(`/accounts/${team}/limits`, { limits: { servers: 0 } });
    const full = await transfer(app.operator, team);
    expect([full.status, JSON.stringify(full.body)]).toEqual([429, expect.stringContaining('its limit of servers')]);
    const owning = await app.as(leaver).delete(`/accounts/${leaver.id}`);
    const names = `The account owns namespaces: ${namespace}. Transfer or delete them first`;
    expect([owning.status, JSON.stringify(owning.body)]).toEqual([409, expect.stringContaining(names)]);
    await app.as(app.operator).patch(`/accounts/${team}/limits`, { limits: { servers: null } });
    expect((await transfer(app.operator, team)).body).toEqual({ success: true, namespaces: [namespace], grants: 0 });

    expect(await epochOf(id)).toBe(epoch + 1);
    expect(await app.database.query('SELECT 1 FROM upstream_credentials WHERE owner_id = $1', [id])).toEqual([]);
    await app.as(app.operator).delete(`/accounts/${team}/members/${leaver.id}`);
    for (const on of [app, second]) {
      expect((await on.as(owner).get(pathOf(server))).status).toBe(200);
      expect((await on.as(leaver).get(pathOf(server))).status).toBe(404);
      expect((await on.as(leaver).get(path)).status).toBe(404);
    }
    expect((await app.as(leaver).delete('/accounts/me')).status).toBe(200);
    expect((await app.as(leaver).get('/accounts/me')).status).toBe(401);
    const isRejected = async () => (await second.as(leaver).get('/accounts/me')).status === 401;
    await until(isRejected, 'the other process rejects the key');
  });

  verifies('transfer:namespace', 'moves one namespace between accounts of which the caller owns both', async () => {
    const other = await app.account();
    const team = await organization([owner, 'owner'], [other, 'editor']);
    const namespace = await createNamespace(app, owner);
    const kept = await createNamespace(app, owner);
    const move = (by: TestAccount, body: object) => app.as(by).patch(`/namespaces/${namespace}`, body);
    const server = await createServer(app, owner, { namespace, visibility: 'private' });
    await app.as(owner).post(`${pathOf(server)}/grants`, { account: (await app.account()).id, level: 'call' });
    await app.as(owner).post(`/namespaces/${namespace}/grants`, { account: (await app.account()).id, level: 'manage' });
    expect((await move(owner, {})).status).toBe(400);
    expect((await move(owner, { accountId: other.id })).status).toBe(403);
    expect((await move(other, { accountId: other.id })).status).toBe(403);
    const claim = (by: TestAccount, body: object) => app.as(by).put(`/namespaces/${namespace}`, body);
    const refused = await claim(owner, { organizationId: team });
    const way = `already exists and is yours: move it with PATCH /namespaces/${namespace} {"accountId": "${team}"}`;
    expect([refused.status, refused.body]).toEqual([409, { error: expect.stringContaining(way) }]);
    expect((await claim(owner, {})).status).toBe(201);
    expect((await claim(owner, { organizationId: owner.id })).status).toBe(201);
    expect((await move(owner, { organizationId: team })).body).toEqual({
      success: true,
      namespaces: [namespace],
      grants: 2,
    });
    expect((await move(other, { accountId: other.id })).status).toBe(403);
    for (const on of [app, second]) expect((await on.as(other).get(`/connect/${namespace}`)).status).toBe(200);
    expect((await claim(owner, { organizationId: team })).status).toBe(201);
    expect((await app.as(other).get(`/connect/${kept}`)).status).toBe(404);
    expect((await move(owner, { accountId: owner.id })).status).toBe(200);
    for (const on of [app, second]) expect((await on.as(other).get(`/connect/${namespace}`)).status).toBe(404);
  });
});

describe('the deletion of an account', () => {
  verifies('account-deletion:last', 'keeps the last owner of an organization and the last operator', async () => {
    const first = await app.account();
    const partner = await app.account();
    const team = await organization([first, 'owner'], [partner, 'owner']);
    expect((await app.as(app.operator).delete('/accounts/me')).status).toBe(409);
    expect((await app.as(first).delete(`/accounts/${partner.id}`)).status).toBe(404);
    const gone = await Promise.all([app.as(first).delete('/accounts/me'), second.as(partner).delete('/accounts/me')]);
    expect(gone.map(({ status }) => status).sort()).toEqual([200, 409]);
    const last = gone[0]?.status === 409 ? first : partner;
    expect((await app.as(last).delete(`/accounts/${team}`)).status).toBe(200);
    expect((await app.as(last).delete('/accounts/me')).status).toBe(200);
    expect((await app.as(app.operator).delete(`/accounts/${last.id}`)).status).toBe(404);
  });
});
