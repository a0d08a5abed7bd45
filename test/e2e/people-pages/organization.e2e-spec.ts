import { beforeAll, describe, expect } from '@jest/globals';
import { testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { pathOf } from '../../support/database/server-rows.js';
import { createConnection, createServer } from '../../support/factories.js';
import { openBrowser, signedInBrowser, type BrowserSession } from '../../support/people/browser-session.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const names = ['owner', 'editor', 'member', 'guest', 'outsider'] as const;
type Name = (typeof names)[number];

let organization: TestAccount;
const accounts = {} as Record<Name, TestAccount>;
const browsers = {} as Record<Name, BrowserSession>;
let namespace: string;
let server: string;
let page: string;
/** The address of its forms. */
let forms: string;

const as = (account: TestAccount) => app.as(account);
const role = (account: TestAccount, given: string) =>
  app.as(app.operator).put(`/accounts/${organization.id}/members/${account.id}`, { role: given });
const membersNow = async () => {
  const { body } = await as(accounts.owner).get(`/accounts/${organization.id}/members?pageSize=100`);
  return Object.fromEntries(
    (body.members as { accountName: string; role: string }[]).map((member) => [member.accountName, member.role]),
  );
};

beforeAll(async () => {
  organization = await app.account({ kind: 'organization' });
  for (const name of names) {
    accounts[name] = await app.account();
    if (name !== 'outsider') await role(accounts[name], name);
    browsers[name] = await signedInBrowser(app, accounts[name]);
  }
  namespace = uniqueName('ns');
  await as(accounts.owner).put(`/namespaces/${namespace}`, { organizationId: organization.id });
  server = await createServer(app, accounts.owner, { namespace });
  page = `/ui/o/${organization.name}`;
  forms = `/ui/o/${organization.id}`;
});

/** The headings of the parts of a page. */
const parts = ({ text }: { text: string }) => [...text.matchAll(/<h2 id="(\w+)"/g)].map(([, id]) => id);

describe('the page of an organization', () => {
  verifies('console:organization', 'shows each role what it may do, and an outsider what is not there', async () => {
    await as(accounts.outsider).post(`/servers/${encodeURIComponent(server)}/access-requests`, { text: 'Please.' });
    const expected: Record<Name, string[]> = {
      owner: ['members', 'grants', 'keys', 'requests', 'invite', 'namespaces'],
      editor: ['members', 'requests', 'namespaces'],
      member: ['members'],
      guest: [],
      outsider: ['find'],
    };
    for (const name of names) {
      const answer = await browsers[name].get(page);
      const isIn = name !== 'outsider';
      expect([name, answer.status, parts(answer)]).toEqual([name, isIn ? 200 : 404, expected[name]]);
      expect(answer.text.includes(organization.name)).toBe(isIn);
      expect(/action="[^"]*\/(?:role|remove|invite|end|revoke|key)"/.test(answer.text)).toBe(name === 'owner');
      expect(answer.text.includes(accounts.editor.name)).toBe(name === 'editor' || (isIn && parts(answer).length > 0));
    }
    const none = await browsers.outsider.get(`/ui/o/${uniqueName('none')}`);
    const foreign = await browsers.outsider.get(page);
    const body = ({ text }: { text: string }) => text.replace(/value="[^"]*"/g, '');
    expect([none.status, body(none)]).toEqual([404, body(foreign)]);
    expect((await browsers.owner.get(`/ui/o/${organization.id}`)).text).toContain(`<h1>${organization.name}</h1>`);
    expect((await browsers.owner.get(`/ui/o/${accounts.owner.name}`)).status).toBe(404);
  });

  verifies('console:organization', 'takes no form of who may not send it, also for another organization', async () => {
    const grant = await as(accounts.owner).post(`/servers/${encodeURIComponent(server)}/grants`, {
      account: accounts.outsider.id,
      level: 'call',
    });
    const { body } = await as(accounts.owner).get(`/accounts/${organization.id}/access-requests?as=decider`);
    expect(body.requests).toHaveLength(1);
    const keys = await as(accounts.owner).get(`/accounts/${organization.id}/api-keys`);
    const key = keys.body.apiKeys[0] as { id: string; name: string };
    const account = await app.account();
    const { body: invitation } = await as(accounts.owner).put(`/accounts/${organization.id}/members/${account.id}`, {
      role: 'member',
    });
    const rows: Record<string, string>[] = [
      { form: 'role', id: accounts.guest.id, role: 'owner' },
      { form: 'remove', id: accounts.owner.id, expected: 'a', typed: 'a' },
      { form: 'invite', role: 'owner' },
      { form: 'uninvite', id: invitation.id as string },
      { form: 'revoke', id: key.id, expected: 'a', typed: 'a' },
      { form: 'end', id: grant.body.id as string },
      { form: 'key', name: 'theirs', days: '90', scope: 'all' },
      { form: 'claim', namespace: uniqueName('ns') },
    ];
    const other = await app.account({ kind: 'organization' });
    await as(app.operator).put(`/accounts/${other.id}/members/${accounts.outsider.id}`, { role: 'owner' });
    for (const form of rows) {
      const statuses = [];
      for (const name of ['member', 'guest', 'outsider'] as const) {
        statuses.push((await browsers[name].submit(forms, form, '/me')).status);
      }
      expect([form.form, statuses]).toEqual([form.form, [403, 403, 404]]);
      // There the outsider is an owner, who invites, claims, and adds accounts.
      if (['invite', 'claim', 'role', 'key'].includes(form.form ?? '')) continue;
      const second = await browsers.outsider.submit(`/ui/o/${other.id}`, form);
      expect([form.form, second.status >= 400]).toEqual([form.form, true]);
    }
    const editor = await browsers.editor.submit(forms, rows[0] ?? {}, '/me');
    expect(editor.status).toBe(403);
    expect(await membersNow()).toMatchObject({ [accounts.owner.name]: 'owner', [accounts.guest.name]: 'guest' });
    const after = await as(accounts.owner).get(`/accounts/${organization.id}/grants/given`);
    expect(after.body.grants).toEqual([
      expect.objectContaining({ id: grant.body.id, qualifiedName: server, grantedBy: accounts.owner.name }),
    ]);
  });

  verifies('console:organization', 'lets an operator who is no member manage members and keys alone', async () => {
    const operator = await signedInBrowser(app, app.operator);
    const { body: grant } = await as(accounts.owner).post(`/servers/${encodeURIComponent(server)}/grants`, {
      account: accounts.member.id,
      level: 'call',
    });
    const shown = (await operator.get(page)).text;
    expect(shown).toContain('You are not a member');
    const names = [...shown.matchAll(/action="[^"]*\/o\/[^"]*\/(\w+)"/g)].map(([, word]) => word);
    expect([...new Set(names)].toSorted()).toEqual(['invite', 'key', 'remove', 'revoke', 'role', 'uninvite']);
    expect((await operator.submit(forms, { form: 'end', id: grant.id as string })).status).toBe(404);
    const { body } = await as(accounts.owner).get(`/accounts/${organization.id}/grants/given`);
    expect((body.grants as { id: string }[]).map(({ id }) => id)).toContain(grant.id);
    await as(accounts.owner).delete(`/servers/${encodeURIComponent(server)}/grants/${grant.id as string}`);
  });

  verifies('console:organization', 'changes, invites and removes members, and keeps an owner', async () => {
    const { owner } = browsers;
    const last = await owner.submit(forms, { form: 'role', id: accounts.owner.id, role: 'member' });
    expect([last.status, last.text]).toEqual([409, expect.stringContaining('An organization keeps an owner')]);
    const someone = await app.account();
    const inviteAs = async (given: string) => {
      const { status, headers } = await owner.submit(forms, { form: 'invite', role: given });
      expect([status, headers.location]).toEqual([303, `../../../ui/o/${organization.name}`]);
      const { text } = await owner.get(page);
      return { text, url: /<pre id="invitation"[^>]*>([^<]+)</.exec(text)?.[1] ?? '' };
    };
    const { url: link } = await inviteAs('member');
    expect((await owner.get(page)).text).not.toContain('/invite?token=');
    const { text: spare, url: spareLink } = await inviteAs('owner');
    expect(spare).toMatch(/link for an <strong>owner<[^]*Revoke this link/);
    const open = await as(accounts.owner).get(`/accounts/${organization.id}/invitations`);
    const id =
      (open.body.invitations as { id: string; role: string }[]).find((invitation) => invitation.role === 'owner')?.id ??
      '';
    expect((await owner.submit(forms, { form: 'uninvite', id })).headers.location).toContain('?done=uninvite');
    expect((await openBrowser(app).get(spareLink.slice(app.env.baseUrl.length))).status).toBe(410);
    const joining = await signedInBrowser(app, someone);
    expect((await joining.submit(link.slice(app.env.baseUrl.length), {})).status).toBe(303);
    expect(await membersNow()).toMatchObject({ [someone.name]: 'member' });

    const changed = await owner.submit(forms, { form: 'role', id: someone.id, role: 'owner' });
    expect(changed.headers.location).toBe(`../../../ui/o/${organization.name}?done=role`);
    expect((await owner.get(`${page}?done=role`)).text).toContain('role="status"><div>The role is changed.</div>');
    await as(someone).post(`/accounts/${organization.id}/api-keys`, { name: 'made by someone' });
    const remove = { form: 'remove', id: someone.id, expected: someone.name };
    const wrong = await owner.submit(forms, { ...remove, typed: 'another name' });
    expect([wrong.status, wrong.text]).toEqual([400, expect.stringContaining('value="another name"')]);
    expect((await owner.submit(forms, { ...remove, typed: someone.name, revokeKeys: 'yes' })).status).toBe(303);
    expect((await owner.get(page)).text).toContain('were revoked: made by someone.');
    expect(Object.keys(await membersNow())).not.toContain(someone.name);
    expect((await owner.submit(forms, { form: 'remove', id: 'x', expected: 'a', typed: 'a' })).status).toBe(400);
  });

  verifies(
    'console:organization',
    'shows grants and requests, revokes grants, claims namespaces and revokes keys',
    async () => {
      const { owner, editor } = browsers;
      const done = async (browser: BrowserSession, form: Record<string, string>) =>
        (await browser.submit(forms, form)).headers.location?.split('?')[1];
      const two = await app.account();
      const { body: asked } = await as(two).post(pathOf(server, '/access-requests'), { text: 'Hm.' });
      const answer = `/ui/access/server/${encodeURIComponent(server)}`;
      for (const browser of [owner, editor]) {
        expect((await browser.get(page)).text).toContain(
          `href="../../ui/access/server/${encodeURIComponent(server)}?request=${asked.id}#request"`,
        );
      }
      expect((await owner.submit(answer, { form: 'grant', id: asked.id as string, level: 'call' })).status).toBe(303);
      expect((await owner.get(page)).text).not.toContain(asked.id);
      const sentence = (await owner.get(page)).text.replace(/<[^>]*>|\s+/g, ' ').replace(/ +/g, ' ');
      expect(sentence).toMatch(
        new RegExp(
          `${two.name} granted by ${accounts.owner.name}, [^,]*UTC may call the server ${server} all tools No end`,
        ),
      );
      const given = await as(accounts.owner).get(`/accounts/${organization.id}/grants/given`);
      for (const { id } of given.body.grants as { id: string }[]) {
        expect(await done(owner, { form: 'end', id })).toBe('done=ended');
      }
      expect((await as(accounts.owner).get(`/accounts/${organization.id}/grants/given`)).body.grants).toEqual([]);
      const claimed = uniqueName('ns');
      expect(await done(editor, { form: 'claim', namespace: claimed })).toBe('done=claimed');
      expect((await owner.get(page)).text).toContain(`<code>${claimed}</code>`);
      const own = uniqueName('ns');
      await as(accounts.owner).put(`/namespaces/${own}`);
      const claim = await owner.submit(forms, { form: 'claim', namespace: own });
      expect([claim.status, claim.text]).toEqual([409, expect.stringContaining('is yours')]);
      expect((await owner.get(page)).text).not.toContain(`<code>${own}</code>`);
      expect(await done(owner, { form: 'claim', namespace: own, move: 'yes' })).toBe('done=claimed');
      expect((await owner.get(page)).text).toContain(`<code>${own}</code>`);
      const taken = await app.account();
      await as(taken).put(`/namespaces/${own}-2`);
      expect((await owner.submit(forms, { form: 'claim', namespace: `${own}-2`, move: 'yes' })).status).toBe(409);
      const refused = await owner.submit(forms, { form: 'claim', namespace: 'No!' });
      expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('value="No!"')]);
      const { body } = await as(accounts.owner).post(`/accounts/${organization.id}/api-keys`, { name: 'ci' });
      expect(await done(owner, { form: 'revoke', id: body.id as string, expected: 'ci', typed: 'ci' })).toBe(
        'done=revoked',
      );
      expect((await app.as({ ...organization, key: body.key as string }).get('/accounts/me')).status).toBe(401);
    },
  );

  verifies('console:organization-keys', 'creates a key of the organization for its owners, shown once', async () => {
    const { owner } = browsers;
    const form = { form: 'key', name: 'deploy', days: '90', scope: `call:${namespace}` };
    const wrong = await owner.submit(forms, { ...form, days: '0' });
    expect([wrong.status, wrong.text]).toEqual([400, expect.stringContaining('must be a number from 1 to 3650.<')]);
    expect(wrong.text).toMatch(/value="deploy"[^]*value="0"[^]*value="call:[\w-]+" checked/);
    expect((await owner.submit(forms, form)).status).toBe(303);
    const [, key = ''] = /<pre id="new-key"[^>]*>([^<]+)</.exec((await owner.get(page)).text) ?? [];
    expect([key === '', (await owner.get(page)).text.includes(key)]).toEqual([false, false]);
    const access = await app.as({ key }).get('/accounts/me/access');
    expect(access.body).toMatchObject({ account: { id: organization.id }, scopes: [`call:${namespace}`] });
    const days = (Date.parse(access.body.apiKey.expiresAt as string) - Date.now()) / 86_400_000;
    expect(days).toBeCloseTo(90, 1);
  });

  verifies('console:leave', 'lets members leave who type its name, and keeps the last owner', async () => {
    const person = await app.account();
    const leave = { form: 'leave', expected: organization.name };
    for (const given of ['guest', 'editor']) {
      await role(person, given);
      const browser = await signedInBrowser(app, person);
      expect((await browser.get('/me')).text).toContain(
        `<a href="./ui/o/${organization.name}">${organization.name}</a><small>your role is ${given}`,
      );
      expect((await browser.submit(forms, { ...leave, typed: 'x' })).status).toBe(400);
      expect((await browser.submit(forms, { form: 'leave' })).status).toBe(400);
      const left = await browser.submit(forms, { ...leave, typed: organization.name });
      expect([left.status, left.headers.location]).toEqual([303, '../../../me?saved=left']);
      const me = await browser.get('/me?saved=left');
      expect(me.text).toContain('role="status"><div>You have left the organization.</div>');
      expect(me.text).not.toContain('id="organizations"');
      expect(Object.keys(await membersNow())).not.toContain(person.name);
    }
    const last = await browsers.owner.submit(forms, { ...leave, typed: organization.name });
    expect([last.status, last.text]).toEqual([409, expect.stringContaining('An organization keeps an owner')]);
    expect((await (await signedInBrowser(app, app.operator)).get(page)).text).not.toContain('/leave"');
  });

  verifies('console:names', 'shows hostile names of organizations, members and keys as text', async () => {
    const hostile = `<script>alert(1)</script>"'\u202e/..%2f?${'x'.repeat(200)}`;
    const [odd, person] = [await app.account({ kind: 'organization' }), await app.account()];
    await as(app.operator).put(`/accounts/${odd.id}/members/${accounts.owner.id}`, { role: 'owner' });
    await as(app.operator).put(`/accounts/${odd.id}/members/${person.id}`, { role: 'guest' });
    const place = uniqueName('ns');
    await as(accounts.owner).put(`/namespaces/${place}`, { organizationId: odd.id });
    const { path } = await createConnection(
      app,
      accounts.owner,
      { mcpUrl: 'http://127.0.0.1:9/mcp' },
      { namespace: place },
    );
    await as(accounts.owner).post(`${path}/grants`, { account: person.id, level: 'call', tools: { allow: [hostile] } });
    await as(accounts.owner).post(`/accounts/${odd.id}/api-keys`, { name: hostile });
    await app.database.query(`UPDATE accounts SET name = left($2 || kind, 255) WHERE id = ANY($1)`, [
      [odd.id, person.id],
      hostile,
    ]);
    for (const address of [odd.id, encodeURIComponent(`${hostile}organization`)]) {
      const { status, text } = await browsers.owner.get(`/ui/o/${address}`);
      expect([address, status]).toEqual([address, 200]);
      expect(text.match(/&lt;script&gt;alert\(1\)&lt;\/script&gt;&quot;&#39; \//g)?.length).toBeGreaterThan(6);
      expect(text).not.toMatch(/<script>|\u202e/);
    }
    const done = await browsers.owner.submit(`/ui/o/${odd.id}`, { form: 'role', id: person.id, role: 'member' });
    expect(done.status).toBe(303);
    const next = new URL(done.headers.location ?? '', `${app.url}/ui/o/x/role`);
    expect((await browsers.owner.get(next.pathname + next.search)).status).toBe(200);
  });
});
