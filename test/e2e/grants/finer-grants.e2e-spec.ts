import { beforeAll, describe, expect } from '@jest/globals';
import { testAccount, testApp, type TestAccount } from '../../support/app.js';
import { pathOf } from '../../support/database/server-rows.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { mcp, mcpAccept, request, send, toolCall, type Json } from '../../support/mcp/calls.js';
import { publishExternal } from '../../support/releases/releases.js';
import { until } from '../../support/until.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
const caller = testAccount(app);
const stranger = testAccount(app);
let upstream: Upstream;
let namespace: string;
let connection: string;
let server: string;
let run: string;

beforeAll(async () => {
  upstream = await startUpstream();
  namespace = await createNamespace(app, owner);
  connection = (await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace })).path;
  server = await createServer(app, owner, { namespace, visibility: 'private' });
  await publishExternal(app, owner, server, { upstreamUrl: upstream.url });
  run = `/run/${server.replace('/', '--')}`;
});

const grant = async (target: string, body: object, status = [200, 201]): Promise<Json> => {
  const answer = await app.as(owner).post(`${target}/grants`, body);
  expect([status, answer.body]).toEqual([expect.arrayContaining([answer.status]), expect.anything()]);
  return answer.body;
};

const withdraw = (target: string, { id }: Json) => app.as(owner).delete(`${target}/grants/${(id as string) ?? ''}`);

/** The text that `echo` gives back at an MCP endpoint, or the code of the refusal. */
async function echoAt(account: TestAccount, path: string, name = 'echo'): Promise<unknown> {
  const { status, body } = await mcp(app, account, path, toolCall(1, name, { message: 'hello' }));
  const { result, error } = body;
  return result?.content?.[0]?.text ?? error?.code ?? status;
}

const toolsAt = async (account: TestAccount, path: string): Promise<unknown> => {
  const { status, body } = await mcp(app, account, path, request(1, 'tools/list'));
  return body.result?.tools.map((tool: Json) => tool.name as string) ?? status;
};

