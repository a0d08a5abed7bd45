import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { testAccount, testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { createConnection, createNamespace, createOrganization, createServer } from '../../support/factories.js';
import { releaseServer } from '../../support/database/server-rows.js';
import { startUpstream, textResult, type Upstream } from '../../support/upstream/upstream.js';

const app = testApp();
const owner = testAccount(app);
const manager = testAccount(app);
const lead = testAccount(app);
const editor = testAccount(app);
const callers: Record<string, TestAccount> = {};
let upstream: Upstream;
/** A namespace, its public server and its recorded connection, for an account and for an organization. */
const estates: Record<'own' | 'team', { namespace: string; server: string; connectionId: string }> = {} as never;

beforeAll(async () => {
  const inputSchema = { type: 'object' };
  upstream = await startUpstream({ tools: [{ name: 'read', inputSchema, call: () => textResult('canary-result') }] });
  const own = await createNamespace(app, owner);
  await app.as(owner).post(`/namespaces/${own}/grants`, { account: manager.id, level: 'manage' }).expect(201);
  const { id: organizationId } = await createOrganization(app, { owner: lead, editor });
  const team = uniqueName('team');
  await app.as(lead).put(`/namespaces/${team}`, { organizationId }).expect(201);
  for (const [name, by, namespace] of [
    ['own', owner, own],
    ['team', lead, team],
  ] as const) {
    const server = await createServer(app, by, { namespace, visibility: 'public' });
    await releaseServer(app, server, { upstreamUrl: upstream.url, tools: [{ name: 'read', inputSchema }] });
    const { path, connectionId } = await createConnection(app, by, { mcpUrl: upstream.url }, { namespace });
    await app.as(by).put(`${path}/recording`, { enabled: true }).expect(200);
    await app.as(by).post(`${path}/.tools/read`, {}).expect(200);
    estates[name] = { namespace, server, connectionId };
  }
  const { body } = await app.as(owner).post('/accounts/me/api-keys', { name: 'x', scopes: [`manage:${own}`] });
  Object.assign(callers, { owner, manager, lead, editor, 'owner with a key': { ...owner, key: body.key as string } });
});

afterAll(() => upstream.close());

/** Creates a mock that replays this connection. */
function replay(by: TestAccount, estate: 'own' | 'team', method: 'post' | 'put', connectionId: string) {
  const { namespace, server } = estates[estate];
  const path = `/connect/${namespace}${method === 'put' ? `/${uniqueName('mock')}` : ''}`;
  return app.as(by)[method](path, { server, mock: { enabled: true, scenario: `replay:${connectionId}` } });
}

describe('a mock that replays a recording', () => {
  test.each([
    ['owner', 'own', 'post', 201],
    ['owner', 'own', 'put', 201],
    ['owner with a key', 'own', 'post', 201],
    ['manager', 'own', 'post', 403],
    ['manager', 'own', 'put', 404],
    ['lead', 'team', 'post', 201],
    ['editor', 'team', 'post', 201],
    ['editor', 'team', 'put', 201],
  ] as const)('is created by the %s in the namespace "%s" with %s: %i', async (caller, estate, method, status) => {
    const response = await replay(callers[caller], estate, method, estates[estate].connectionId);
    expect(response.status).toBe(status);
    if (status !== 201) return;
    const path = `/connect/${estates[estate].namespace}/${response.body.connectionId as string}`;
    const called = await app.as(callers[caller]).post(`${path}/.tools/read`, {});
    expect(called.body.content[0].text).toBe('canary-result');
  });

  test('says that only the owner can replay, also a connection without recorded calls', async () => {
    const { namespace } = estates.own;
    const empty = await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace });
    for (const connectionId of [estates.own.connectionId, empty.connectionId]) {
      const { status, text } = await replay(manager, 'own', 'post', connectionId);
      expect([status, text]).toEqual([403, expect.stringContaining('"manage\\" here, and only the owner may do this')]);
    }
  });

  test('returns one response to all for an unknown connection', async () => {
    const unknown = uniqueName('none');
    const byManager = await replay(manager, 'own', 'post', unknown);
    const byOwner = await replay(owner, 'own', 'post', unknown);
    expect([byManager.status, byManager.body.error]).toEqual([400, byOwner.body.error]);
  });
});
