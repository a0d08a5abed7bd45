import { beforeAll, describe, expect } from '@jest/globals';
import { testAccount, testApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import { pathOf, releaseServer } from '../../support/database/server-rows.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { mcp, mcpAccept, request, send, toolCall, type Answer } from '../../support/mcp/calls.js';
import { startScripted, type ScriptedUpstream } from '../../support/special-upstreams/scripted-upstream.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const TOOLS = '{"tools":[{"name":"forecast","inputSchema":{"type":"object"}}]}';
const configSchema = { type: 'object', properties: { apiKey: { type: 'string' } } };

const app = testApp({ PUBLIC_READS: 'true', REGISTRY_HOSTS: 'server.smithery.ai' });
let second: TestApp;
const owner = testAccount(app);
const grantee = testAccount(app);
const stranger = testAccount(app);
const other = testAccount(app);
let upstream: ScriptedUpstream;
/** A restricted server with a release, a warning and configuration. */
let name: string;

beforeAll(async () => {
  upstream = await startScripted(() => TOOLS);
  second = await app.sibling();
  name = await restricted({ configSchema });
  const granted = await app.as(owner).post(pathOf(name, '/grants'), { account: grantee.name, level: 'call' });
  expect(granted.status).toBe(201);
});

async function released(members: object = {}): Promise<string> {
  const created = await createServer(app, owner);
  await releaseServer(app, created, {
    upstreamUrl: upstream.url,
    tools: [{ name: 'forecast', inputSchema: { type: 'object' } }],
    warnings: [{ tool: 'forecast', message: 'Read it.' }],
    ...members,
  });
  return created;
}

async function restricted(members?: object): Promise<string> {
  const created = await released(members);
  expect((await app.as(owner).patch(pathOf(created), { visibility: 'restricted' })).status).toBe(200);
  return created;
}

const slugOf = (qualifiedName: string) => qualifiedName.replace('/', '--');

const sentence = (qualifiedName: string) =>
  `Forbidden: the server ${qualifiedName} is restricted, and its owner has not granted your account access. ` +
  `Ask for it: POST ${pathOf(qualifiedName, '/access-requests')}.`;

const run = (on: TestApp, account: TestAccount, qualifiedName: string, message: object) =>
  send(on, account, `/run/${slugOf(qualifiedName)}`, message, { headers: mcpAccept });

describe('a restricted server', () => {
  verifies('restricted:shown', 'is found, listed and read by everybody, without what only callers need', async () => {
    for (const account of [owner, grantee, stranger, undefined]) {
      const mayCall = account === owner || account === grantee;
      const { status, body } = await second.as(account).get(pathOf(name));
      expect([status, body.visibility, body.tools.length]).toEqual([200, 'restricted', 1]);
      expect(body.security.warnings).toEqual([{ tool: 'forecast', message: 'Read it.' }]);
      expect(body.connections.length).toBe(mayCall ? 1 : 0);
      expect(JSON.stringify(body).includes('apiKey')).toBe(mayCall);
      const listed = await second.as(account).get(`/servers?qualifiedName=${encodeURIComponent(name)}`);
      expect(listed.body.servers).toMatchObject([{ qualifiedName: name, visibility: 'restricted' }]);
      const found = await second.as(account).get(`/servers?q=${encodeURIComponent(name)}&fields=qualifiedName`);
      expect(found.body.servers).toContainEqual({ qualifiedName: name });
    }
  });

  /** What a restricted server shows: status for its owner, an account with the grant `call`, others, and without a key. */
  const shown: [string, string, number[]][] = [
    ['record', '', [200, 200, 200, 200]],
    ['changes of its contract', '/changes', [200, 200, 200, 200]],
    ['icon', '/icon', [404, 404, 404, 404]],
    ['bundle', '/download', [404, 404, 403, 403]],
    ['releases', '/releases', [200, 403, 404, 401]],
    ['secrets', '/secrets', [200, 403, 404, 401]],
    ['domains', '/domains', [200, 403, 404, 401]],
    ['runtime settings', '/runtime', [200, 403, 404, 401]],
    ['logs', '/logs', [200, 403, 404, 401]],
    ['grants', '/grants', [200, 403, 404, 401]],
  ];

  verifies('restricted:shown', 'shows each of its parts to those in the table', async () => {
    for (const [part, rest, statuses] of shown) {
      const asked = [owner, grantee, stranger, undefined].map((account) => app.as(account).get(pathOf(name, rest)));
      expect([part, (await Promise.all(asked)).map(({ status }) => status)]).toEqual([part, statuses]);
    }
  });

  verifies('restricted:called', 'is called by its owner and by whom the owner granted it, everywhere', async () => {
    for (const account of [owner, grantee]) {
      expect((await run(app, account, name, request(1, 'tools/list'))).text).toContain('forecast');
      const { path } = await createConnection(app, account, { server: name });
      expect((await mcp(app, account, path, request(1, 'tools/list'))).text).toContain('forecast');
    }
  });

  verifies('restricted:refused', 'returns 403 with the address for a request, the same for everybody', async () => {
    const answers: Answer[] = [];
    for (const on of [app, second]) {
      for (const account of [stranger, other]) {
        for (const message of [request(1, 'tools/list'), toolCall(1, 'forecast'), request(1, 'initialize')]) {
          answers.push(await run(on, account, name, message));
        }
      }
    }
    for (const { status, body } of answers) {
      expect([status, body]).toEqual([
        403,
        { jsonrpc: '2.0', id: null, error: { code: -33403, message: sentence(name) } },
      ]);
    }
  });

  verifies('restricted:refused', 'is no target of a connection of others', async () => {
    const inside = await createNamespace(app, stranger);
    const targets = [
      { server: name },
      { mcpUrl: `${app.url}/run/${slugOf(name)}` },
      { mcpUrl: `https://server.smithery.ai/${name}/mcp` },
    ];
    for (const target of targets) {
      const { status, body } = await app.as(stranger).put(`/connect/${inside}/${uniqueName('conn')}`, target);
      expect([status, body]).toEqual([403, { error: 'access_required', message: sentence(name) }]);
    }
  });

  verifies('restricted:ends', 'refuses the connections of others when it becomes restricted', async () => {
    const opened = await released();
    const { path, namespace } = await createConnection(app, stranger, { server: opened });
    const tools = (on: TestApp, at: string) => mcp(on, stranger, at, request(1, 'tools/list'));
    for (const on of [app, second]) {
      expect((await tools(on, path)).text).toContain('forecast');
      expect((await run(on, stranger, opened, request(1, 'tools/list'))).status).toBe(200);
    }
    expect((await app.as(owner).patch(pathOf(opened), { visibility: 'restricted' })).status).toBe(200);
    for (const on of [app, second]) {
      const refused = await until(async () => {
        const answer = await tools(on, path);
        return answer.status === 403 ? answer : null;
      }, 'the connection is refused');
      expect(refused.body.error.message).toBe(sentence(opened));
      expect((await run(on, stranger, opened, request(1, 'tools/list'))).status).toBe(403);
    }
    const rest = await app.as(stranger).post(`${path}/.tools/forecast`, {});
    expect([rest.status, rest.body]).toEqual([403, { error: 'access_required', message: sentence(opened) }]);
    const [connection = ''] = path.split('/').slice(-1);
    const called = await send(app, stranger, `/connect/${namespace}/.mcp`, toolCall(1, `${connection}_forecast`), {
      headers: mcpAccept,
    });
    expect(called.text).not.toContain('"content"');
  });
});

describe('a public server with secrets', () => {
  const secret = { name: 'API_KEY', value: 'canary-of-a-secret' };
  const unconfirmed = /has secrets: once it is public, every account calls it with them/;

  verifies('restricted:secrets', 'becomes public only when its owner confirms what that means', async () => {
    const lent = await restricted();
    expect((await app.as(owner).put(pathOf(lent, '/secrets'), secret)).status).toBe(200);
    const visibilityOf = async () => (await app.as(owner).get(pathOf(lent))).body.visibility as string;
    for (const confirmSecrets of [undefined, false]) {
      const { status, body } = await app.as(owner).patch(pathOf(lent), { visibility: 'public', confirmSecrets });
      expect([status, body.error]).toEqual([409, expect.stringMatching(unconfirmed)]);
    }
    expect((await app.as(owner).put(pathOf(lent), { visibility: 'public' })).status).toBe(409);
    expect(await visibilityOf()).toBe('restricted');
    const confirmed = { visibility: 'public', confirmSecrets: true };
    expect((await app.as(owner).patch(pathOf(lent), confirmed)).status).toBe(200);
    const { body } = await app.as(stranger).get(pathOf(lent));
    expect([body.visibility, body.security.warnings[0]]).toEqual([
      'public',
      { tool: null, message: expect.stringMatching(/everybody who calls it works with them/) },
    ]);
    // It stays public, and a confirmation ends with it.
    expect((await app.as(owner).patch(pathOf(lent), { visibility: 'public' })).status).toBe(200);
    expect((await app.as(owner).patch(pathOf(lent), { visibility: 'private' })).status).toBe(200);
    expect((await app.as(owner).patch(pathOf(lent), { visibility: 'public' })).status).toBe(409);
  });
});

describe('DEFAULT_VISIBILITY', () => {
  verifies('restricted:default', 'is restricted where other machines reach the service, and may be set', async () => {
    for (const [settings, visibility] of [
      [{ PUBLIC_URL: 'https://mcp.example.com' }, 'restricted'],
      [{ DEFAULT_VISIBILITY: 'restricted' }, 'restricted'],
      [{}, 'public'],
    ] as const) {
      const sibling = await app.sibling(settings);
      try {
        const created = await createServer(sibling, owner);
        expect((await app.as(owner).get(pathOf(created))).body.visibility).toBe(visibility);
      } finally {
        await sibling.close();
      }
    }
  });
});
