import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { testAccount, testApp, type TestAccount } from '../../support/app.js';
import { pathOf, releaseServer } from '../../support/database/server-rows.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { mcp, request, toolCall, type Json } from '../../support/mcp/calls.js';
import { signedInBrowser } from '../../support/people/browser-session.js';
import { startUpstream, textResult, type Upstream } from '../../support/upstream/upstream.js';

const app = testApp();
const owner = testAccount(app);
const ofServer = testAccount(app);
const ofNamespace = testAccount(app);
const caller = testAccount(app);
const patterned = testAccount(app);
let upstream: Upstream;
let server: string;
let bundle: string;
let connection: string;

const hidden = /canary/;

async function grant(path: string, { id }: TestAccount, allow?: string[]): Promise<void> {
  const body = { account: id, level: 'call', ...(allow && { tools: { allow } }) };
  await app.as(owner).post(`${path}/grants`, body).expect(201);
}

beforeAll(async () => {
  const inputSchema = { type: 'object' };
  upstream = await startUpstream({
    tools: ['echo', 'canary-tool'].map((name) => ({ name, inputSchema, call: () => textResult(name) })),
  });
  const namespace = await createNamespace(app, owner);
  server = await createServer(app, owner, { namespace, visibility: 'private' });
  bundle = await createServer(app, owner, { namespace, visibility: 'private' });
  const snapshot = {
    upstreamUrl: upstream.url,
    tools: ['echo', 'canary-tool'].map((name) => ({ name, description: `${name} works`, inputSchema })),
    resources: [{ name: 'canary-resource', uri: 'file:///canary' }],
    resourceTemplates: [{ name: 'canary-template', uriTemplate: 'file:///canary/{name}' }],
    prompts: [{ name: 'canary-prompt' }],
    warnings: [
      { tool: 'echo', message: 'Read it.' },
      { tool: 'canary-tool', message: 'Read this.' },
      { tool: null, message: 'The server also offers canary-tool.' },
    ],
  };
  await releaseServer(app, server, snapshot);
  await releaseServer(app, bundle, { ...snapshot, type: 'stdio', upstreamUrl: null });
  ({ path: connection } = await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace }));
  for (const path of [pathOf(server), pathOf(bundle)]) await grant(path, ofServer, ['echo']);
  await grant(`/namespaces/${namespace}`, ofNamespace, ['echo']);
  for (const path of [pathOf(server), pathOf(bundle)]) await grant(path, caller);
});

afterAll(() => upstream.close());

const names = (tools: Json[]) => tools.map(({ name }) => name as string);

describe.each(['server', 'namespace'])('a grant of one tool of the %s', (kind) => {
  const account = kind === 'server' ? ofServer : ofNamespace;

  test('shows this tool in the record of a private server, and nothing else', async () => {
    const { status, body, text } = await app.as(account).get(pathOf(server));
    expect([status, names(body.tools as Json[]), body.resources, body.prompts]).toEqual([200, ['echo'], [], []]);
    expect(body.security).toEqual({ scanPassed: true, warnings: [{ tool: 'echo', message: 'Read it.' }] });
    expect(text).not.toMatch(hidden);
  });

  test('shows this tool on the page of a private server, and nothing else', async () => {
    const browser = await signedInBrowser(app, account);
    const { status, text } = await browser.get(`/ui/s/${server.replace('/', '--')}`);
    expect([status, text]).toEqual([200, expect.stringContaining('echo')]);
    expect(text).not.toMatch(hidden);
  });

  test('shows this tool in a probe, and nothing else', async () => {
    for (const body of [{ server }, { mcpUrl: `${app.url}/run/${server.replace('/', '--')}` }]) {
      const probed = await app.as(account).post('/accounts/me/probe', body);
      expect([probed.status, names(probed.body.tools as Json[])]).toEqual([200, ['echo']]);
      expect(probed.text).not.toMatch(hidden);
    }
  });

  test('shows this tool in a mock of the server, and nothing else', async () => {
    const { path } = await createConnection(app, account, { server, mock: { enabled: true } });
    for (const [method, list] of [
      ['tools/list', 'tools'],
      ['resources/list', 'resources'],
      ['resources/templates/list', 'resourceTemplates'],
      ['prompts/list', 'prompts'],
    ]) {
      const { status, text, body } = await mcp(app, account, path, request(1, method));
      expect([method, status, names((body.result?.[list] ?? []) as Json[])]).toEqual([
        method,
        200,
        list === 'tools' ? ['echo'] : [],
      ]);
      expect(text).not.toMatch(hidden);
    }
    const called = await mcp(app, account, path, toolCall(1, 'canary-tool'));
    expect(called.body.error?.code).toBe(-32602);
  });

  test('shows no changes of the contract of a private server', async () => {
    const { status, text } = await app.as(account).get(pathOf(server, '/changes'));
    expect([status, text]).toEqual([403, expect.stringContaining('granted your account only these tools')]);
  });

  test('opens no bundle', async () => {
    const { text } = await app.as(account).get(pathOf(bundle));
    expect(text).not.toContain('/download');
    const { status } = await app.as(account).get(pathOf(bundle, '/download'));
    expect(status).toBe(403);
  });
});

describe('a private server', () => {
  test.each([
    ['owner', owner],
    ['caller', caller],
  ])('shows everything to its %s', async (_, account) => {
    const { body } = await app.as(account).get(pathOf(server));
    expect([body.tools.length, body.resources.length, body.prompts.length, body.security.warnings.length]).toEqual([
      2, 1, 1, 3,
    ]);
    expect((await app.as(account).get(pathOf(server, '/changes'))).status).toBe(200);
    expect((await app.as(account).get(pathOf(bundle))).text).toContain('/download');
    expect((await app.as(account).get(pathOf(bundle, '/download'))).status).toBe(404);
    const { path } = await createConnection(app, account, { server, mock: { enabled: true } });
    const { body: listed } = await mcp(app, account, path, request(1, 'tools/list'));
    expect(names(listed.result.tools as Json[])).toEqual(['echo', 'canary-tool']);
  });
});

describe('the names of a grant of tools', () => {
  test.each(['e*', '*', 'ec*ho'])('are exact: rejects "%s"', async (name) => {
    const body = { account: patterned.id, level: 'call', tools: { allow: ['echo', name] } };
    for (const path of [pathOf(server), connection]) {
      const response = await app.as(owner).post(`${path}/grants`, body);
      expect([response.status, response.text]).toEqual([400, expect.stringContaining('tools.allow')]);
    }
  });

  test('are exact: a stored pattern opens nothing over any interface', async () => {
    await app.database.query(
      `INSERT INTO grants (subject_id, connection_id, level, tools, created_by)
       SELECT $1, c.id, 'call', '{"e*"}', $2 FROM connections c WHERE c.connection_id = $3`,
      [patterned.id, owner.id, connection.split('/').at(-1)],
    );
    const listed = await mcp(app, patterned, connection, request(1, 'tools/list'));
    expect(listed.body.result.tools).toEqual([]);
    expect((await mcp(app, patterned, connection, toolCall(1, 'echo'))).body.error?.code).toBe(-32602);
    expect((await app.as(patterned).get(`${connection}/.tools`)).body.tools).toEqual([]);
  });
});
