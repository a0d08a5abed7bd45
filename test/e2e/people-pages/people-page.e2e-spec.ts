import { beforeAll, describe, expect } from '@jest/globals';
import { testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { openBrowser, signedInBrowser, type BrowserSession } from '../../support/people/browser-session.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const path = '/ui/people';

let operator: BrowserSession;

beforeAll(async () => {
  operator = await signedInBrowser(app, app.operator);
});

const find = async (q: string) =>
  (await app.as(app.operator).get(`/accounts?q=${q}`)).body.accounts as (TestAccount & Record<string, unknown>)[];
const submit = (form: string, fields: Record<string, string>) => operator.submit(path, { form, ...fields });

describe('the page of people', () => {
  verifies('people-page', 'invites a person, whose link is shown once, and who then signs in', async () => {
    const name = uniqueName('lena');
    const sent = await submit('invite', { name });
    expect([sent.status, sent.headers.location]).toEqual([303, '../../ui/people']);
    expect(String(sent.headers['set-cookie'])).not.toContain('invite');
    const shown = await operator.get(path);
    const [, link = ''] = /<pre id="invitation"[^>]*>([^<]+)</.exec(shown.text) ?? [];
    expect(link).toContain('/invite?token=');
    expect(shown.text).toContain(`Link for ${name}`);
    expect((await operator.get(path)).text).not.toContain('/invite?token=');
    expect(await find(name)).toMatchObject([{ name, signIn: 'invited', lastSeenAt: null }]);

    const person = openBrowser(app);
    const password = 'three words are enough';
    const used = await person.submit(link.slice(new URL(link).origin.length), { password, repeated: password });
    expect(used.status).toBe(303);
    expect(await find(name)).toMatchObject([{ signIn: 'password', lastSeenAt: expect.any(String) }]);
    expect((await operator.get(`${path}?q=${name}`)).text).toContain('<span class="badge ok">Active</span>');
    // The page is for operators, also its link.
    expect((await person.get('/ui/')).text).not.toContain('ui/people');
    expect((await person.get(path)).status).toBe(403);
  });

  verifies('people-page', 'shows a link to nobody else, and at no other page', async () => {
    await submit('invite', { name: uniqueName('mei') });
    expect((await operator.get('/me')).text).not.toContain('/invite?token=');
    const account = await app.account();
    await app.database.query('UPDATE accounts SET is_operator = true WHERE id = $1', [account.id]);
    const other = await signedInBrowser(app, account);
    const sealed = [...operator.cookies].find(([name]) => name.endsWith('slipway-once')) as [string, string];
    other.cookies.set(...sealed);
    expect((await other.get(path)).text).not.toContain('/invite?token=');
    expect((await operator.get(path)).text).toContain('/invite?token=');
  });

  verifies('people-page', 'shows a suspension with its reason, and lifts it', async () => {
    const account = await app.account();
    const sql = `UPDATE accounts SET credentials_suspended_at = now(), credentials_suspended_for = 'Gone.' WHERE id = $1`;
    await app.database.query(sql, [account.id]);
    const { text } = await operator.get(`${path}?q=${account.name}`);
    expect(text).toMatch(/<span class="badge held">Suspended<.*Since .* UTC: Gone\./);
    expect(text).toContain('Lift the suspension');
    expect((await submit('state', { id: account.id, to: 'enabled' })).status).toBe(303);
    await app.as(account).get('/accounts/me').expect(200);
    expect((await operator.get(`${path}?q=${account.name}`)).text).not.toContain('uspen');
    const sqlOfRow = `SELECT actor_id AS actor, before FROM changes WHERE account_id = $1 AND action = 'account.changed' ORDER BY id DESC LIMIT 1`;
    const [row] = await app.database.query(sqlOfRow, [account.id]);
    expect(row).toEqual({ actor: app.operator.id, before: { suspendedFor: 'Gone.' } });
  });

  verifies('people-page', 'keeps what was typed when a name is taken or wrong, and creates nothing', async () => {
    const taken = await submit('invite', { name: app.operator.name });
    expect(taken.status).toBe(409);
    expect(taken.text).toContain(`value="${app.operator.name}"`);
    expect(taken.text).toContain('already exists');
    const empty = await submit('invite', { name: '' });
    expect(empty.status).toBe(400);
    const hostile = '<script>alert(1)</script>"';
    expect((await submit('invite', { name: hostile })).status).toBe(303);
    const shown = await operator.get(path);
    expect(shown.text).not.toContain('<script>alert');
    expect(shown.text).toContain('&lt;script&gt;');
  });

  verifies(
    'people-page',
    'disables and enables, changes operators and sends new links, but not for oneself',
    async () => {
      const { id, name } = await app.account();
      const change = async (form: string, fields: Record<string, string> = {}) =>
        (await submit(form, { id, ...fields })).status;
      expect(await change('state', { to: 'disabled' })).toBe(303);
      expect(await find(name)).toMatchObject([{ disabled: true }]);
      expect(await change('link')).toBe(409);
      expect(await change('state', { to: 'enabled' })).toBe(303);
      expect(await change('link')).toBe(303);
      expect((await operator.get(path)).text).toContain(`Link for ${name}`);
      expect(await change('operator', { to: 'operator' })).toBe(303);
      expect(await find(name)).toMatchObject([{ isOperator: true }]);
      expect(await change('state', { to: 'disabled' })).toBe(409);
      expect(await change('operator', { to: 'user' })).toBe(303);
      expect((await submit('link', { id: app.operator.id })).status).toBe(403);
      expect((await submit('link', { id: 'none' })).status).toBe(404);
    },
  );

  verifies('people-page', 'creates an organization that the operator owns, and invites into it', async () => {
    const organization = uniqueName('team');
    const made = await submit('organization', { name: organization });
    expect([made.status, made.headers.location]).toEqual([303, `../../ui/o/${organization}`]);
    const page = await operator.get(`/ui/o/${organization}`);
    expect(page.text).toContain('Your role is <strong>owner</strong>');
    const name = uniqueName('guest');
    const [{ id }] = await find(organization);
    expect((await submit('invite', { name, organization: id, role: 'guest' })).status).toBe(303);
    const { body } = await app.as(app.operator).get(`/accounts/${id}/members`);
    expect(body.members).toContainEqual(expect.objectContaining({ accountName: name, role: 'guest' }));
  });

  verifies('people-page', 'lets an account with a limit of organizations create one that it owns', async () => {
    const founder = await app.account();
    const browser = await signedInBrowser(app, founder);
    const page = '/ui/new-organization';
    expect((await browser.get(page)).status).toBe(403);
    expect((await browser.get('/me')).text).not.toContain('new-organization');
    const limits = { limits: { organizations: 1 } };
    await app.as(app.operator).patch(`/accounts/${founder.id}/limits`, limits).expect(200);
    await until(
      async () => (await browser.get('/me')).text.includes('new-organization'),
      'the account page leads to it',
    );
    const name = uniqueName('team');
    const made = await browser.submit(page, { form: 'create', name });
    expect([made.status, made.headers.location]).toEqual([303, `../../ui/o/${name}`]);
    await until(async () => (await browser.get(`/ui/o/${name}`)).text.includes('<strong>owner</strong>'), 'its page');
    const beyond = await browser.submit(page, { form: 'create', name: `${name}-2` });
    expect([beyond.status, beyond.text]).toEqual([429, expect.stringContaining(`value="${name}-2"`)]);
    const byOperator = uniqueName('team');
    expect((await operator.submit(page, { form: 'create', name: byOperator })).status).toBe(303);
    expect((await operator.get(`/ui/o/${byOperator}`)).text).toContain('Your role is <strong>owner</strong>');
  });

  verifies('people-page', 'lists by name, newest first, in pages', async () => {
    const part = uniqueName('many');
    for (const n of [1, 2]) await app.as(app.operator).post('/accounts', { name: `${part}-${n}`, kind: 'user' });
    const { text } = await operator.get(`${path}?q=${part.toUpperCase()}`);
    expect([...text.matchAll(/<b>([^<]+)<\/b>/g)].map(([, name]) => name)).toEqual([`${part}-2`, `${part}-1`]);
    expect((await operator.get(`${path}?q=${uniqueName('nobody')}`)).text).toContain('Nobody has such a name');
    const kinds = (await app.as(app.operator).get(`/accounts?q=${part}&kind=organization`)).body;
    expect(kinds).toMatchObject({ accounts: [], pagination: { totalCount: 0 } });
  });
});
