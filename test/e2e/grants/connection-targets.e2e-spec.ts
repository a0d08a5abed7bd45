import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { testAccount, testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { pathOf } from '../../support/database/server-rows.js';
import { createConnection, createNamespace, createOrganization, createServer } from '../../support/factories.js';
import { publishExternal } from '../../support/releases/releases.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';

const app = testApp();
const owner = testAccount(app);
const manager = testAccount(app);
const friend = testAccount(app);
const partial = testAccount(app);
const tenant = testAccount(app);
const stranger = testAccount(app);
const accounts = { owner, manager, friend, partial };
const servers: Record<string, string> = {};
let namespace: string;
let upstream: Upstream;

const grant = async (by: TestAccount, path: string, body: object) =>
  expect((await app.as(by).post(`${path}/grants`, body)).status).toBeLessThan(300);

const runOf = (server: string) => `${app.url}/run/${server.replace('/', '--')}`;

beforeAll(async () => {
  upstream = await startUpstream();
  namespace = await createNamespace(app, owner);
  for (const { id } of [manager, friend, partial])
    await grant(owner, `/namespaces/${namespace}`, { account: id, level: 'manage' });
  const lead = await app.account();
  const { id: organizationId } = await createOrganization(app, { owner: lead, member: owner });
  const inTeam = uniqueName('team');
  await app.as(lead).put(`/namespaces/${inTeam}`, { organizationId }).expect(201);
  for (const visibility of ['private', 'restricted', 'public']) {
    const own = (servers[`own ${visibility}`] = await createServer(app, owner, { visibility }));
    const granted = (servers[`granted ${visibility}`] = await createServer(app, tenant, { visibility }));
    const ofTeam = (servers[`team ${visibility}`] = await createServer(app, lead, { namespace: inTeam, visibility }));
    await grant(tenant, pathOf(granted), { account: owner.id, level: 'call' });
    for (const [by, server] of [
      [owner, own],
      [tenant, granted],
      [lead, ofTeam],
    ] as const) {
      await publishExternal(app, by, server, { upstreamUrl: upstream.url });
      await grant(by, pathOf(server), { account: friend.id, level: 'call' });
      await grant(by, pathOf(server), { account: partial.id, level: 'call', tools: { allow: ['echo'] } });
    }
  }
});

afterAll(() => upstream.close());

const interfaces: Record<string, (server: string) => ['post' | 'put', string, object]> = {
  'POST by name': (server) => ['post', '', { server }],
  'POST by address': (server) => ['post', '', { mcpUrl: runOf(server) }],
  'POST by address with a query': (server) => ['post', '', { mcpUrl: `${runOf(server)}?a=b` }],
  'POST of a mock': (server) => ['post', '', { server, mock: { enabled: true } }],
  'PUT by name': (server) => ['put', '/', { server }],
  'PUT by address': (server) => ['put', '/', { mcpUrl: `${runOf(server)}/mcp` }],
};
let count = 0;

/** Status and body of a request to create a connection, with `NAME` for the name of the server. */
async function ask(by: TestAccount, how: string, server: string, inside = namespace): Promise<[number, string]> {
  const [method, suffix, body] = interfaces[how](server);
  const path = `/connect/${inside}${suffix && `/c${(count += 1)}`}`;
  const response = await app.as(by)[method](path, body);
  const text = JSON.stringify(response.body);
  return [response.status, text.replaceAll(server, 'NAME').replaceAll(server.replace('/', '--'), 'NAME')];
}

/** The expected status by kind of server: private, restricted, public. Grantees create connections by POST only. */
const rows: [caller: keyof typeof accounts, whose: string, statuses: number[]][] = [
  ['owner', 'own', [201, 201, 201]],
  ['manager', 'own', [400, 403, 201]],
  ['manager', 'granted', [400, 403, 201]],
  ['manager', 'team', [400, 403, 201]],
  ['friend', 'own', [201, 201, 201]],
  ['friend', 'granted', [403, 403, 201]],
  ['friend', 'team', [403, 403, 201]],
  ['partial', 'own', [403, 403, 201]],
  ['partial', 'granted', [403, 403, 201]],
];

describe('a connection in a namespace that others manage', () => {
  test.each(
    rows.flatMap(([caller, whose, statuses]) =>
      ['private', 'restricted', 'public'].flatMap((visibility, at) =>
        Object.keys(interfaces).map((how) => {
          const status = how.startsWith('PUT') && caller !== 'owner' ? 404 : statuses[at];
          return [caller, `${whose} ${visibility}`, how, status] as const;
        }),
      ),
    ),
  )('created by the %s to the server "%s" with %s returns %i', async (caller, server, how, status) => {
    expect((await ask(accounts[caller], how, servers[server]))[0]).toBe(status);
  });

  test.each(Object.keys(interfaces))('returns one response for hidden and unknown servers with %s', async (how) => {
    const unknown = await ask(manager, how, `${namespace}-none/unknown`);
    expect(unknown[0]).toBe(how.startsWith('PUT') ? 404 : 400);
    for (const whose of ['own', 'granted', 'team'])
      expect([whose, ...(await ask(manager, how, servers[`${whose} private`]))]).toEqual([whose, ...unknown]);
  });

  test('keeps its query values from managers that cannot call its server', async () => {
    const server = servers['own private'];
    const other = servers['granted private'];
    const { path } = await createConnection(app, owner, { server }, { namespace });
    const put = async (by: TestAccount, body: object) => (await app.as(by).put(path, body)).status;
    expect(await put(manager, { server, name: 'Renamed' })).toBe(200);
    expect(await put(manager, { mcpUrl: runOf(server) })).toBe(200);
    expect(await put(manager, { mcpUrl: `${runOf(server)}?key=mine` })).toBe(403);
    expect(await put(partial, { mcpUrl: `${runOf(server)}?key=mine` })).toBe(403);
    expect(await put(friend, { mcpUrl: `${runOf(server)}?key=mine` })).toBe(200);
    expect(await put(manager, { mcpUrl: runOf(other) })).toBe(400);
    expect(await put(manager, { mcpUrl: runOf(`${other}-none`) })).toBe(400);
  });
});

describe('a connection to a server that its owner cannot grant', () => {
  test.each(['granted private', 'team private', 'granted restricted', 'team restricted'])(
    'opens for the server "%s" only to accounts that can call that server',
    async (kind) => {
      const server = servers[kind];
      const { path, namespace: inside } = await createConnection(app, owner, { server });
      const give = async (target: string, body: object) =>
        (await app.as(owner).post(`${target}/grants`, { level: 'call', ...body })).status;
      for (const target of [path, `/namespaces/${inside}`]) {
        expect([target, await give(target, { account: stranger.id })]).toEqual([target, 403]);
        expect([target, await give(target, { account: stranger.id, level: 'manage' })]).toEqual([target, 403]);
        expect([target, await give(target, { everyone: true })]).toEqual([target, 403]);
        expect([target, await give(target, { account: friend.id })]).toEqual([target, 201]);
      }
      const shared = await createNamespace(app, owner);
      expect(await give(`/namespaces/${shared}`, { account: stranger.id })).toBe(201);
      for (const how of Object.keys(interfaces))
        expect([how, (await ask(owner, how, server, shared))[0]]).toEqual([how, 403]);
    },
  );

  test('is granted as before where its server is public or its own', async () => {
    for (const kind of ['own private', 'granted public', 'team public']) {
      const { path } = await createConnection(app, owner, { server: servers[kind] });
      await grant(owner, path, { account: stranger.id, level: 'call' });
    }
  });
});
