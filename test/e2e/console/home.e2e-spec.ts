import { beforeAll, describe, expect } from '@jest/globals';
import type { Role } from '../../../src/modules/auth/access.types.js';
import { testAccount, testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { pathOf, releaseServer } from '../../support/database/server-rows.js';
import { createConnection, createServer } from '../../support/factories.js';
import { formTokenIn, signedInBrowser, type BrowserSession } from '../../support/people/browser-session.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const HOSTILE = `<script>alert(1)</script>"'\u202e`;

const app = testApp();
const owner = testAccount(app);
const editor = testAccount(app);
const member = testAccount(app);
const outsider = testAccount(app);
let organization: TestAccount;
let namespace: string;
let server: string;
let upstream: Upstream;
let closed: Upstream;

beforeAll(async () => {
  [upstream, closed] = await Promise.all([
    startUpstream(),
    startUpstream({ requireHeaders: { authorization: 'Bearer x' } }),
  ]);
  organization = await app.account({ kind: 'organization' });
  const roles: [TestAccount, Role, TestAccount][] = [
    [owner, 'owner', app.operator],
    [editor, 'editor', app.operator],
    [member, 'member', app.operator],
  ];
  for (const [{ id }, role, by] of roles) {
    expect((await app.as(by).put(`/accounts/${organization.id}/members/${id}`, { role })).status).toBe(200);
  }
  namespace = uniqueName('org');
  await app.as(owner).put(`/namespaces/${namespace}`, { organizationId: organization.id });
  const connect = (connectionId: string, body: Record<string, unknown>) =>
    createConnection(app, owner, body, { namespace, connectionId });
  await connect('a-works', { mcpUrl: upstream.url, name: HOSTILE });
  await connect('b-login', { mcpUrl: closed.url });
  server = await createServer(app, owner, { namespace, server: 'files', visibility: 'restricted' });
  await releaseServer(app, server, { upstreamUrl: upstream.url });
});

async function home(account: TestAccount, query = ''): Promise<string> {
  const { status, text } = await (await signedInBrowser(app, account)).get(`/ui/${query}`);
  expect(status).toBe(200);
  return text;
}

/** The text of the row with this address; '' without one. */
function rowOf(page: string, address: string): string {
  const row =
    page
      .match(/<tr role="row">[^]*?<\/tr>|<li><div>[^]*?<\/li>/g)
      ?.find((text) => text.includes(`<code>${address}</code>`)) ?? '';
  return row.replace(/\s+/g, ' ');
}

const textOf = (row: string) =>
  row
    .replace(/<span class="(?:tile|hidden)[^]*?<\/span>/g, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();

describe('/ui/', () => {
  verifies('home:rows', 'shows the state of each row, what one may do, the last use and one way on', async () => {
    const at = `${namespace}/a-works`;
    const before = await home(owner);
    expect(textOf(rowOf(before, at))).toMatch(/Works since \d\d:\d\d UTC Manage as owner of .+ Not yet Connect$/);
    expect(rowOf(before, at)).toContain(`href="../ui/c/${at}"`);
    await app.as(owner).post(`/connect/${at}/.tools/echo`, { message: 'hello' });
    await until(
      async () => /UTC with a program Connect$/.test(textOf(rowOf(await home(owner), at))),
      'the use is shown',
    );
    expect(textOf(rowOf(await home(member), at))).toContain(`Call all tools as member of ${organization.name} Not yet`);
    const [, iso = ''] = /<time datetime="([^"]+)">/.exec(rowOf(before, at)) ?? [];
    expect(new Date(iso).toISOString()).toBe(iso);
  });

  verifies('home:needs', 'leads who may to the setup of what waits for a person, and others to the owner', async () => {
    const at = `${namespace}/b-login`;
    const page = await home(editor);
    const needs = /<h2 id="needs">[^]*?<\/section>/.exec(page)?.[0] ?? '';
    expect(textOf(rowOf(needs, at))).toMatch(/log in again, since .+ Needs you Log in$/);
    expect(page.split(`<code>${at}</code>`)).toHaveLength(2);
    const [, href = ''] = /href="([^"]*setup[^"]*)"/.exec(rowOf(needs, at)) ?? [];
    const setup = new URL(href.replaceAll('&amp;', '&'), `${app.url}/ui/`);
    expect((await (await signedInBrowser(app, editor)).get(setup.pathname + setup.search)).status).toBe(200);
    const ofMember = await home(member);
    expect(textOf(rowOf(ofMember, at))).toMatch(
      new RegExp(`Waits for its owner .+ Ask the owner, ${organization.name}$`),
    );
    expect(ofMember).not.toContain('id="needs"');
    expect(ofMember).not.toContain('/setup/');
    expect(ofMember).not.toContain(closed.url);
  });

  verifies(
    'home:granted',
    'says by whom and until when something is granted, and of a reason its kind alone',
    async () => {
      const guest = await app.account();
      const expiresAt = new Date(Date.now() + 5 * 86_400_000).toISOString();
      const down = await startUpstream();
      await createConnection(app, owner, { mcpUrl: down.url }, { namespace, connectionId: 'c-down' });
      const at = `${namespace}/c-down`;
      const grant = { account: guest.id, level: 'call', tools: { allow: ['echo'] }, expiresAt };
      expect((await app.as(owner).post(`/connect/${at}/grants`, grant)).status).toBe(201);
      expect(textOf(rowOf(await home(guest), at))).toMatch(
        new RegExp(
          `Call 1 tool granted by ${owner.name}, .+, until \\d+ \\w+ \\d{4}, \\d\\d:\\d\\d UTC Not yet Connect$`,
        ),
      );
      const place = (page: string) => [...page.matchAll(/<code>([^<]+)<\/code>/g)].map(([, address]) => address);
      const before = place(await home(owner));
      await down.close();
      await app.as(owner).post(`/connect/${at}/.tools/echo`, { message: 'hello' });
      await until(async () => (await home(guest)).includes('Does not work'), 'the state is shown');
      const page = await home(guest);
      expect(textOf(rowOf(page, at))).toMatch(/Does not work it cannot be reached, since .+ Ask the owner, .+$/);
      expect(page).not.toContain(new URL(down.url).host);
      expect(place(await home(owner))).toEqual(before);
      await app.as(app.operator).put(`/connect/${at}/suspension`, { reason: 'Secret reason.' });
      expect(textOf(rowOf(await home(guest), at))).toContain('Suspended by the operator of this service');
    },
  );

  verifies('home:ended', 'says for 14 days which access others ended, unless it was given again', async () => {
    const person = await app.account();
    const at = `${namespace}/a-works`;
    const grant = { account: person.id, level: 'call' };
    const { body } = await app.as(owner).post(`/connect/${at}/grants`, grant);
    await app.as(owner).delete(`/connect/${at}/grants/${body.id as string}`);
    const member = `/accounts/${organization.id}/members/${person.id}`;
    const { body: invited } = await app.as(owner).put(member, { role: 'guest' });
    await app.as(person).post(`/accounts/${person.id}/invitations/${invited.id as string}`);
    await app.as(owner).delete(member);
    const page = textOf(await home(person));
    expect(page).toMatch(new RegExp(`Your access to ${at} of ${organization.name} ended, \\d\\d:\\d\\d UTC`));
    expect(page).toContain(`Your membership in ${organization.name} ended`);
    expect(await home(outsider)).not.toContain('Ended in the last');
    await app.as(owner).post(`/connect/${at}/grants`, grant);
    expect(textOf(await home(person))).not.toContain(`Your access to ${at}`);
    await app.database.query(`UPDATE changes SET created_at = created_at - interval '15 days' WHERE target_id = $1`, [
      person.id,
    ]);
    expect(await home(person)).not.toContain('Ended in the last');
  });

  verifies('home:invitations', 'shows who invites the person, with Accept and Decline', async () => {
    const team = `o/${organization.id}`;
    for (const [field, next, roles] of [
      ['decline', '?done=declined', []],
      ['accept', `${team}?done=joined`, ['guest']],
    ] as const) {
      const person = await app.account();
      const { body } = await app.as(owner).put(`/accounts/${organization.id}/members/${person.id}`, { role: 'guest' });
      const ofOwner = await (await signedInBrowser(app, owner)).get(`/ui/o/${organization.name}`);
      expect(textOf(ofOwner.text)).toMatch(new RegExp(`${person.name} ?:? guest, invited until`));
      const browser = await signedInBrowser(app, person);
      const page = await browser.get('/ui/');
      expect(textOf(page.text)).toMatch(
        new RegExp(`${organization.name} invites you, as guest until .+ Accept Decline`),
      );
      const path = `/ui/invitations/${body.id as string}`;
      const { status, headers } = await browser.post(`${path}/${field}`, { 'form-token': formTokenIn(page) });
      expect([status, headers.location]).toEqual([303, `../../../ui/${next}`]);
      const link = `href="../ui/o/${organization.name}"`;
      expect((await browser.get('/ui/')).text.includes(link)).toBe(field === 'accept');
      if (field === 'accept') expect((await browser.get(`/ui/${next}`)).text).toContain('You have joined');
      const { memberships } = (await app.as(person).get('/accounts/me/memberships')).body;
      expect((memberships as { role: string }[]).map(({ role }) => role)).toEqual(roles);
      expect((await browser.post(`${path}/${field}`, { 'form-token': formTokenIn(page) })).status).toBe(404);
    }
  });

  verifies(
    'home:find',
    'finds by name, address and owner, keeps what was typed, and pages by the address',
    async () => {
      const account = await app.account();
      const space = uniqueName('many');
      await app.as(account).put(`/namespaces/${space}`);
      await app.database.query(
        `INSERT INTO servers (namespace_id, name, slug, display_name, current_type, visibility)
       SELECT n.id, 'srv-' || lpad(i::text, 3, '0'), n.name || '--srv-' || i, 'S ' || i, 'external', 'private'
         FROM namespaces n, generate_series(1, 60) i WHERE n.name = $1`,
        [space],
      );
      const first = await home(account);
      const [, more = ''] = /<a class="button small" href="([^"]+)">More<\/a>/.exec(first) ?? [];
      expect(first).toContain('>All 60</a>');
      expect(first).toContain('>Works 60</a>');
      expect(first).not.toMatch(/>Needs you \d|>Does not work/);
      const { search } = new URL(more.replaceAll('&amp;', '&'), `${app.url}/ui/`);
      const second = await home(account, search);
      for (const [name, shown] of [
        ['srv-001', [true, false]],
        ['srv-060', [false, true]],
      ] as const) {
        expect([first, second].map((page) => rowOf(page, `${space}/${name}`) !== '')).toEqual(shown);
      }
      const found = await home(account, `?q=srv-060`);
      expect([rowOf(found, `${space}/srv-060`) !== '', rowOf(found, `${space}/srv-001`)]).toEqual([true, '']);
      const none = await home(account, `?q=${encodeURIComponent(`${HOSTILE}\u0000`)}`);
      expect(none).toContain('Nothing that you may use has “&lt;script&gt;');
      expect(textOf(rowOf(await home(account, '?state=works'), `${space}/srv-001`))).toContain('Published');
      expect(await home(account, '?state=broken')).toContain('Nothing is in this state.');
      expect(none).toContain('value="&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;');
    },
  );

  verifies(
    'home:catalogue',
    'finds servers of the catalogue by a tool, and by similar words where it has no others',
    async () => {
      const displayName = uniqueName('Zephyrine');
      const name = await createServer(app, outsider, { visibility: 'public', displayName });
      const tools = [{ name: 'hailstones', inputSchema: { type: 'object' } }];
      await releaseServer(app, name, { upstreamUrl: upstream.url, tools });
      const account = await app.account();
      for (const q of ['hailstones', displayName, `${displayName.slice(0, -1)}x`]) {
        const page = await home(account, `?q=${q}`);
        expect([q, page.includes('id="found"'), rowOf(page, name) !== '']).toEqual([q, true, true]);
      }
      await createConnection(app, account, { mcpUrl: upstream.url, name: `${displayName.slice(0, -1)}x` });
      expect(await home(account, `?q=${displayName.slice(0, -1)}x`)).not.toContain('id="found"');
    },
  );

  verifies('home:first-run', 'lists for an operator alone what is still to do', async () => {
    const page = await home(app.operator);
    const [list = ''] = /<h2 id="run">[^]*?<\/section>/.exec(page) ?? [];
    expect(textOf(list)).toMatch(
      /^To do for the operator \d of 7 done Set PUBLIC_URL .+ Address and proxy Choose with DEFAULT_VIS/,
    );
    expect(list).not.toContain('first server');
    const browser = await signedInBrowser(app, app.operator);
    for (const [, href = ''] of list.matchAll(/href="([^"]+)"/g)) {
      const { pathname, hash } = new URL(href, `${app.url}/ui/`);
      expect((await browser.get(pathname)).text).toContain(`id="${hash.slice(1)}"`);
    }
    expect(await home(app.operator, '?q=a')).not.toContain('id="run"');
    expect(await home(owner)).not.toContain('id="run"');
    await app.database.query('UPDATE accounts SET is_operator = true WHERE id = $1', [outsider.id]);
    expect(await home(outsider)).toContain('id="run"');
    await app.database.query('UPDATE accounts SET is_operator = false WHERE id = $1', [outsider.id]);
  });

  verifies('home:names', 'shows hostile names as text', async () => {
    const page = await home(owner);
    expect(page).toContain('&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;');
    expect(page).not.toMatch(/<script>|\u202e/);
  });
});

describe('a request for access', () => {
  const pageOf = (of = server) => `/ui/access/server/${encodeURIComponent(of)}`;

  async function ask(by: TestAccount, text = 'For our reports.'): Promise<string> {
    const { body } = await app.as(by).post(pathOf(server, '/access-requests'), { text });
    return body.id as string;
  }

  const submit = (browser: BrowserSession, id: string, fields: Record<string, string>) =>
    browser.submit(pageOf(), { ...fields, id });

  verifies('home:grant', 'leads from /ui/ to the form that grants some tools until a day', async () => {
    const asker = await app.account();
    const id = await ask(asker, HOSTILE);
    const last = await ask(await app.account());
    for (const who of [owner, editor]) {
      const page = await home(who);
      expect(page).toContain(`href="../ui/access/server/${encodeURIComponent(server)}?request=${id}#request"`);
      expect(page).toContain(`<b>${asker.name}</b><small>asks for access`);
      expect(page).not.toContain('<script>');
    }
    for (const who of [member, outsider, asker]) expect(await home(who)).not.toContain('asks for access');
    const grant = { form: 'grant', level: 'call', tool: 'echo', until: '2099-12-31' };
    const byEditor = await submit(await signedInBrowser(app, editor), id, grant);
    expect([byEditor.status, byEditor.text]).toEqual([403, expect.stringContaining('role="alert"')]);
    const browser = await signedInBrowser(app, owner);
    const { text } = await browser.get(`${pageOf()}?request=${id}`);
    expect(text).not.toContain('<script>');
    // The request that the link names stands first, though another one is newer.
    const ids = [...text.matchAll(/name="id" value="([^"]+)"/g)].map(([, shown]) => shown);
    expect([...new Set(ids)].slice(0, 2)).toEqual([id, last]);
    const past = await submit(browser, id, { ...grant, until: '2020-01-01' });
    expect([past.status, past.text]).toEqual([
      400,
      expect.stringMatching(/value="2020-01-01"[^]*Until must be in the future/),
    ]);
    const { status, headers } = await submit(browser, id, grant);
    const target = `ui/access/server/${encodeURIComponent(server)}`;
    expect([status, headers.location]).toEqual([303, `../../../../${target}?done=granted`]);
    expect((await browser.get(`/${target}?done=granted`)).text).toContain('role="status"><div>Access is granted.');
    const { body } = await app.as(owner).get(pathOf(server, '/grants'));
    expect(body.grants).toContainEqual(
      expect.objectContaining({
        account: { id: asker.id, name: asker.name },
        tools: { allow: ['echo'] },
        expiresAt: '2099-12-31T00:00:00.000Z',
      }),
    );
    expect(textOf(rowOf(await home(asker), server))).toContain(`granted by ${owner.name}`);
    const again = await submit(browser, id, grant);
    expect([again.status, again.text]).toEqual([409, expect.stringContaining('The request was decided before')]);
    const ofMember = await ask(member);
    expect((await submit(await signedInBrowser(app, editor), ofMember, { form: 'grant', level: 'call' })).status).toBe(
      303,
    );
  });

  verifies('home:refuse', 'is refused with a sentence, which the asker reads; what was typed is kept', async () => {
    const asker = await app.account();
    const id = await ask(asker);
    const browser = await signedInBrowser(app, editor);
    const long = `${HOSTILE}${'x'.repeat(500)}`;
    for (const refuse of ['', ' ', 'a\nb', long]) {
      const { status, text } = await submit(browser, id, { form: 'refuse', refuse });
      expect([refuse, status, text.includes('aria-invalid="true"')]).toEqual([refuse, 400, true]);
      if (refuse === long) expect(text).toContain(`value="&lt;script&gt;alert(1)`);
    }
    expect((await submit(browser, id, { form: 'refuse', refuse: 'Use the other one.' })).headers.location).toContain(
      '?done=refused',
    );
    const { body } = await app.as(asker).get('/accounts/me/access-requests');
    expect(body.requests).toMatchObject([{ state: 'refused', answer: 'Use the other one.' }]);
    expect((await browser.get(pageOf())).text).not.toContain(asker.name);
  });

  verifies('home:foreign', 'is decided by nobody else, and of no other server', async () => {
    const id = await ask(await app.account());
    const forms = { grant: { level: 'call' }, refuse: { refuse: 'No.' } };
    for (const who of [member, outsider]) {
      const browser = await signedInBrowser(app, who);
      for (const [form, fields] of Object.entries(forms)) {
        expect((await browser.submit(pageOf(), { form, id, ...fields }, '/ui/add')).status).toBe(404);
      }
    }
    const own = await createServer(app, outsider);
    const browser = await signedInBrowser(app, outsider);
    for (const page of [pageOf(own), `/ui/access/namespace/${own.split('/')[0]}`]) {
      for (const [form, fields] of Object.entries(forms)) {
        expect([page, form, (await browser.submit(page, { form, id, ...fields })).status]).toEqual([page, form, 404]);
      }
    }
    const { body } = await app.as(owner).get('/accounts/me/access-requests?as=decider');
    expect(body.requests).toContainEqual(expect.objectContaining({ id, state: 'open' }));
    for (const who of [member, outsider]) {
      expect((await app.as(who).get('/accounts/me/access-requests?as=decider')).body.requests).toEqual([]);
    }
  });
});