describe('a grant of some tools', () => {
  verifies('grants:tools', 'opens these and nothing else, over every interface', async () => {
    const tools = { allow: ['echo', 'later'] };
    const ofConnection = await grant(connection, { account: caller.id, level: 'call', tools });
    expect(ofConnection).toMatchObject({ level: 'call', tools, account: { id: caller.id } });
    const ofServer = await grant(pathOf(server), { account: caller.id, level: 'call', tools });
    const own = (await createConnection(app, caller, { server })).path;
    for (const path of [connection, run, own]) {
      expect([path, await toolsAt(caller, path)]).toEqual([path, ['echo']]);
      expect([path, await echoAt(caller, path)]).toEqual([path, 'hello']);
      expect([path, await echoAt(caller, path, 'raw')]).toEqual([path, -32602]);
      for (const method of ['resources/list', 'prompts/list', 'resources/read', 'completion/complete', 'tasks/get']) {
        const { body } = await mcp(app, caller, path, request(1, method, { uri: 'x:y', taskId: 'x' }));
        expect([path, method, body.error?.code]).toEqual([path, method, -32601]);
      }
      const clientInfo = { name: 'spec', version: '1' };
      const hello = request(0, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
      const { capabilities } = (await mcp(app, caller, path, hello)).body.result;
      expect([path, Object.keys(capabilities as object)]).toEqual([path, ['tools']]);
    }
    const as = app.as(caller);
    const statuses = [
      await as.get(connection),
      await as.post(`${connection}/.tools/echo`, { message: 'hello' }),
      await as.get(`${connection}/.tools/echo`),
      await as.post(`${connection}/.tools/raw`, {}),
      await as.get(`${connection}/.tools/raw`),
      await as.get(`${connection}/.tools/repo`),
      await as.get(`${connection}/.triggers`),
      await as.post(`/connect/${namespace}/.mcp`, request(1, 'tools/list')),
      await as.get(`${run}/index.html`),
    ].map(({ status }) => status);
    expect(statuses).toEqual([200, 200, 200, 404, 404, 404, 403, 404, 403]);
    const listed = await as.get(`${connection}/.tools`);
    expect(listed.body.tools.map((tool: Json) => tool.name as string)).toEqual(['echo']);
    // The owner sees all as before.
    expect(((await toolsAt(owner, connection)) as string[]).length).toBeGreaterThan(1);
    await withdraw(connection, ofConnection);
    await withdraw(pathOf(server), ofServer);
    await app.as(caller).delete(own);
  });

  verifies('grants:tools', 'adds up with others, and ends at its time', async () => {
    const space = `/namespaces/${namespace}`;
    const one = await grant(connection, { account: caller.id, level: 'call', tools: { allow: ['echo'] } });
    const all = await grant(space, { everyone: true, level: 'call', tools: { allow: ['raw'] } });
    expect(all).toMatchObject({ everyone: true, tools: { allow: ['raw'] } });
    const path = connection;
    expect(
      await until(async () => {
        const tools = await toolsAt(caller, path);
        return Array.isArray(tools) && tools.length === 2 && tools;
      }, 'both are open'),
    ).toEqual(expect.arrayContaining(['echo', 'raw']));
    expect(await toolsAt(stranger, path)).toEqual(['raw']);
    expect(await echoAt(stranger, run, 'echo')).toBe(-32602);
    const expiresAt = new Date(Date.now() + 1_500).toISOString();
    await grant(space, { everyone: true, level: 'call', expiresAt });
    await until(async () => ((await toolsAt(stranger, run)) as string[]).length > 2, 'all tools are open');
    await until(async () => (await toolsAt(stranger, path)) === 404, 'it has ended', 8_000);
    await until(async () => (await toolsAt(stranger, run)) === 404, 'it has ended at the run endpoint', 8_000);
    expect(await toolsAt(caller, path)).toEqual(['echo']);
    expect((await app.as().get(connection)).status).toBe(401);
    for (const given of [one]) expect((await withdraw(connection, given)).status).toBe(200);
    expect((await withdraw(space, all)).status).toBe(200);
  });
});

describe('the endpoint of a namespace', () => {
  verifies('grants:tools', 'serves the tools of a grant, in each form', async () => {
    const space = await createNamespace(app, owner);
    await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace: space, connectionId: 'mine' });
    const path = `/connect/${space}/.mcp`;
    await grant(`/namespaces/${space}`, { account: caller.id, level: 'call', tools: { allow: ['echo'] } });
    const ask = async (message: object, query = '', account = caller): Promise<Json> =>
      (await send(app, account, `${path}${query}`, message, { headers: mcpAccept })).body;
    const names = ({ result }: Json) => result.tools.map(({ name }: Json) => name as string);
    expect(names(await ask(request(1, 'tools/list')))).toEqual(['mine__echo']);
    for (const name of ['mine__echo', 'mine.echo', 'echo']) {
      const { result } = await ask(toolCall(1, name, { message: 'hello' }));
      expect([name, result.content[0].text]).toEqual([name, 'hello']);
    }
    for (const name of ['mine__raw', 'mine.raw', 'raw'])
      expect([name, (await ask(toolCall(1, name, {}))).error?.code]).toEqual([name, -32602]);
    for (const method of ['resources/list', 'prompts/list', 'resources/read', 'tasks/get', 'completion/complete'])
      expect([method, (await ask(request(1, method, { uri: 'x:y' }))).error?.code]).toEqual([method, -32601]);
    const search = { name: 'search_tools', arguments: { query: 'raw echo' } };
    const found = await ask(request(1, 'tools/call', search), '?mode=search');
    expect(JSON.parse(found.result.content[0].text as string)).toMatchObject({ searched: 1, found: 1 });
    const raw = { name: 'call_tool', arguments: { name: 'mine__raw', arguments: {} } };
    const refused = await ask(request(1, 'tools/call', raw), '?mode=search');
    expect(refused.result?.content ?? refused.error?.code).toBe(-32602);
    expect(names(await ask(request(1, 'tools/list'), '', owner)).length).toBeGreaterThan(1);
  });
});

