import { beforeAll, describe, expect } from '@jest/globals';
import { testAccount, testApp, type TestAccount } from '../../support/app.js';
import { pathOf } from '../../support/database/server-rows.js';
import { createConnection, createServer } from '../../support/factories.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
const member = testAccount(app);
const stranger = testAccount(app);
let team: { id: string; name: string };
let namespace: string;
let server: string;
let connection: string;

beforeAll(async () => {
  const name = `team-${owner.name}`.slice(0, 60);
  team = (await app.as(app.operator).post('/accounts', { name, kind: 'organization' })).body as typeof team;
  for (const [account, role] of [
    [owner, 'owner'],
    [member, 'member'],
  ] as const) {
    const { status } = await app.as(app.operator).put(`/accounts/${team.id}/members/${account.id}`, { role });
    expect(status).toBe(200);
  }
  namespace = `of-${team.id.slice(0, 8)}`;
  expect((await app.as(owner).put(`/namespaces/${namespace}`, { organizationId: team.id })).status).toBe(201);
  server = await createServer(app, owner, { namespace, visibility: 'private' });
  connection = (await createConnection(app, owner, { transport: 'uplink' }, { namespace })).path.replace(
    '/connect/',
    '',
  );
});

interface Reason {
  rule: string;
  opens: boolean;
  message: string;
}

async function check(
  by: TestAccount,
  on: string,
  query: Record<string, string> = {},
): Promise<{ status: number; allowed: boolean; reasons: Reason[]; rules: string[] }> {
  const { status, body } = await app.as(by).get(`/access/check?${new URLSearchParams({ on, ...query }).toString()}`);
  const { allowed, reasons = [] } = body as { allowed: boolean; reasons?: Reason[] };
  return { status, allowed, reasons, rules: reasons.map(({ rule, opens }) => `${rule} ${opens}`) };
}

describe('GET /access/check', () => {
  verifies(
    'access-check:chain',
    'names the owner, the role, grants, visibility and suspension that decide',
    async () => {
      const on = `server:${server}`;
      expect(await check(member, on)).toMatchObject({
        status: 200,
        allowed: true,
        reasons: [
          { rule: 'member', opens: true, message: `${member.name} is "member" of ${team.name}, which owns it.` },
        ],
      });
      expect(await check(owner, on, { account: team.name })).toMatchObject({ allowed: true, rules: ['owner true'] });
      expect(await check(owner, on, { account: stranger.id })).toMatchObject({
        allowed: false,
        rules: ['private false'],
      });
      expect((await app.as(owner).patch(pathOf(server), { visibility: 'restricted' })).status).toBe(200);
      expect(await check(stranger, on)).toMatchObject({ allowed: false, rules: ['restricted false'] });

      const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
      const terms = { account: stranger.id, level: 'call', tools: { allow: ['echo'] }, expiresAt };
      expect((await app.as(owner).post(pathOf(server, '/grants'), terms)).status).toBe(201);
      const message = `${stranger.name} was granted the tools echo of it until ${expiresAt}.`;
      expect(await check(stranger, on)).toMatchObject({
        allowed: true,
        reasons: [{ rule: 'grant', opens: true, message }],
      });
      expect(await check(stranger, on, { tool: 'echo' })).toMatchObject({ allowed: true, rules: ['grant true'] });
      const other = await check(owner, on, { account: stranger.id, tool: 'raw' });
      expect(other).toMatchObject({ allowed: false, rules: ['grant false', 'tool false'] });

      expect((await app.as(owner).patch(pathOf(server), { visibility: 'public' })).status).toBe(200);
      expect(await check(stranger, on, { tool: 'raw' })).toMatchObject({
        allowed: true,
        rules: ['grant false', 'public true'],
      });
      await app.as(app.operator).put(pathOf(server, '/suspension'), { reason: 'It is slow.' });
      expect(await check(member, on)).toMatchObject({
        allowed: false,
        rules: ['member true', 'public true', 'suspended false'],
      });
      await app.as(app.operator).put(pathOf(server, '/suspension'), { reason: null });
    },
  );

  verifies(
    'access-check:key',
    'reports that the key of the caller lacks a scope, or that the account is disabled',
    async () => {
      const { body } = await app.as(owner).post('/accounts/me/api-keys', { name: 'reads', scopes: ['read'] });
      const refused = await check(body as TestAccount, `connection:${connection}`);
      expect(refused).toMatchObject({ allowed: false, rules: ['member true', 'key false'] });
      expect(refused.reasons[1]?.message).toContain('lacks the scope "call"');
      expect(await check(owner, `connection:${connection}`)).toMatchObject({ allowed: true, rules: ['member true'] });

      const gone = await app.account();
      await app.as(owner).post(`/namespaces/${namespace}/grants`, { account: gone.id, level: 'call' });
      const query = { account: gone.id };
      expect(await check(owner, `connection:${connection}`, query)).toMatchObject({
        allowed: true,
        rules: ['grant true'],
      });
      await app.as(app.operator).patch(`/accounts/${gone.id}`, { disabled: true });
      expect(await check(owner, `namespace:${namespace}`, query)).toMatchObject({
        allowed: false,
        rules: ['grant true', 'disabled false'],
      });
    },
  );

  verifies('access-check:own', 'covers the caller’s own rights and targets; hidden targets return 404', async () => {
    const hidden = await createServer(app, owner, { namespace, visibility: 'private' });
    const errorOf = async (account: TestAccount, on: string, query = '') => {
      const { status, body } = await app.as(account).get(`/access/check?on=${on}${query}`);
      return { status, body: JSON.parse(JSON.stringify(body).replaceAll(on, 'it')) as unknown };
    };
    const missing = await errorOf(stranger, `server:${namespace}/never`);
    expect(missing.status).toBe(404);
    for (const on of [`server:${hidden}`, `connection:${connection}`, `namespace:${namespace}`]) {
      expect([on, await errorOf(stranger, on)]).toEqual([on, missing]);
      expect([on, await errorOf(stranger, on, `&account=${member.id}`)]).toEqual([on, missing]);
      expect([on, (await errorOf(member, on, `&account=${stranger.id}`)).status]).toEqual([on, 403]);
      expect([on, (await check(app.operator, on, { account: member.id })).allowed]).toEqual([on, true]);
    }
    expect((await errorOf(owner, `server:${hidden}`, '&account=nobody-has-this-name')).status).toBe(404);
    expect((await errorOf(owner, hidden)).status).toBe(400);
  });
});
