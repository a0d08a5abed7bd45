import { beforeAll, describe, expect, it } from '@jest/globals';
import { testAccount, testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { releaseServer } from '../../support/database/server-rows.js';
import { createConnection, createServer } from '../../support/factories.js';
import { signedInBrowser, type Answer, type BrowserSession } from '../../support/people/browser-session.js';
import { startEverything } from '../../support/upstream/everything.js';
import { until } from '../../support/until.js';
import { shownFault } from '../../support/people/form-faults.js';
import { pair, untilState } from '../../support/mcp/uplink-client.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const accounts = {
  owner: testAccount(app),
  manager: testAccount(app),
  guest: testAccount(app),
  stranger: testAccount(app),
};
const browsers = {} as Record<keyof typeof accounts, BrowserSession>;
let url: string;
let made: { namespace: string; connectionId: string; path: string };
let page: string;
/** The page of who may use it. */
let access: string;

const accessTo = (kind: string, name: string) => `/ui/access/${kind}/${encodeURIComponent(name)}`;

const asOwner = () => app.as(accounts.owner);
const read = async () => (await asOwner().get(made.path)).body as Record<string, unknown>;
const grants = async () =>
  (await asOwner().get(`${made.path}/grants`)).body.grants as { id: string; account: { name: string } }[];
const parts = ({ text }: Answer) => [...text.matchAll(/<h2 id="(\w+)"/g)].map(([, id]) => id);
const textOf = ({ text }: Answer) => text.replace(/<[^>]*>|\s+/g, ' ').replace(/ +/g, ' ');
const done = async (form: Record<string, string>, browser = browsers.owner) => {
  const { status, headers } = await browser.submit(page, form);
  expect([form.form, status]).toEqual([form.form, 303]);
  return headers.location?.split('?')[1];
};
const grant = (account: TestAccount, terms: object) =>
  asOwner().post(`${made.path}/grants`, { account: account.id, ...terms });

beforeAll(async () => {
  ({ url } = await startEverything());
  for (const name of Object.keys(accounts) as (keyof typeof accounts)[]) {
    browsers[name] = await signedInBrowser(app, accounts[name]);
  }
  made = await createConnection(app, accounts.owner, {
    mcpUrl: url,
    name: 'Mail <b>"\u202e',
    metadata: { team: 'secret-team' },
    headers: { 'X-Api-Key': 'secret-value' },
  });
  page = `/ui/c/${made.namespace}/${made.connectionId}`;
  access = accessTo('connection', `${made.namespace}/${made.connectionId}`);
  await grant(accounts.guest, { level: 'call', tools: { allow: ['echo'] } });
  await grant(accounts.manager, { level: 'manage' });
});

const forms: Record<string, string>[] = [
  { form: 'check' },
  { form: 'settings/name', name: 'Theirs' },
  { form: 'settings/metadata', metadata: '{}' },
  { form: 'settings/headers', headers: '' },
  { form: 'settings/callTimeoutMs', callTimeoutMs: '500' },
  { form: 'settings/mcpUrl', mcpUrl: 'http://127.0.0.1:9/mcp' },
  { form: 'record' },
  { form: 'stop' },
  { form: 'forget' },
  { form: 'delete' },
  { form: 'settings/other' },
];

