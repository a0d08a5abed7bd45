import { beforeAll, describe, expect, it } from '@jest/globals';
import { testAccount, testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { createConnection, createOrganization, createServer } from '../../support/factories.js';
import { record } from '../../support/logs/invocations.js';
import { signedInBrowser } from '../../support/people/browser-session.js';
import { startUpstream } from '../../support/upstream/upstream.js';
import { until } from '../../support/until.js';

const HOSTILE = `=cmd|' /C calc'!A0,"<script>alert(1)</script>"`;

const app = testApp();
const owner = testAccount(app);
const editor = testAccount(app);
const member = testAccount(app);
const guest = testAccount(app);
const manager = testAccount(app);
const stranger = testAccount(app);
let namespace: string;
let connection: string;
let server: string;
let upstreamUrl: string;

beforeAll(async () => {
  const organization = await createOrganization(app, { owner, editor, member });
  namespace = uniqueName('shop');
  await app.as(owner).put(`/namespaces/${namespace}`, { organizationId: organization.id });
  const { url } = await startUpstream();
  upstreamUrl = url;
  await createConnection(app, owner, { mcpUrl: url }, { namespace, connectionId: 'main' });
  connection = `${namespace}/main`;
  for (const [account, level] of [
    [guest, 'call'],
    [manager, 'manage'],
    // A member sees as a member, whatever else was granted.
    [member, 'manage'],
  ] as const) {
    const grant = { account: account.id, level };
    expect((await app.as(owner).post(`/connect/${connection}/grants`, grant)).status).toBe(201);
  }
  for (const account of [owner, member, guest, manager]) {
    await app.as(account).post(`/connect/${connection}/.tools/echo`, { message: account.name });
  }
  server = await createServer(app, owner, { namespace, server: 'files', visibility: 'public' });
  const found = await app.database.query<{ id: string }[]>(
    `SELECT s.id FROM servers s JOIN namespaces n ON n.id = s.namespace_id WHERE n.name = $1`,
    [namespace],
  );
  const caller = { account: guest.id, credential: guest.id, kind: 'key', client: HOSTILE } as const;
  const serverId = found[0].id;
  record(app, serverId, {
    ...{ toolName: 'read', rpcMethod: 'tools/call', outcome: 'exception', caller },
    payload: { arguments: '{"path":"/etc"}', result: '<b>secret</b>' },
  });
  record(app, serverId, { toolName: HOSTILE, rpcMethod: 'tools/call', outcome: 'ok', caller });
  record(app, serverId, { toolName: null, rpcMethod: 'tools/list', outcome: 'ok', caller });
  await until(async () => rowsIn(await open(owner)).length === 6, 'all calls are listed');
});

async function open(account: TestAccount, query = ''): Promise<string> {
  const { status, text } = await (await signedInBrowser(app, account)).get(`/ui/calls${query}`);
  expect(status).toBe(200);
  return text;
}

/** The text of the rows of calls. */
function rowsIn(page: string): string[] {
  const list = /<caption class="hidden">Calls, newest first[^]*?<\/table>/.exec(page)?.[0] ?? '';
  return (list.split('<tbody')[1]?.match(/<tr[^]*?<\/tr>/g) ?? []).map((row) =>
    row
      .replace(/<[^>]*>/g, ' ')
      .replace(/\s+/g, ' ')
      .trim(),
  );
}

const hrefOf = (page: string, text: string) =>
  new RegExp(`href="([^"]*)"[^>]*>(?:<code>)?${text}`).exec(page)?.[1].replaceAll('&amp;', '&') ?? '';

describe('GET /calls', () => {
  const list = async (account: Pick<TestAccount, 'key'>, query = '') => {
    const { status, body } = await app.as(account).get(`/calls${query}`);
    expect(status).toBe(200);
    return body as { calls: Record<string, unknown>[]; nextCursor: string | null };
  };

  it('lists the calls of the page to the same accounts, with the same filters', async () => {
    for (const query of [
      ...['', '?all=true', `?target=${connection}`, `?target=${namespace}`, `?account=${guest.id}`, '?tool=echo'],
      ...[`?tool=${encodeURIComponent(HOSTILE)}`, '?outcome=exception', '?since=30d'],
    ]) {
      for (const account of [owner, editor, member, guest, manager, stranger, app.operator]) {
        const { calls, nextCursor } = await list(account, query);
        const rows = rowsIn(await open(account, query));
        expect({ query, calls: calls.length, nextCursor }).toEqual({ query, calls: rows.length, nextCursor: null });
        expect(rows.map((row) => row.includes('OK'))).toEqual(calls.map(({ outcome }) => outcome === 'ok'));
      }
    }
    const { calls } = await list(guest);
    expect(calls).toEqual([
      {
        ...{ id: calls[0].id, at: calls[0].at, durationMs: calls[0].durationMs, exceptions: [] },
        ...{ kind: 'connection', target: connection, tool: 'echo', method: 'tools/call', outcome: 'ok' },
        caller: {
          account: { id: guest.id, name: guest.name },
          credential: { id: expect.stringMatching(/^[0-9a-f-]{36}$/), kind: 'key', name: 'test' },
          client: null,
        },
      },
    ]);
    expect(JSON.stringify(await list(owner))).not.toMatch(/secret|\/etc/);
  });

  it('continues by cursor, and rejects values that no filter has', async () => {
    const { calls } = await list(owner, '?all=1');
    const pages: unknown[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const page = await list(owner, `?all=1&limit=2${cursor && `&cursor=${cursor}`}`);
      expect(page.calls.length).toBeLessThanOrEqual(2);
      pages.push(...page.calls);
      cursor = page.nextCursor;
    }
    expect(pages).toEqual(calls);
    for (const query of ['outcome=nothing', 'since=soon', 'cursor=x', 'limit=101', 'all=maybe', 'tool=a%00'])
      expect([query, (await app.as(owner).get(`/calls?${query}`)).status]).toEqual([query, 400]);
    const latest = 'ffffffff-ffff-7fff-bfff-ffffffffffff';
    expect(await list(owner, `?all=1&cursor=${latest}`)).toMatchObject({ calls });
    expect((await app.as({ key: '' }).get('/calls')).status).toBe(401);
  });

  it('lists to a key with a scope in one namespace only the calls there', async () => {
    const other = await createConnection(app, owner, { mcpUrl: upstreamUrl });
    await app.as(owner).post(`${other.path}/.tools/echo`, { message: 'elsewhere' });
    await until(async () => (await list(owner)).calls.length === 7, 'the call elsewhere is listed');
    const created = await app
      .as(owner)
      .post(`/accounts/${owner.id}/api-keys`, { name: 'narrow', scopes: [`read:${namespace}`] });
    expect(created.status).toBe(201);
    expect((await list(created.body as TestAccount)).calls).toHaveLength(6);
    expect((await list(created.body as TestAccount, '?target=' + other.path.slice('/connect/'.length))).calls).toEqual(
      [],
    );
    await app.as(owner).delete(other.path);
  });

  it('is one click from the pages of servers, connections, namespaces and keys', async () => {
    const browser = await signedInBrowser(app, owner);
    const { apiKeys } = (await app.as(owner).get('/accounts/me/api-keys')).body as { apiKeys: { id: string }[] };
    for (const [path, query] of [
      [`/ui/s/${server.replace('/', '--')}`, `target=${encodeURIComponent(server)}`],
      [`/ui/n/${namespace}`, `target=${namespace}`],
      [`/ui/n/${namespace}`, `target=${encodeURIComponent(connection)}`],
      [`/ui/c/${connection}`, `target=${encodeURIComponent(connection)}`],
      ['/me', `account=${apiKeys[0].id}`],
    ])
      expect([path, (await browser.get(path)).text.includes(`ui/calls?${query}"`)]).toEqual([path, true]);
    const ofGuest = await (await signedInBrowser(app, guest)).get(`/ui/s/${server.replace('/', '--')}`);
    expect(ofGuest.text).not.toContain('ui/calls?');
  });
});

describe('/ui/calls', () => {
  it('shows each person the calls that the logs show', async () => {
    for (const account of [owner, editor]) {
      const rows = rowsIn(await open(account));
      expect(rows).toHaveLength(6);
      for (const caller of [owner, member, guest, manager]) expect(rows.join()).toContain(caller.name);
      expect(rows.filter((row) => row.includes(server))).toHaveLength(2);
    }
    const ofManager = rowsIn(await open(manager));
    expect(ofManager).toHaveLength(4);
    expect(ofManager.join()).toContain(owner.name);
    for (const account of [member, guest]) {
      const rows = rowsIn(await open(account));
      expect(rows).toHaveLength(1);
      expect(rows[0]).toContain(`echo ${connection} connection ${account.name}`);
    }
    for (const account of [stranger, app.operator]) expect(rowsIn(await open(account))).toEqual([]);
  });

  it('shows the calls of a connection to the same callers as its log', async () => {
    for (const account of [owner, editor, member, guest, manager, stranger, app.operator]) {
      const { status, body } = await app.as(account).get(`/connect/${connection}/logs?limit=100`);
      const logged = status === 200 ? (body.invocations as { tool: string | null }[]) : [];
      const rows = rowsIn(await open(account, `?target=${connection}&all=`));
      expect(rows).toHaveLength(logged.length);
    }
  });

  it('filters by target, account, tool, outcome and period in the address', async () => {
    for (const [query, count] of [
      [`?target=${connection}`, 4],
      [`?target=${server}`, 2],
      [`?target=${namespace}`, 6],
      [`?account=${guest.name}`, 3],
      [`?account=${guest.id}&target=${connection}`, 1],
      ['?tool=echo', 4],
      [`?tool=${encodeURIComponent(HOSTILE)}`, 1],
      ['?outcome=exception', 1],
      ['?outcome=nothing&since=soon&before=x', 6],
      ['?since=7d&all=', 7],
      ['?account=nobody%00', 0],
    ] as const) {
      expect([query, rowsIn(await open(owner, query)).filter((row) => !row.includes('initialize')).length]).toEqual([
        query,
        count,
      ]);
    }
    const page = await open(owner);
    expect(page).toContain('aria-label="Calls per hour: OK 5, Denied or canceled 0, Failed 1; at most');
    expect(rowsIn(await open(owner, '?all=')).join()).toContain('tools/list');
  });

  it('opens what is stored of a call to those who manage the server', async () => {
    const page = await open(owner);
    const path = new URL(hrefOf(page, 'read'), `${app.url}/ui/`).search;
    const opened = await open(owner, path);
    expect(opened).toContain('{&quot;path&quot;:&quot;/etc&quot;}');
    expect(opened).toContain('&lt;b&gt;secret&lt;/b&gt;');
    const ofGuest = await (await signedInBrowser(app, guest)).get(`/ui/calls${path}`);
    expect(ofGuest.status).toBe(404);
    expect(ofGuest.text).not.toContain('secret');
    const own = new URL(hrefOf(await open(guest), 'echo'), `${app.url}/ui/`).search;
    expect(await open(guest, own)).toContain('Arguments and results are not stored');
    const foreign = new URL(hrefOf(await open(owner, `?account=${owner.name}`), 'echo'), `${app.url}/ui/`).search;
    expect((await (await signedInBrowser(app, guest)).get(`/ui/calls${foreign}`)).status).toBe(404);
  });

  it('never writes a name as markup, and needs no script', async () => {
    const page = await open(owner);
    expect(page).toContain('&lt;script&gt;alert(1)');
    expect(page).not.toContain('<script>alert');
    expect(page.match(/<script/g)).toHaveLength(1);
    expect(page).not.toMatch(/ on[a-z]+="|style="/);
  });

  it('continues after the last call of a page', async () => {
    const [first] = rowsIn(await open(owner));
    const [, id = ''] = /call=([0-9a-f-]{36})/.exec(await open(owner)) ?? [];
    const older = rowsIn(await open(owner, `?before=${id}`));
    expect(older).toHaveLength(5);
    expect(older).not.toContain(first);
  });

  it('downloads the same as CSV, without formulas', async () => {
    const browser = await signedInBrowser(app, owner);
    const { status, headers, text } = await browser.get('/ui/calls/csv?account=' + guest.name);
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': 'attachment; filename=calls.csv',
      'cache-control': 'no-store',
    });
    const lines = text.split('\r\n');
    expect(lines).toHaveLength(5);
    expect(lines[0]).toMatch(/^"time","account",/);
    expect(text).toContain(`"'${HOSTILE.replaceAll('"', '""')}"`);
    expect(text).not.toMatch(/(^|,)"?[=+@]/m);
    expect((await (await signedInBrowser(app, stranger)).get('/ui/calls/csv')).text.split('\r\n')).toHaveLength(2);
  });
});
