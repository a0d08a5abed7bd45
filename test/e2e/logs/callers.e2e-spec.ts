import { beforeAll, describe, expect, it } from '@jest/globals';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client';
import { testAccount, testApp, type TestAccount } from '../../support/app.js';
import { releaseServer } from '../../support/database/server-rows.js';
import { createConnection, createServer } from '../../support/factories.js';
import { readLog } from '../../support/logs/invocations.js';
import { mcp, mcpAccept, request, send, toolCall } from '../../support/mcp/calls.js';
import { tracker } from '../../support/special-upstreams/tracker.js';
import { formTokenIn, openBrowser, personAt } from '../../support/people/browser-session.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

interface Caller {
  account: { id: string; name: string | null };
  credential: { id: string; name: string | null; kind: string };
  client: string | null;
}

const app = testApp();
const author = testAccount(app);
const user = testAccount(app);
let upstream: Upstream;
/** A server of the author, and the address of its run endpoint. */
let server: string;
let address: string;

beforeAll(async () => {
  upstream = await startUpstream();
  server = await createServer(app, author);
  await releaseServer(app, server, { ...tracker, upstreamUrl: upstream.url });
  address = `/run/${server.replace('/', '--')}`;
});

const nameOf = async ({ id }: TestAccount) =>
  (await app.as(app.operator).get('/accounts?pageSize=100')).body.accounts.find(
    (account: { id: string }) => account.id === id,
  ).name as string;

/** What a log shows of the caller that made an account's requests with its only key. */
async function callerFrom(account: TestAccount, client: string | null): Promise<Caller> {
  const { body } = await app.as(account).get('/accounts/me/api-keys');
  const [{ id, name }] = body.apiKeys as { id: string; name: string }[];
  return { account: { id: account.id, name: await nameOf(account) }, credential: { id, name, kind: 'key' }, client };
}

const headersOf = ({ key }: TestAccount) => ({ requestInit: { headers: { authorization: `Bearer ${key}` } } });

const newest = async (query = '') => (await readLog(app, author, server, query)).invocations[0]?.caller;

/** The callers in the log of a connection, newest first. */
async function callersOf(account: TestAccount, path: string, query = ''): Promise<unknown[]> {
  const { body } = await app.as(account).get(`${path}/logs${query}`);
  return (body.invocations as { caller: unknown }[]).map(({ caller }) => caller);
}