describe('the page of a connection', () => {
  verifies('console:connection', 'shows each person what REST returns, and a missing page to outsiders', async () => {
    const common = ['state', 'connect', 'tools', 'calls'];
    const managed = [...common, 'recording', 'settings'].toSorted();
    expect(parts(await browsers.owner.get(page)).toSorted()).toEqual(managed);
    expect((await browsers.owner.get(page)).text).toContain(`href="../../../${access.slice(1)}"`);
    expect((await browsers.manager.get(page)).text).not.toContain('ui/access');
    expect(parts(await browsers.manager.get(page)).toSorted()).toEqual(managed);
    const guest = await browsers.guest.get(page);
    expect(parts(guest).toSorted()).toEqual(common.toSorted());
    expect(guest.text).not.toMatch(/secret-|method="post" action="[^"]*\/ui\/c|127\.0\.0\.1:\d+\/mcp"/);
    expect(guest.text).not.toContain(new URL(url).port);
    const foreign = await browsers.stranger.get(page);
    const none = await browsers.stranger.get(`/ui/c/${made.namespace}/none`);
    const body = ({ text }: Answer) => text.replace(/value="[^"]*"/g, '');
    expect([foreign.status, body(foreign)]).toEqual([404, body(none)]);
    expect((await browsers.owner.get(page)).text).not.toMatch(/secret-value|\u202e|Mail <b>/);
  });

  verifies('console:connection', 'takes no form of who may not send it, and changes nothing', async () => {
    const before = [await read(), await grants()];
    const [given] = await grants();
    for (const form of forms) {
      const sent = { ...form, id: given?.id ?? '', typed: made.connectionId };
      const status = async (name: keyof typeof accounts) => (await browsers[name].submit(page, sent, '/me')).status;
      expect([form.form, await status('stranger'), await status('guest')]).toEqual([form.form, 404, 403]);
      if (form.form === 'delete') {
        expect([form.form, await status('manager')]).toEqual([form.form, 403]);
      }
    }
    expect((await browsers.manager.submit(page, forms[5] ?? {})).status).toBe(409);
    expect([await read(), await grants()]).toEqual(before);
  });

  it('creates no connection from a form', async () => {
    const missing = `/ui/c/${made.namespace}/${uniqueName('none')}`;
    const answer = await browsers.owner.submit(missing, { form: 'settings/mcpUrl', mcpUrl: url }, '/me');
    expect(answer.status).toBe(404);
    expect((await browsers.owner.get(missing)).status).toBe(404);
  });

  verifies('console:connection-check', 'checks every step', async () => {
    for (const browser of [browsers.owner, browsers.manager]) {
      const { status, headers } = await browser.submit(page, { form: 'check' });
      expect([status, headers.location]).toEqual([303, `../../../..${page}?check`]);
      expect((await browser.get(`${page}?check`)).text).toMatch(/<li class="ok"><b>list<\/b>/);
    }
    expect((await browsers.guest.get(`${page}?check`)).text).not.toContain('<b>list</b>');
  });
});

describe('its settings', () => {
  verifies('console:connection-settings', 'are changed, and a refused form keeps what was typed', async () => {
    expect(await done({ form: 'settings/name', name: ' Post ' }, browsers.manager)).toBe('done=changed');
    expect((await browsers.owner.get(`${page}?done=changed`)).text).toContain(
      'role="status"><div>The change is stored.',
    );
    await done({ form: 'settings/metadata', metadata: '{"a": [1]}' });
    await done({ form: 'settings/callTimeoutMs', callTimeoutMs: '700' });
    expect(await read()).toMatchObject({ name: 'Post', metadata: { a: [1] }, callTimeoutMs: 700 });
    const [, choice = ''] =
      /href="[./]*\/ui\/(add\/[^"]+)">Choose the tools/.exec((await browsers.owner.get(page)).text) ?? [];
    const saved = await browsers.owner.submit(`/ui/${choice}`, { form: 'save', tool: 'echo' });
    expect([saved.status, saved.headers.location]).toEqual([
      303,
      `../../../../../ui/c/${made.namespace}/${made.connectionId}?done=changed`,
    ]);
    expect((await read()).tools).toEqual({ allow: ['echo'] });
    await asOwner().put(made.path, { tools: {} });
    await done({ form: 'settings/callTimeoutMs', callTimeoutMs: '' });
    const now = await read();
    expect([now.tools, now.callTimeoutMs]).toEqual([undefined, undefined]);
    for (const [what, value] of [
      ['metadata', '{"a": &'],
      ['name', ''],
      ['callTimeoutMs', 'soon'],
    ] as const) {
      const { status, text } = await browsers.owner.submit(page, { form: `settings/${what}`, [what]: value });
      expect([what, status]).toEqual([what, 400]);
      expect(text).toContain(value.replace('&', '&amp;').replaceAll('"', '&quot;'));
      expect(shownFault(text)).toMatchObject({ focused: [what], described: expect.stringMatching(/^[A-Z].* must/) });
    }
    expect(await read()).toEqual(now);
  });

  verifies('console:connection-settings', 'take headers, and show no value of one again', async () => {
    const refused = await browsers.owner.submit(page, {
      form: 'settings/headers',
      headers: 'X-Key: hush\nhost: a\nhush',
    });
    expect([refused.status, refused.text.includes('hush')]).toEqual([400, false]);
    expect(refused.text).toMatch(/>\nX-Key: \nhost: <\/textarea>/);
    expect(await done({ form: 'settings/headers', headers: 'X-Key: a:b\r\n' })).toBe('done=changed');
    expect((await browsers.owner.get(page)).text).not.toContain('a:b');
  });

  verifies('console:connection-address', 'take another address while the connection has never worked', async () => {
    const { namespace } = made;
    const wrong = await createConnection(app, accounts.owner, { mcpUrl: 'http://127.0.0.1:9/mcp' }, { namespace });
    const at = `/ui/c/${namespace}/${wrong.connectionId}`;
    expect((await browsers.owner.get(page)).text).not.toContain('name="mcpUrl"');
    const refused = await browsers.owner.submit(at, { form: 'settings/mcpUrl', mcpUrl: 'ftp://x' });
    expect([refused.status, refused.text.includes('value="ftp://x"')]).toEqual([400, true]);
    expect((await browsers.owner.submit(at, { form: 'settings/mcpUrl', mcpUrl: url })).status).toBe(303);
    expect((await asOwner().get(wrong.path)).body).toMatchObject({ mcpUrl: url, status: { state: 'connected' } });
    expect((await browsers.owner.get(at)).text).not.toContain('name="mcpUrl"');
  });
});