describe('a grant whose terms change', () => {
  verifies('grants:tools', 'closes open streams at the run endpoint', async () => {
    const target = pathOf(server);
    const given = await grant(target, { account: caller.id, level: 'call' });
    const headers = { authorization: `Bearer ${caller.key}`, accept: 'text/event-stream' };
    const stream = await fetch(`${app.url}${run}`, { headers });
    expect(stream.status).toBe(200);
    let isOpen = true;
    void stream.text().finally(() => (isOpen = false));
    await grant(target, { account: caller.id, level: 'call', tools: { allow: ['echo'] } });
    await until(() => !isOpen, 'the stream ends', 5_000);
    expect(await toolsAt(caller, run)).toEqual(['echo']);
    await withdraw(target, given);
  });
});

describe('a grant of a namespace', () => {
  verifies('grants:namespace', 'opens all that is in it, also what comes later, at its level', async () => {
    const space = await createNamespace(app, owner);
    const path = `/namespaces/${space}`;
    const before = (await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace: space })).path;
    expect(await toolsAt(caller, before)).toBe(404);
    const given = await grant(path, { account: caller.name, level: 'manage' });
    const { grants } = (await app.as(caller).get('/accounts/me/grants')).body;
    expect(grants[0]).toMatchObject({ id: given.id, kind: 'namespace', namespace: space, level: 'manage' });
    const later = await app.as(caller).post(`/connect/${space}`, { mcpUrl: upstream.url });
    expect(later.status).toBe(201);
    const { connectionId } = later.body;
    for (const each of [before, `/connect/${space}/${String(connectionId)}`])
      expect(await echoAt(caller, each)).toBe('hello');
    const made = pathOf(`${space}/made`);
    expect((await app.as(caller).put(made, { visibility: 'private' })).status).toBe(201);
    expect((await app.as(caller).delete(made)).status).toBe(403);
    expect((await app.as(stranger).put(pathOf(`${space}/other`), {})).status).toBe(403);
    expect((await app.as(caller).post(`${path}/grants`, { everyone: true, level: 'call' })).status).toBe(403);
    expect((await app.as(stranger).post(`${path}/grants`, { everyone: true, level: 'call' })).status).toBe(404);
    expect((await withdraw(path, given)).status).toBe(200);
    await until(async () => (await toolsAt(caller, before)) === 404, 'it is closed', 6_000);
  });

  verifies('grants:terms', 'is refused with terms that do not go together', async () => {
    for (const [body, words] of [
      [{ level: 'call' }, 'account'],
      [{ account: caller.id, everyone: true, level: 'call' }, 'exclude each other'],
      [{ account: caller.id, everyone: false, level: 'call' }, 'everyone'],
      [{ everyone: true, level: 'manage', tools: { allow: ['a'] } }, 'tools needs the level'],
      [{ everyone: true, level: 'call', tools: { allow: [] } }, 'at least one name'],
      [{ everyone: true, level: 'call', tools: { allow: [''] } }, 'allow'],
      [{ everyone: true, level: 'call', tools: {} }, 'allow'],
      [{ everyone: true, level: 'call', expiresAt: '2020-01-01T00:00:00Z' }, 'in the future'],
      ...['2026-W01-1', '2030-W10-3', '2030-366T00:00:00Z'].map((expiresAt): [object, string] => [
        { everyone: true, level: 'call', expiresAt },
        'expiresAt',
      ]),
    ] as const) {
      const { status, body: answer } = await app.as(owner).post(`/namespaces/${namespace}/grants`, body);
      expect([body, status, JSON.stringify(answer)]).toEqual([body, 400, expect.stringContaining(words)]);
    }
  });
});
