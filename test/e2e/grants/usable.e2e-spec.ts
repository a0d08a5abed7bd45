import { beforeAll, describe, expect } from '@jest/globals';
import type { Role } from '../../../src/modules/auth/access.types.js';
import { testAccount, testApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import { pathOf } from '../../support/database/server-rows.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { mcp, request, toolCall, type Json } from '../../support/mcp/calls.js';
import { publishExternal } from '../../support/releases/releases.js';
import { until } from '../../support/until.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
const member = testAccount(app);
const guest = testAccount(app);
const friend = testAccount(app);
const outsider = testAccount(app);
let organization: TestAccount;
let upstream: Upstream;
let closed: Upstream;
/** Of the organization: two connections, those of two end users, and a private server. */
let namespace: string;
let server: string;
const at = (id: string) => `/connect/${namespace}/${id}`;

/** A part of every private title and address. */
const mark = uniqueName('canary');

beforeAll(async () => {
  upstream = await startUpstream();
  closed = await startUpstream({ requireHeaders: { authorization: 'Bearer secret' } });
  organization = await app.account({ kind: 'organization' });
  const members: [TestAccount, Role][] = [
    [owner, 'owner'],
    [member, 'member'],
    [guest, 'guest'],
  ];
  for (const [{ id }, role] of members) {
    const path = `/accounts/${organization.id}/members/${id}`;
    expect((await app.as(app.operator).put(path, { role })).status).toBe(200);
  }
  namespace = uniqueName('org');
  const claimed = await app.as(owner).put(`/namespaces/${namespace}`, { organizationId: organization.id });
  expect(claimed.status).toBe(201);
  const connect = (connectionId: string, body: object = {}) =>
    createConnection(
      app,
      owner,
      { mcpUrl: upstream.url, name: `${mark} ${connectionId}`, ...body },
      { namespace, connectionId },
    );
  await connect('a-open');
  await connect('b-login', { mcpUrl: closed.url });
  await connect('user-1', { metadata: { userId: 'u1' } });
  await connect('user-2', { metadata: { userId: 'u2' }, mcpUrl: closed.url });
  server = await createServer(app, owner, { namespace, server: `${mark}-srv`, visibility: 'private' });
  await publishExternal(app, owner, server, { upstreamUrl: upstream.url });
});

async function list(account: TestAccount, query = '', by: TestApp = app): Promise<Json[]> {
  const { status, body } = await by.as(account).get(`/accounts/me/usable${query}`);
  expect([status, body]).toEqual([200, expect.objectContaining({ usable: expect.anything() })]);
  return body.usable as Json[];
}

const nameOf = ({ kind, namespace: space, connectionId, qualifiedName }: Json) =>
  [kind, qualifiedName ?? (connectionId ? `${space}/${connectionId}` : space)].join(' ');
const named = async (...asked: Parameters<typeof list>) => (await list(...asked)).map(nameOf);
const rowOf = async (account: TestAccount, query: string, name: string, by?: TestApp): Promise<Json> =>
  (await list(account, query, by)).find((row) => nameOf(row) === name);

async function grant(target: string, body: object): Promise<string> {
  const { status, body: given } = await app.as(owner).post(`${target}/grants`, body);
  expect([200, 201]).toContain(status);
  return given.id as string;
}

async function keyWith(account: TestAccount, scopes: string[]): Promise<TestAccount> {
  const { status, body } = await app.as(account).post('/accounts/me/api-keys', { name: uniqueName('key'), scopes });
  expect(status).toBe(201);
  return { ...account, key: body.key as string };
}

const all = () => [
  `namespace ${namespace}`,
  `connection ${namespace}/a-open`,
  `connection ${namespace}/b-login`,
  `server ${server}`,
];

describe('GET /accounts/me/usable', () => {
  verifies(
    'usable:sections',
    'lists by address what is of the account and its organizations, with the role',
    async () => {
      const rows = await list(owner);
      expect(rows.map(nameOf)).toEqual(all());
      expect(rows.map(({ access }) => access as unknown)).toEqual(
        all().map(() => ({ rule: 'member', level: 'manage', role: 'owner' })),
      );
      expect(rows[1]).toMatchObject({ title: `${mark} a-open`, status: { state: 'connected', reason: 'ok' } });
      expect(rows[2]).toMatchObject({
        status: { state: 'auth_required', reason: 'unauthorized' },
        owner: { id: organization.id },
      });
      expect(rows[0]).toMatchObject({ connections: 2 });
      expect(rows[0]).not.toHaveProperty('title');
      expect(await named(member)).toEqual(all());
      expect((await list(member)).map(({ access }) => access.level as string)).toEqual(all().map(() => 'call'));
      const own = await createNamespace(app, friend);
      await createConnection(app, friend, { mcpUrl: upstream.url }, { namespace: own, connectionId: 'mine' });
      expect(await rowOf(friend, '', `connection ${own}/mine`)).toMatchObject({
        access: { rule: 'owner', level: 'manage' },
      });
      for (const account of [guest, outsider]) {
        for (const query of ['', '?section=granted', '?section=all', `?q=${mark}`, '?state=needs']) {
          expect([query, await list(account, query)]).toEqual([query, []]);
        }
      }
    },
  );

  verifies(
    'usable:grants',
    'lists what was granted, with the grant, its tools and its end, and nothing after it',
    async () => {
      const section = '?section=granted';
      const tools = { allow: ['echo', 'raw'] };
      const id = await grant(at('a-open'), { account: friend.id, level: 'call', tools });
      const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
      await grant(pathOf(server), { account: friend.id, level: 'call', expiresAt });
      expect(await named(friend, section)).toEqual([`connection ${namespace}/a-open`, `server ${server}`]);
      const [connection, granted] = await list(friend, section);
      expect(connection.access).toEqual({
        rule: 'grant',
        level: 'call',
        tools: 2,
        grant: { id, subject: expect.any(String), grantedBy: expect.any(String), createdAt: expect.any(String) },
      });
      expect(granted.access).toMatchObject({ rule: 'grant', level: 'call', grant: { expiresAt } });
      expect(granted.access).not.toHaveProperty('tools');
      // Of one end user alone: a row of its own.
      await grant(at('user-1'), { account: friend.id, level: 'manage' });
      expect(await named(friend, section)).toContain(`connection ${namespace}/user-1`);
      await app.database.query(`UPDATE grants SET expires_at = now() WHERE subject_id = $1`, [friend.id]);
      expect(await list(friend, section)).toEqual([]);
      // Of the whole namespace, to everybody.
      const everybody = await grant(`/namespaces/${namespace}`, { everyone: true, level: 'call' });
      expect(await named(outsider, section)).toEqual(all());
      expect(await named(member, section)).toEqual([]);
      expect((await app.as(owner).delete(`/namespaces/${namespace}/grants/${everybody}`)).status).toBe(200);
      expect(await named(outsider, section)).toEqual([]);
    },
  );

  verifies(
    'usable:guest',
    'shows a guest the kind of a reason, and nothing else that only its owner reads',
    async () => {
      await grant(at('b-login'), { account: guest.id, level: 'call' });
      const name = `connection ${namespace}/b-login`;
      const [mine, theirs] = [await rowOf(owner, '', name), await rowOf(guest, '?section=granted', name)];
      const { access: _mine, ...shared } = mine;
      expect(shared.status.setupUrl).toContain('/setup/connections/');
      delete shared.status.setupUrl;
      const { access, ...seen } = theirs;
      expect(seen).toEqual(shared);
      expect(access).toMatchObject({ rule: 'grant', level: 'call' });
      const icon = 'http://erp.internal:8080/icon.png';
      await app.database.query(
        `UPDATE connections SET status_message = 'erp.internal', server_info = $2 WHERE connection_id = 'b-login' AND name LIKE $1`,
        [`${mark}%`, { name: 'erp.internal', version: '1', icons: [{ src: icon }] }],
      );
      expect((await rowOf(owner, '', name)).iconUrl).toBe(icon);
      const text = JSON.stringify(await list(guest, '?section=granted'));
      for (const secret of ['erp.internal', '127.0.0.1', new URL(closed.url).port, 'userId', 'setup', 'Bearer']) {
        expect([secret, text.includes(secret)]).toEqual([secret, false]);
      }
    },
  );

  verifies('usable:filters', 'finds by name, owner, state and words of a server', async () => {
    const counts = { all: 4, needs: 2, works: 3, broken: 0, unused: 0 };
    expect((await app.as(owner).get('/accounts/me/usable?limit=1')).body.counts).toEqual(counts);
    // To a member, who may only call them, connections that wait for their owner do not work.
    const ofMember = await app.as(member).get('/accounts/me/usable?state=broken');
    expect(ofMember.body.counts).toEqual({ ...counts, needs: 0, broken: 2 });
    const waiting = [`namespace ${namespace}`, `connection ${namespace}/b-login`];
    expect((ofMember.body.usable as Json[]).map(nameOf)).toEqual(waiting);
    expect(await named(owner, '?state=needs')).toEqual(waiting);
    expect((await list(owner, '?state=needs'))[0].connections).toBe(1);
    expect(await named(owner, '?state=works')).toEqual(all().filter((name) => !name.includes('b-login')));
    expect(await named(owner, '?q=A-OPEN')).toEqual([`connection ${namespace}/a-open`]);
    expect(await named(owner, '?q=a%25open')).toEqual([]);
    expect(await named(owner, `?owner=${organization.id}`)).toEqual(all());
    expect(await named(owner, `?owner=${owner.id}`)).toEqual([]);
    const own = await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace, connectionId: 'unused' });
    await app.database.query(
      `UPDATE connections SET status_state = 'disconnected', status_reason = 'never_called' WHERE connection_id = 'unused' AND namespace_id =
         (SELECT id FROM namespaces WHERE name = $1)`,
      [namespace],
    );
    expect(await named(owner, '?state=unused')).toEqual([`connection ${namespace}/unused`]);
    await app.as(app.operator).put(`${own.path}/suspension`, { reason: 'Test.' });
    expect(await named(owner, '?state=broken')).toEqual([`connection ${namespace}/unused`]);
    await app.as(owner).delete(own.path);
    // By a tool of the server, also for a connection to it.
    const link = { namespace, connectionId: 'linked' };
    const linked = await createConnection(app, owner, { server }, link);
    const withTool = [`server ${server}`, `connection ${namespace}/linked`];
    expect(await named(owner, '?q=echo')).toEqual(withTool);
    await app.as(owner).delete(linked.path);
    for (const query of ['?section=public', '?cursor=none', '?state=error', '?limit=0']) {
      expect([query, (await app.as(owner).get(`/accounts/me/usable${query}`)).status]).toEqual([query, 400]);
    }
  });

  verifies(
    'usable:order',
    'lists numbers in names by their value, in one list of what is own and granted',
    async () => {
      const account = await app.account();
      const space = await createNamespace(app, account);
      const ids = ['a', 'n-1', 'n-2', 'n-9', 'n-10', 'n-010', 'n-10-b', 'n-100', 'n-20251130123456', 'n-x'];
      await app.database.query(
        `INSERT INTO servers (namespace_id, name, slug, display_name, current_type, visibility)
       SELECT n.id, t.id, n.name || '--' || t.id, t.id, 'external', 'private' FROM namespaces n, unnest($2::text[]) t(id) WHERE n.name = $1`,
        [space, ids.map((id) => `srv-${id}`)],
      );
      const seen: string[] = [];
      for (let cursor: string | null = ''; cursor !== null;) {
        const { body } = await app
          .as(account)
          .get(`/accounts/me/usable?section=all&limit=3${cursor && `&cursor=${cursor}`}`);
        seen.push(...(body.usable as Json[]).map(({ qualifiedName }) => String(qualifiedName).slice(space.length + 5)));
        cursor = body.nextCursor as string | null;
      }
      expect(seen).toEqual(['a', 'n-1', 'n-2', 'n-9', 'n-10', 'n-010', 'n-100', 'n-20251130123456', 'n-10-b', 'n-x']);
      await grant(at('a-open'), { account: account.id, level: 'call' });
      expect(await named(account, '?section=all&q=a-open')).toEqual([`connection ${namespace}/a-open`]);
      await app.database.query(`DELETE FROM grants WHERE subject_id = $1`, [account.id]);
    },
  );

  verifies('usable:pages', 'has every row once in pages, and only namespaces of the key', async () => {
    const seen: string[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const more: string = cursor && `&cursor=${cursor}`;
      const { body } = await app.as(member).get(`/accounts/me/usable?limit=1${more}`);
      seen.push(...(body.usable as Json[]).map(nameOf));
      cursor = body.nextCursor as string | null;
    }
    expect(seen).toEqual(all());
    expect(await named(await keyWith(member, [`call:${namespace}`]))).toEqual(all());
    expect(await named(await keyWith(member, [`call:${uniqueName('other')}`]))).toEqual([]);
    expect(await named(await keyWith(guest, [`call:${uniqueName('other')}`]), '?section=granted')).toEqual([]);
  });
});