describe('an uplink', () => {
  verifies('console:connection-uplink', 'has the command that pairs it, until it is paired', async () => {
    const { namespace } = made;
    const { owner, guest } = accounts;
    const command = 'npx -y \'@acme/files\' "$HOME"';
    const fields = { transport: 'uplink', name: 'Local', id: 'local', namespace };
    await browsers.owner.submit('/ui/add', { form: 'create', what: '{', command, ...fields });
    const [at, path] = [`/ui/c/${namespace}/local`, `/connect/${namespace}/local`];
    await asOwner().post(`${path}/grants`, { account: guest.id, level: 'call' });
    const read = async () => (await browsers.owner.get(at)).text.replaceAll('&#39;', "'").replaceAll('&quot;', '"');
    const waiting = await read();
    expect(waiting).toContain(`mcp add --id local --namespace ${namespace} -- \\\n${command}</pre>`);
    expect(waiting).toContain(`SMITHERY_BASE_URL=${app.url} `);
    expect(waiting).toMatch(/data-live[^]*Waits for your machine/);
    expect(waiting).not.toMatch(/id="(connect|tools|settings)"|nextStep|setupUrl|connectionId/);
    const settings = await browsers.owner.get(`${at}?settings`);
    expect([parts(settings).includes('settings'), settings.text.includes('data-live')]).toEqual([true, false]);
    expect((await browsers.guest.get(at)).text).not.toMatch(/mcp add|@acme|id="connect"/);
    expect(JSON.stringify((await asOwner().get(path)).body)).not.toContain('@acme');
    const client = await pair(app, owner, path);
    const paired = await read();
    expect(paired).toMatch(/id="connect"[^]*tools\/echo"/);
    expect(paired).not.toMatch(/data-live|mcp add --id/);
    client.socket.terminate();
    await untilState(app, owner, path, 'disconnected');
    expect(await read()).toMatch(/-- \\\nCOMMAND<\/pre>/);
  });
});

describe('who may call it', () => {
  verifies('console:connection-access', 'is granted, explained and revoked', async () => {
    const { owner, stranger } = accounts;
    const form = {
      form: 'grant',
      account: stranger.name,
      level: 'call',
      tool: ['echo', 'get-sum'],
      until: '2999-01-31',
    };
    const submit = (fields: object, by = browsers.owner) => by.submit(access, fields as Record<string, string>);
    const unknown = await submit({ ...form, account: 'nobody-<b>' });
    expect([unknown.status, unknown.text]).toEqual([404, expect.stringContaining('value="nobody-&lt;b&gt;"')]);
    expect(unknown.text).toMatch(/value="echo" checked[^]*value="get-sum" checked[^]*value="2999-01-31"/);
    expect((await submit({ ...form, level: 'manage' })).status).toBe(400);
    for (const by of [browsers.manager, browsers.guest, browsers.stranger]) {
      expect([(await by.get(access)).status, (await submit(form, by)).status]).toEqual([404, 404]);
    }
    expect((await submit(form)).headers.location).toBe(`../../../..${access}?done=granted`);
    await app.as(stranger).post(`${made.path}/.tools/echo`, { message: 'hello' });
    const sentence = new RegExp(
      `${stranger.name} granted by ${owner.name}, [^,]*UTC may call the connection ${made.namespace}/${made.connectionId} tools echo, get-sum 31 Jan 2999, 00:00 UTC .* UTC with`,
    );
    await until(async () => sentence.test(textOf(await browsers.owner.get(access))), 'the last use is shown');
    const { id } = (await grants()).find(({ account }) => account.name === stranger.name) ?? { id: '' };
    expect((await submit({ form: 'end', id })).headers.location).toBe(`../../../..${access}?done=ended`);
    expect((await browsers.stranger.get(page)).status).toBe(404);
    expect((await submit({ form: 'end', id })).status).toBe(404);
  });

  verifies('console:connection-access', 'grants nothing as an editor to others than members', async () => {
    const organization = await app.account({ kind: 'organization' });
    const editor = await app.account();
    const role = (account: TestAccount, given: string) =>
      app.as(app.operator).put(`/accounts/${organization.id}/members/${account.id}`, { role: given });
    await role(accounts.owner, 'owner');
    await role(editor, 'editor');
    const namespace = uniqueName('ns');
    await asOwner().put(`/namespaces/${namespace}`, { organizationId: organization.id });
    const { connectionId } = await createConnection(app, accounts.owner, { mcpUrl: url }, { namespace });
    const at = `/ui/c/${namespace}/${connectionId}`;
    const browser = await signedInBrowser(app, editor);
    const ofOwner = accessTo('connection', `${namespace}/${connectionId}`);
    expect(textOf(await browser.get(ofOwner))).toContain(`${organization.name} owns ${namespace}`);
    const sent = { form: 'grant', account: accounts.stranger.name, level: 'call' };
    expect((await browser.submit(ofOwner, sent)).status).toBe(403);
    expect((await browsers.stranger.get(at)).status).toBe(404);
    expect((await browsers.owner.submit(ofOwner, sent)).status).toBe(303);
    expect((await browsers.stranger.get(at)).status).toBe(200);
  });

  verifies('console:connection-access', 'has the same form for a server and a namespace', async () => {
    const namespace = uniqueName('ns');
    await asOwner().put(`/namespaces/${namespace}`);
    const server = await createServer(app, accounts.owner, { namespace, visibility: 'private' });
    await releaseServer(app, server, { upstreamUrl: url, tools: [{ name: 'echo', inputSchema: { type: 'object' } }] });
    for (const [kind, name, rest, terms] of [
      ['server', server, `/servers/${encodeURIComponent(server)}/grants`, { tool: 'echo', until: '2999-01-31' }],
      ['namespace', namespace, `/namespaces/${namespace}/grants`, { until: '2999-01-31' }],
    ] as const) {
      const at = accessTo(kind, name);
      const target = kind === 'server' ? `/ui/s/${server.replace('/', '--')}` : `/ui/n/${namespace}`;
      expect((await browsers.owner.get(target)).text).toContain(`href="../../${at.slice(1)}"`);
      const form = { form: 'grant', account: accounts.stranger.name, level: 'call', ...terms };
      expect((await browsers.stranger.submit(at, form, '/me')).status).toBe(404);
      expect((await browsers.owner.submit(at, form)).status).toBe(303);
      const { body } = await asOwner().get(rest);
      expect(body.grants).toMatchObject([
        { account: { id: accounts.stranger.id }, level: 'call', expiresAt: '2999-01-31T00:00:00.000Z' },
      ]);
      expect(body.grants[0].tools).toEqual(kind === 'server' ? { allow: ['echo'] } : undefined);
      const shown = await browsers.owner.get(at);
      expect(textOf(shown)).toContain(`may call the ${kind} ${name} ${kind === 'server' ? 'tools echo' : 'all tools'}`);
      expect((await browsers.stranger.get(at)).status).toBe(404);
      expect((await browsers.owner.submit(at, { form: 'end', id: body.grants[0].id as string })).status).toBe(303);
    }
    for (const at of [
      'other/a%2Fb',
      'server/none%2Fnone',
      `connection/${namespace}%2Fnone`,
      'namespace/a%2Fb',
      'server/%00',
    ]) {
      expect([at, (await browsers.owner.get(`/ui/access/${at}`)).status]).toEqual([at, 404]);
    }
  });

  verifies('console:connection-access', 'has pages of grants', async () => {
    const { namespace } = made;
    const { connectionId } = await createConnection(app, accounts.owner, { mcpUrl: url }, { namespace });
    await app.database.query(
      `WITH made AS (INSERT INTO accounts (name, kind) SELECT 'paged-' || i, 'organization' FROM generate_series(1, 200) i RETURNING id)
       INSERT INTO grants (connection_id, subject_id, level, created_by)
       SELECT c.id, made.id, 'call', $2 FROM made, connections c WHERE c.connection_id = $1`,
      [connectionId, accounts.owner.id],
    );
    const { text } = await browsers.owner.get(`${accessTo('connection', `${namespace}/${connectionId}`)}?page=4`);
    expect(text).toContain('Page 4 of 4<');
    expect(text.match(/action="[^"]*\/end"/g)).toHaveLength(50);
  });
});

describe('its calls, recording and deletion', () => {
  verifies('console:connection-calls', 'lists calls with who, with what and the result', async () => {
    await asOwner().post(`${made.path}/.tools/echo`, { message: 'hello' });
    const shown = textOf(await browsers.owner.get(page));
    expect(shown).toMatch(new RegExp(`echo ${accounts.owner.name} key “[^”]*” OK \\d+ ms`));
    await app.as(accounts.guest).post(`${made.path}/.tools/echo`, { message: 'mine' });
    const own = textOf(await browsers.guest.get(page));
    expect(own).toMatch(new RegExp(`echo ${accounts.guest.name} key “[^”]*” OK`));
    expect(own).not.toContain(accounts.owner.name);
  });

  it('lists calls of tools before newer requests of the protocol', async () => {
    const call = (id: number, method: string, params = {}) =>
      asOwner()
        .post(`${made.path}/mcp`, { jsonrpc: '2.0', id, method, params })
        .set('accept', 'application/json, text/event-stream');
    expect((await call(1, 'tools/call', { name: 'echo', arguments: { message: 'before' } })).status).toBe(200);
    for (let id = 2; id < 24; id += 1) expect((await call(id, 'tools/list')).status).toBe(200);
    const rows = await until(async () => {
      const { text } = await browsers.owner.get(page);
      const list = /<caption class="hidden">Last calls[^]*?<\/table>/.exec(text)?.[0] ?? '';
      const names = [...list.matchAll(/<code>([^<]*)<\/code>/g)].map(([, name]) => name);
      return names.includes('tools/list') && names;
    }, 'the requests are listed');
    expect(rows.slice(0, rows.indexOf('tools/list'))).toContain('echo');
    expect(rows.slice(rows.indexOf('tools/list'))).not.toContain('echo');
  });

  verifies('console:connection-recording', 'records, stops and forgets', async () => {
    expect(await done({ form: 'record' })).toBe('done=record');
    await asOwner().post(`${made.path}/.tools/echo`, { message: 'recorded-argument' });
    const { text } = await browsers.owner.get(page);
    expect(text).toMatch(/recorded until[^]*<code>echo<\/code>: 1/);
    expect(text).toContain('recorded-argument');
    expect((await browsers.manager.get(page)).text).not.toContain('recorded-argument');
    const { headers, text: fixture } = await browsers.owner.get(`${page}/fixture`);
    expect(headers['content-disposition']).toBe(`attachment; filename=${made.connectionId}.json`);
    expect(JSON.parse(fixture)).toEqual((await asOwner().get(`${made.path}/recording/fixture`)).body);
    expect(fixture).toContain('recorded-argument');
    expect(await done({ form: 'stop' })).toBe('done=stop');
    expect((await browsers.owner.get(page)).text).toContain('Tool calls are not recorded.');
    expect(await done({ form: 'forget' })).toBe('done=forget');
    expect((await browsers.owner.get(page)).text).not.toContain('<code>echo</code>: 1');
  });

  verifies('console:connection-recording', 'shows the scenario of a mock, which records nothing', async () => {
    const { namespace } = made;
    const server = await createServer(app, accounts.owner, { namespace });
    await releaseServer(app, server);
    const mock = { enabled: true, scenario: 'fail:429' };
    const { connectionId } = await createConnection(app, accounts.owner, { server, mock }, { namespace });
    const shown = await browsers.owner.get(`/ui/c/${namespace}/${connectionId}`);
    expect(shown.text).toContain('>fail:429</pre>');
    expect(parts(shown)).not.toContain('recording');
  });

  verifies('console:connection-delete', 'is deleted by whoever owns it and types its id', async () => {
    const wrong = await browsers.owner.submit(page, { form: 'delete', typed: 'another' });
    expect([wrong.status, wrong.text]).toEqual([400, expect.stringContaining('value="another"')]);
    expect(wrong.text.match(/The typed id does not match/g)).toHaveLength(1);
    expect(wrong.text).toMatch(/<details open><summary[^>]*><span class="danger">Delete this connection/);
    expect(wrong.text).toMatch(/<details><summary[^>]*>Name, metadata, headers, time</);
    const { headers } = await browsers.owner.submit(page, { form: 'delete', typed: made.connectionId });
    expect(headers.location).toBe('../../../../ui/?done=deleted');
    expect((await browsers.owner.get('/ui/?done=deleted')).text).toContain('The connection is deleted.');
    expect((await asOwner().get(made.path)).status).toBe(404);
  });
});
