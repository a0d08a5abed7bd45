import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { connectionStates } from '../../../src/modules/connections/core/connection-status.js';
import { testAccount, testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { createConnection, createOrganization } from '../../support/factories.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';

const app = testApp();
const callers: Record<string, TestAccount> = {};
let upstream: Upstream;
let path: string;
let namespace: string;
const member = testAccount(app);

beforeAll(async () => {
  upstream = await startUpstream();
  const owner = await app.account();
  const guest = await app.account();
  const { id: organizationId } = await createOrganization(app, { owner, member, guest });
  namespace = uniqueName('team');
  await app.as(owner).put(`/namespaces/${namespace}`, { organizationId }).expect(201);
  const headers = { 'x-canary': 'value' };
  const metadata = { note: 'canary-metadata' };
  const body = { mcpUrl: upstream.url, headers, metadata, tools: { deny: ['canary-tool'] } };
  ({ path } = await createConnection(app, owner, body, { namespace }));
  const inputs = { http: { headers: { 'canary-header': {} } }, missing: { headers: ['canary-header'], query: [] } };
  await app.database.query(
    `UPDATE connections SET status_inputs = $1, oauth = $2, server_info = $3
      WHERE namespace_id = (SELECT id FROM namespaces WHERE name = $4)`,
    [
      JSON.stringify(inputs),
      JSON.stringify({ issuer: 'https://canary.example.com', clientId: 'canary', scopes: null }),
      JSON.stringify({
        name: 'weather',
        version: '1',
        websiteUrl: 'https://canary.example.com/',
        icons: [{ src: 'https://canary.example.com/icon.png' }, { src: 'data:image/png;base64,AAAA' }],
      }),
      namespace,
    ],
  );
  const call = { level: 'call' };
  for (const [name, target, terms] of [
    ['granted calls', path, call],
    ['granted tools', path, { ...call, tools: { allow: ['echo'] } }],
    ['granted calls of the namespace', `/namespaces/${namespace}`, call],
  ] as const) {
    callers[name] = await app.account();
    await app
      .as(owner)
      .post(`${target}/grants`, { account: callers[name].id, ...terms })
      .expect(201);
  }
  await app
    .as(owner)
    .post(`${path}/grants`, { account: guest.id, ...call })
    .expect(201);
  Object.assign(callers, { owner, member, 'guest with a grant': guest });
});

afterAll(() => upstream.close());

const guests = ['granted calls', 'granted tools', 'granted calls of the namespace', 'member', 'guest with a grant'];

async function setState(state: string): Promise<void> {
  await app.database.query(
    `UPDATE connections SET status_state = $1, status_reason = CASE $1 WHEN 'connected' THEN 'ok' ELSE 'unreachable' END,
            status_message = CASE WHEN $1 <> 'connected' THEN 'Nothing listens on canary.example.com:4359' END
      WHERE namespace_id = (SELECT id FROM namespaces WHERE name = $2)`,
    [state, namespace],
  );
}

describe.each(connectionStates)('a connection in the state %s', (state) => {
  test.each(guests)('shows no more than its name and state to the account: %s', async (name) => {
    await setState(state);
    const client = app.as(callers[name]);
    const { status, body, text } = await client.get(path);
    expect([status, body.mcpUrl, body.metadata, body.status.state]).toEqual([200, null, {}, state]);
    expect(Object.keys(body).toSorted()).toEqual(
      [
        'connectionId',
        'createdAt',
        'iconUrl',
        'mcpUrl',
        'metadata',
        'name',
        'serverInfo',
        'status',
        'transport',
      ].toSorted(),
    );
    expect(body.iconUrl).toBe('data:image/png;base64,AAAA');
    const isWaiting = state === 'auth_required' || state === 'input_required';
    expect(body.status.message !== undefined).toBe(isWaiting);
    const texts = [text];
    for (const query of ['', '?section=all', `?q=canary`, `?section=granted&q=canary`, '?state=needs'])
      texts.push((await client.get(`/accounts/me/usable${query}`)).text);
    texts.push((await client.get(`/connect/${namespace}`)).text, (await client.get('/servers?q=canary')).text);
    for (const shown of texts) {
      expect(shown).not.toMatch(/canary|setupUrl|"deny"/);
      expect(shown).not.toContain(new URL(upstream.url).host);
    }
  });

  test('shows its record to its owner', async () => {
    await setState(state);
    const { body } = await app.as(callers.owner).get(path);
    expect(body).toMatchObject({ mcpUrl: upstream.url, metadata: { note: 'canary-metadata' } });
    expect(body.tools).toEqual({ deny: ['canary-tool'] });
    expect(body.status.message !== undefined).toBe(state !== 'connected');
  });
});