describe('the last use', () => {
  verifies(
    'usable:last-use',
    'is that of the account, over REST, MCP and the run endpoint, in every process',
    async () => {
      const other = await app.sibling();
      const name = `connection ${namespace}/a-open`;
      expect(await rowOf(member, '', name)).not.toHaveProperty('lastUse');
      const before = Date.now();
      expect((await app.as(member).post(`${at('a-open')}/.tools/echo`, { message: 'hello' })).status).toBe(200);
      const { lastUse } = await rowOf(member, '', name);
      expect(lastUse).toEqual({ at: expect.any(String), client: null, kind: 'key', credential: expect.any(String) });
      expect(Date.parse(lastUse.at as string)).toBeGreaterThanOrEqual(before);
      expect(await rowOf(owner, '', name)).not.toHaveProperty('lastUse');

      const clientInfo = { name: 'spec\0client', version: '1' };
      const hello = request(0, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
      const began = await mcp(app, member, at('a-open'), hello);
      expect(began.status).toBe(200);
      const run = `/run/${server.replace('/', '--')}`;
      expect((await mcp(app, member, run, toolCall(1, 'echo', { message: 'hello' }))).status).toBe(200);
      await until(
        async () => (await rowOf(member, '', name, other)).lastUse?.client === 'spec\ufffdclient',
        'is written',
      );
      await until(async () => (await rowOf(member, '', `server ${server}`, other)).lastUse, 'is written');
      const rows = await app.database.query('SELECT 1 FROM last_uses WHERE account_id = $1', [member.id]);
      expect(rows).toHaveLength(2);
    },
  );

  verifies('usable:last-use', 'counts no refused call, and goes with the connection', async () => {
    const own = await createConnection(app, outsider, { mcpUrl: upstream.url });
    expect((await app.as(member).post(`${own.path}/.tools/echo`, {})).status).toBe(404);
    expect((await app.as(outsider).post(`${own.path}/.tools/echo`, { message: 'hello' })).status).toBe(200);
    expect((await list(outsider))[0].lastUse).toBeDefined();
    const stored = () => app.database.query('SELECT 1 FROM last_uses WHERE account_id = $1', [outsider.id]);
    expect(await stored()).toHaveLength(1);
    expect((await app.as(outsider).delete(own.path)).status).toBe(200);
    expect(await stored()).toEqual([]);
  });
});