describe('the log of a server', () => {
  verifies(
    'log:caller',
    'names account, key and client of a session of the SDK, to the owner of the server',
    async () => {
      const client = new Client({ name: 'probe', version: '1.0.0' });
      await client.connect(new StreamableHTTPClientTransport(new URL(app.url + address), headersOf(user)));
      await client.callTool({ name: 'echo', arguments: { message: 'hi' } });
      await client.close();
      const caller = await callerFrom(user, 'probe');
      expect(await newest('?tool=echo')).toEqual(caller);
      expect(await newest('?method=initialize')).toEqual(caller);
    },
  );

  verifies('log:caller', 'names the client of a request of MCP 2026-07-28', async () => {
    const client = new ModernClient({ name: 'probe of 2026', version: '1.0.0' });
    await client.connect(new ModernTransport(new URL(app.url + address), headersOf(user)));
    await client.callTool({ name: 'echo', arguments: { message: 'hi' } });
    await client.close();
    expect(await newest('?tool=echo')).toEqual(await callerFrom(user, 'probe of 2026'));
  });

  verifies('log:caller', 'has no client where none was named, and finds the calls of one caller', async () => {
    await send(app, author, address, toolCall(1, 'echo', { message: 'mine' }), { headers: mcpAccept });
    const caller = await callerFrom(author, null);
    expect(await newest()).toEqual(caller);
    for (const filter of [caller.account.id, caller.account.name, caller.credential.id]) {
      const found = await readLog(app, author, server, `?caller=${encodeURIComponent(filter ?? '')}`);
      expect([found.total, found.invocations[0]?.caller]).toEqual([1, caller]);
    }
    expect((await readLog(app, author, server, '?caller=nobody')).total).toBe(0);
  });

  verifies(
    'log:caller',
    'names whoever calls through a connection, and so does the log of the connection',
    async () => {
      const { path } = await createConnection(app, user, { server });
      await send(app, user, `${path}/.tools/echo`, { message: 'hi' });
      const byRest = await callerFrom(user, null);
      expect(await newest('?tool=echo')).toEqual(byRest);
      const client = new Client({ name: 'probe of connections', version: '1.0.0' });
      await client.connect(new StreamableHTTPClientTransport(new URL(`${app.url}${path}/mcp`), headersOf(user)));
      await client.callTool({ name: 'echo', arguments: { message: 'hi' } });
      await client.close();
      const byMcp = await callerFrom(user, 'probe of connections');
      expect(await newest('?tool=echo')).toEqual(byMcp);
      expect(await callersOf(user, path, '?tool=echo')).toEqual([byMcp, byRest]);
      expect(await callersOf(user, path, `?caller=${byMcp.account.id}&tool=echo`)).toHaveLength(2);
      expect(await callersOf(user, path, '?caller=nobody')).toEqual([]);
    },
  );

  verifies('log:caller', 'names whoever calls through a namespace', async () => {
    const connectionId = 'probed';
    const { path, namespace } = await createConnection(app, user, { mcpUrl: upstream.url }, { connectionId });
    const client = new Client({ name: 'probe of namespaces', version: '1.0.0' });
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${app.url}/connect/${namespace}/.mcp`), headersOf(user)),
    );
    await client.callTool({ name: `${connectionId}__echo`, arguments: { message: 'hi' } });
    await client.close();
    expect(await callersOf(user, path, '?tool=echo')).toEqual([await callerFrom(user, 'probe of namespaces')]);
  });

  verifies('log:caller', 'keeps the ids of a key that was revoked', async () => {
    const guest = await app.account();
    await send(app, guest, address, request(1, 'tools/list'), { headers: mcpAccept });
    const caller = await callerFrom(guest, null);
    await app.as(guest).delete(`/accounts/me/api-keys/${caller.credential.id}`);
    expect(await newest(`?caller=${guest.id}`)).toEqual({
      ...caller,
      credential: { ...caller.credential, name: null },
    });
  });

  verifies('log:caller', 'names the system of a browser whose person called on a page', async () => {
    const browser = openBrowser(app);
    const token = formTokenIn(await browser.get('/login'));
    const agent = { 'user-agent': 'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36' };
    await browser.post('/login', { 'form-token': token, key: user.key }, agent);
    const { path } = await createConnection(app, user, { server });
    await send(app, user, `${path}/.tools/echo`, { message: 'hi' });
    const person = await personAt(app, browser);
    const credential = { id: person?.keyId, name: 'browser on Android', kind: 'session' };
    await readLog(app, author, server, '?tool=echo');
    await app.database.query(
      `UPDATE invocations SET caller_kind = 'session', caller_id = $1::uuid,
              call = jsonb_set(call, '{caller}', call -> 'caller' || jsonb_build_object('kind', 'session', 'credential', $1::uuid))
        WHERE caller_account = $2`,
      [credential.id, user.id],
    );
    expect(await newest('?tool=echo')).toMatchObject({ credential });
    expect(await callersOf(user, path, `?caller=${credential.id}`)).toEqual([expect.objectContaining({ credential })]);
  });

  it('keeps no more of a client than a short name, and no text that a log cannot store', async () => {
    const clientInfo = { name: `\u0000${'x'.repeat(5_000)}`, version: '1' };
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
    const { status } = await mcp(app, user, address, request(1, 'initialize', params));
    expect(status).toBe(200);
    expect(((await newest('?method=initialize')) as Caller).client?.length).toBeLessThanOrEqual(200);
  });
});
