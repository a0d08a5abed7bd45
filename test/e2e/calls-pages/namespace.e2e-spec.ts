import { beforeAll, describe, expect, it } from '@jest/globals';
import { testAccount, testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { createConnection, createOrganization } from '../../support/factories.js';
import { signedInBrowser } from '../../support/people/browser-session.js';
import { startUpstream } from '../../support/upstream/upstream.js';
import { until } from '../../support/until.js';

const HOSTILE = `<script>alert(1)</script>"'&\u202e`;

const app = testApp();
const owner = testAccount(app);
const editor = testAccount(app);
const member = testAccount(app);
const manager = testAccount(app);
let organization: TestAccount;
let namespace: string;

beforeAll(async () => {
  organization = await createOrganization(app, { owner, editor, member });
  namespace = uniqueName('shop');
  await app.as(owner).put(`/namespaces/${namespace}`, { organizationId: organization.id });
  const [open, closed] = await Promise.all([
    startUpstream(),
    startUpstream({ requireHeaders: { authorization: 'Bearer x' } }),
  ]);
  const connect = (connectionId: string, mcpUrl: string, body: object = {}) =>
    createConnection(app, owner, { mcpUrl, ...body }, { namespace, connectionId });
  await connect('u-1', closed.url, { metadata: { plan: 'pro', seats: 2 } });
  await connect('u-2', closed.url, { metadata: { plan: 'free' } });
  await connect('u-3', open.url, { name: HOSTILE, metadata: { plan: 'pro', [HOSTILE]: HOSTILE } });
  await connect('u-4', open.url, { name: 'Four', metadata: { plan: 'free' } });
  const grant = { account: manager.id, level: 'manage' };
  expect((await app.as(owner).post(`/namespaces/${namespace}/grants`, grant)).status).toBe(201);
});

async function open(account: TestAccount, query = '') {
  return (await signedInBrowser(app, account)).get(`/ui/n/${namespace}${query}`);
}

/** The ids of the listed connections. */
const idsIn = (page: string) => [...page.matchAll(/<small><code>([^<]+)<\/code><\/small>/g)].map(([, id]) => id);

describe('the connections of a namespace', () => {
  it('lists them for those who manage it, and for nobody else', async () => {
    for (const account of [owner, editor, manager]) {
      expect(idsIn((await open(account)).text)).toEqual(['u-4', 'u-3', 'u-2', 'u-1']);
    }
    const { status, text } = await open(member);
    expect(status).toBe(200);
    expect(text).not.toMatch(/u-1|plan=|\/setup\//);
    expect((await open(await app.account())).status).toBe(404);
    expect((await open(app.operator)).status).toBe(404);
  });

  it('shows metadata, the reason of a state, the setup link and the last call', async () => {
    const { text } = await open(owner);
    expect(text).toContain('<code>seats=2</code>');
    expect(text).toContain('&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp; =');
    expect(text).not.toContain('<script>alert');
    const [, link = ''] = /<pre id="setup-u-1"[^>]*>([^<]+)</.exec(text) ?? [];
    const { pathname, search } = new URL(link.replaceAll('&amp;', '&'));
    expect((await (await signedInBrowser(app, owner)).get(pathname + search)).status).toBe(200);
    expect(text).not.toContain('setup-u-4');
    await app.as(owner).post(`/connect/${namespace}/u-4/.tools/echo`, { message: 'hello' });
    const cellOf = (page: string) => /u-4<\/code>[^]*?data-label="Last call">(.*?)<\/td>/.exec(page)?.[1];
    await until(async () => cellOf((await open(owner)).text)?.includes('<time'), 'the call is listed');
  });

  it('filters by state, name and metadata in the address, as REST does', async () => {
    for (const [query, ids] of [
      ['?state=auth_required', ['u-2', 'u-1']],
      ['?name=Four', ['u-4']],
      ['?metadata.plan=pro', ['u-3', 'u-1']],
      ['?metadata.plan=pro&metadata.seats=2&state=auth_required', ['u-1']],
      ['?metadata.plan=none', []],
      ['?state=%00&name=&metadata.=x', ['u-4', 'u-3', 'u-2', 'u-1']],
    ] as const) {
      expect(idsIn((await open(owner, query)).text)).toEqual(ids);
      const { body } = await app.as(owner).get(`/connect/${namespace}${ids.length < 4 ? query : ''}`);
      expect(body.connections.map(({ connectionId }: { connectionId: string }) => connectionId)).toEqual(ids);
    }
    const typed = await open(owner, '?state=auth_required&name=&metadata=plan%3Dpro%2C+seats+%3D+2');
    expect(typed.status).toBe(303);
    expect(typed.headers.location).toMatch(/\?state=auth_required&metadata\.plan=pro&metadata\.seats=2$/);
    expect((await open(owner, '?cursor=abc')).status).toBe(400);
  });

  it('deletes a connection whose id is typed, for owners and editors', async () => {
    await createConnection(app, owner, { mcpUrl: 'http://127.0.0.1:1/mcp' }, { namespace, connectionId: 'u-9' });
    const path = `/ui/n/${namespace}`;
    const remove = async (account: TestAccount, typed: string) =>
      (await signedInBrowser(app, account)).submit(path, { form: 'delete', id: 'u-9', typed });
    expect((await open(manager)).text).not.toContain('Delete this connection');
    expect((await remove(manager, 'u-9')).status).toBe(403);
    const rejected = await remove(editor, 'u-8');
    expect(rejected.status).toBe(400);
    expect(rejected.text).toContain('The typed id does not match.');
    const { status, headers } = await remove(editor, 'u-9');
    expect([status, headers.location]).toEqual([303, expect.stringMatching(/\?done=deleted$/)]);
    expect(idsIn((await open(owner)).text)).not.toContain('u-9');
  });

  it('is led to from Home, with the number of those that wait', async () => {
    const home = await (await signedInBrowser(app, owner)).get('/ui/');
    expect(home.text).toContain('2 of 4 wait for a login');
    expect(home.text).toContain(`href="../ui/n/${namespace}?state=auth_required"`);
    const { body } = await app.as(owner).get('/accounts/me/usable?section=all&state=needs');
    expect(body.usable).toMatchObject([{ connections: 2, waiting: { connections: 4, logins: 2, values: 0 } }]);
    const ofMember = await (await signedInBrowser(app, member)).get('/ui/');
    expect(ofMember.text).not.toContain('wait for a login');
  });
});
