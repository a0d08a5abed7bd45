import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createApp } from '../../../src/app.setup.js';
import { originOf } from '../../../src/mcp/server/mcp-request.js';
import { ApiKeysService } from '../../../src/modules/auth/api-keys.service.js';
import { HomeController } from '../../../src/modules/console/home.controller.js';
import { RevocationRegistry } from '../../../src/platform/http/revocation-registry.js';
import { ACCESS } from '../../../src/platform/http/public.decorator.js';
import { pages, sessions } from '../../support/access/access-matrix.js';
import { documented, Estates, nameOf, pathOf, type Estate } from '../../support/access/estates.js';
import { testApp, type TestAccount } from '../../support/app.js';
import {
  accountWithPassword,
  formTokenIn,
  openBrowser,
  personAt,
  signedInBrowser,
  type BrowserSession,
} from '../../support/people/browser-session.js';
import { shownFault } from '../../support/people/form-faults.js';
import { verifies } from '../../support/verifies.js';

const SECRET = 'correct horse battery';
const OTHER = 'staple of the horse';

const app = testApp();
let estates: Estates;
let estate: Estate;

beforeAll(async () => {
  estates = await Estates.in(app);
  estate = await estates.create();
});
afterAll(async () => {
  await estates.close();
});

describe('a page', () => {
  verifies('console:matrix', 'opens to the session of each caller as the table says, and has a row there', async () => {
    const { owner, guest } = estate;
    const accounts = { stranger: await app.account(), guest, owner, operator: app.operator };
    const rows: Record<string, string> = {};
    for (const who of sessions) {
      const browser = who === 'signedOut' ? openBrowser(app) : await signedInBrowser(app, accounts[who]);
      const token = formTokenIn(await browser.get(who === 'signedOut' ? '/login' : '/me'));
      for (const route of estates.pages) {
        const path = pathOf(route, estate);
        const { status, headers } = await (route.method === 'GET'
          ? browser.get(path)
          : browser.post(path, { 'form-token': token }));
        const isLed = status === 303 && /login\?next=/.test(headers.location ?? '');
        const name = documented(nameOf(route));
        rows[name] = (rows[name] ?? '') + (isLed ? 'l' : status === 403 ? 'f' : status === 404 ? 'x' : 'y');
      }
    }
    expect(rows).toEqual(pages);
  });

  verifies('console:session-only', 'opens to no key, and the session of a browser opens nothing else', async () => {
    const { owner, namespace, server, connectionId } = estate;
    const browser = await signedInBrowser(app, owner);
    const cookie = [...browser.cookies].map((pair) => pair.join('=')).join('; ');
    for (const path of [
      '/accounts/me',
      '/servers',
      `/connect/${namespace}/${connectionId}/mcp`,
      `/run/${server.replace('/', '--')}`,
    ]) {
      expect([path, (await app.as().get(path).set('cookie', cookie)).status]).toEqual([path, 401]);
    }
    const { status, headers } = await app
      .as(owner)
      .get('/ui/')
      .redirects(0)
      .ok(() => true);
    expect([status, headers.location]).toEqual([303, '../login?next=/ui/']);
  });

  verifies('console:forms', 'takes no form without its token, of another page or under a foreign name', async () => {
    const browser = await signedInBrowser(app, estate.owner);
    const token = formTokenIn(await browser.get('/ui/'));
    const other = await signedInBrowser(app, await app.account());
    const foreign = formTokenIn(await other.get('/ui/'));
    const posts = estates.pages.filter(({ method }) => method !== 'GET').map((route) => pathOf(route, estate));
    expect(posts).toEqual(expect.arrayContaining(['/me', '/me/access']));
    for (const path of posts) {
      for (const [field, headers] of [
        ['', {}],
        [foreign, {}],
        [token, { 'sec-fetch-site': 'cross-site' }],
        [token, { 'sec-fetch-site': 'same-site' }],
        [token, { host: 'evil.example' }],
      ] as [string, Record<string, string>][]) {
        const { status, text } = await browser.post(path, { 'form-token': field }, headers);
        expect([path, field, headers, status]).toEqual([path, field, headers, 403]);
        expect(text).toContain('<h1>This');
      }
    }
    for (const route of estates.pages.filter(({ method }) => method === 'GET')) {
      const { status, text } = await browser.get(pathOf(route, estate), { host: 'evil.example' });
      expect([nameOf(route), status, text.includes(estate.owner.name)]).toEqual([nameOf(route), 403, false]);
    }
  });

  verifies('console:sign-in', 'leads to the sign-in and from there back, whatever its address holds', async () => {
    const account = await app.account();
    for (const [page, location, back] of [
      ['/ui/', '../login?next=/ui/', './ui/'],
      ['/ui/?q=a%26b&x=1', '../login?next=/ui/%3Fq%3Da%2526b%26x%3D1', './ui/?q=a%26b&x=1'],
      ['/me', './login?next=/me', './me'],
      ['/me/access?page=2', '../login?next=/me/access%3Fpage%3D2', './me/access?page=2'],
    ]) {
      const browser = openBrowser(app);
      const led = await browser.get(page);
      expect([led.status, led.headers.location]).toEqual([303, location]);
      const shown = await browser.get(new URL(String(led.headers.location), app.url + page).href.slice(app.url.length));
      const [, next = ''] = /name="next" value="([^"]*)"/.exec(shown.text) ?? [];
      const fields = { 'form-token': formTokenIn(shown), key: account.key, next: next.replaceAll('&amp;', '&') };
      expect((await browser.post('/login', fields)).headers.location).toBe(back);
      expect((await browser.get(page)).status).toBe(200);
    }
  });

  verifies('console:ended', 'opens no more to a session that ended, nor to a disabled account', async () => {
    const account = await app.account();
    const [one, two] = [await signedInBrowser(app, account), await signedInBrowser(app, account)];
    const copy = openBrowser(app, new Map(one.cookies));
    await one.submit('/logout', {}, '/ui/');
    expect([(await copy.get('/ui/')).status, (await two.get('/ui/')).status]).toEqual([303, 200]);
    await app.as(app.operator).patch(`/accounts/${account.id}`, { disabled: true });
    expect((await two.get('/ui/')).headers.location).toBe('../login?next=/ui/');
  });

  verifies(
    'console:ended',
    'leads from the form of a session that ended to the sign-in and back to its page',
    async () => {
      const browser = await signedInBrowser(app, await app.account());
      const token = formTokenIn(await browser.get('/me'));
      const copy = openBrowser(app, new Map(browser.cookies));
      await browser.submit('/logout', {}, '/me');
      for (const [referer, next] of [
        [`${app.env.baseUrl}/ui/add?x=1`, '/ui/add%3Fx%3D1'],
        [`${app.env.baseUrl}.evil.example/ui/add`, '/ui/'],
        [undefined, '/ui/'],
      ]) {
        const headers: Record<string, string> = referer === undefined ? {} : { referer };
        const led = await copy.post('/me/keys/create', { 'form-token': token, name: 'x' }, headers);
        expect([referer, led.status, led.headers.location]).toEqual([referer, 303, `../../login?next=${next}`]);
      }
    },
  );

  verifies('console:rejected', 'shows a rejected form again with the reason at its field', async () => {
    const { owner, namespace, connectionId } = estate;
    const organization = await app.account({ kind: 'organization' });
    await app.as(app.operator).put(`/accounts/${organization.id}/members/${owner.id}`, { role: 'owner' });
    const [member, person] = [await app.account(), await accountWithPassword(app, SECRET)];
    await app.as(app.operator).put(`/accounts/${organization.id}/members/${member.id}`, { role: 'member' });
    const signedIn = openBrowser(app);
    await signedIn.submit('/login', { name: person.name, password: SECRET });
    const ofOwner = await signedInBrowser(app, owner);
    const { body: invitation } = await app
      .as(owner)
      .post(`/accounts/${organization.id}/members/invitations`, { role: 'guest' });
    const { pathname, search } = new URL(invitation.url as string);
    const [c, o] = [`/ui/c/${namespace}/${connectionId}`, `/ui/o/${organization.id}`];
    const a = `/ui/access/connection/${encodeURIComponent(`${namespace}/${connectionId}`)}`;
    const later = { account: 'nobody', level: 'manage', until: '2999-01-01' };
    const grant = ['value="nobody"', 'value="manage" selected'];
    const remove = { form: 'remove', id: member.id, expected: member.name, typed: 'x', revokeKeys: 'yes' };
    const key = { name: 'ci', days: '30', scope: 'read' };
    const rows: [BrowserSession, string, Record<string, string>, string | null, string, string[]][] = [
      [ofOwner, a, { form: 'grant', ...later }, 'account', 'No account has this id or name', grant],
      [ofOwner, a, { form: 'grant', ...later, until: '2000-01-01' }, 'until', 'Until must be in the future.', grant],
      [ofOwner, c, { form: 'settings/callTimeoutMs', callTimeoutMs: '1' }, 'callTimeoutMs', 'Silence after which', []],
      [ofOwner, a, { form: 'end', id: member.id }, null, 'Nothing was changed: ', []],
      [ofOwner, o, { form: 'claim', namespace: 'No!' }, 'namespace', 'Name must be 3 to 39', ['value="No!"']],
      [ofOwner, o, remove, 'typed', 'The typed name does not match.', ['value="x"', 'value="yes" checked']],
      [
        ofOwner,
        '/me',
        { form: 'keys/create', ...key, days: '0' },
        'days',
        'Days until it expires must',
        ['value="ci"', 'value="read" checked'],
      ],
      [ofOwner, '/me', { form: 'keys/create', name: 'ci', days: '30' }, 'scope', 'Select 1 to 100', ['value="ci"']],
      [
        signedIn,
        '/me',
        { old: 'wrong', password: OTHER, repeated: OTHER },
        'old',
        'The present password is wrong.',
        [],
      ],
      [signedIn, '/me', { old: SECRET, password: OTHER, repeated: SECRET }, 'repeated', 'The two passwords differ', []],
      [
        openBrowser(app),
        '/login',
        { name: person.name, password: OTHER },
        'password',
        'The account or the password',
        [`value="${person.name}"`],
      ],
      [
        openBrowser(app),
        pathname + search,
        { name: 'Ann', password: 'x', repeated: 'x' },
        'password',
        'Choose a password',
        ['value="Ann"'],
      ],
      [ofOwner, '/ui/add', { form: 'find', what: 'ftp://x' }, 'what', '', ['>\nftp://x</textarea>']],
    ];
    for (const [browser, path, fields, field, reason, kept] of rows) {
      const { status, text } = await browser.submit(path, fields);
      const { focused, invalid, described, alerts } = shownFault(text);
      const fault = field === null ? [[], [], ''] : [[field], [field], expect.stringContaining(reason)];
      expect([fields, status >= 400, focused, invalid, described]).toEqual([fields, true, ...fault]);
      expect(alerts).toEqual([expect.stringContaining(reason)]);
      for (const words of kept) expect(text).toContain(words);
      for (const secret of [SECRET, OTHER]) expect(text).not.toContain(secret);
    }
  });

  it('leads from the address of a form to its page', async () => {
    const browser = await signedInBrowser(app, estate.owner);
    for (const [path, location] of [
      ['/ui/c/acme/mail/settings/name', '../../../../../ui/c/acme/mail'],
      ['/ui/add/find', '../../ui/add'],
      ['/ui/invitations/x/accept', '../../../ui'],
      ['/me/keys/create', '../../me'],
    ]) {
      const { status, headers } = await browser.get(path);
      expect([path, status, headers.location]).toEqual([path, 303, location]);
    }
    expect((await app.as(estate.owner).get('/ui/add/find')).status).toBe(405);
  });

  verifies('console:names', 'shows names of tenants as text, with relative links that lead somewhere', async () => {
    const hostile = `<script>alert(1)</script>"'\u202e${'x'.repeat(200)}`;
    const account = await app.account();
    await app.database.query('UPDATE accounts SET name = $2 WHERE id = $1', [account.id, hostile]);
    const browser = await signedInBrowser(app, account);
    for (const path of ['/ui', '/ui/', '/me', '/me/access']) {
      const { text, headers } = await browser.get(path);
      expect(text).toContain('&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39; xxx');
      expect(text.match(/<script[^>]*>/g)).toEqual([expect.stringMatching(/^<script src="\.[^"]+" defer>$/)]);
      expect(text).not.toContain('\u202e');
      expect(headers).toMatchObject({
        'content-security-policy': expect.stringMatching(/^default-src 'none'; style-src 'self'; script-src 'self'; /),
        'cache-control': 'no-store',
        'x-frame-options': 'DENY',
      });
      const links = [...text.matchAll(/(?:href|src)="([^"#]+)"/g)]
        .map(([, link]) => link)
        .filter((link) => link !== 'data:,');
      expect(links.length).toBeGreaterThan(3);
      for (const link of links) {
        expect(link).not.toMatch(/^[/]|:/);
        const { pathname, search } = new URL(String(link), app.url + path);
        expect([link, (await browser.get(pathname + search)).status]).toEqual([link, 200]);
      }
    }
  });

  it('has files that browsers keep under the address of their content alone', async () => {
    const browser = await signedInBrowser(app, estate.owner);
    const { text } = await browser.get('/ui/');
    for (const [name, type] of [
      ['style.css', 'text/css; charset=utf-8'],
      ['script.js', 'text/javascript; charset=utf-8'],
      ['mark.svg', 'image/svg+xml; charset=utf-8'],
    ]) {
      const [, version] = new RegExp(`${name}\\?v=([\\w-]+)`).exec(text) ?? [];
      const { headers } = await openBrowser(app).get(`/ui/${name}?v=${version}`);
      expect(headers).toMatchObject({ 'content-type': type, 'cache-control': 'public, max-age=31536000, immutable' });
      expect((await openBrowser(app).get(`/ui/${name}?v=older`)).headers['cache-control']).toBe('no-cache');
    }
  });

  it('counts as a request of its account', async () => {
    const { headers } = await (await signedInBrowser(app, await app.account())).get('/ui/');
    expect(headers['ratelimit-policy']).toMatch(/^"key";.*"account";/);
    expect((await openBrowser(app).get('/ui/')).headers['ratelimit-policy']).toMatch(/^"address";/);
  });
});

describe('a session', () => {
  /** Asks whether what is held open may go on, as the schedule does every 3 s. */
  const check = async (account: TestAccount) => app.get(ApiKeysService).accountChanged(account.id);

  verifies('console:streams', 'holds open what it opened until it ends', async () => {
    const [account, stranger] = await Promise.all([app.account(), app.account()]);
    const browser = await signedInBrowser(app, account);
    const caller = await personAt(app, browser);
    if (!caller) throw new Error('not signed in');
    expect(caller).toMatchObject({ accountId: account.id, accountName: account.name, isSession: true, scopes: null });
    const origin = { account: account.id, kind: 'session', credential: caller.keyId, client: null };
    expect(originOf(caller)).toEqual(origin);
    const held = app.get(RevocationRegistry);
    let ended = 0;
    const forget = held.add(caller.keyId, () => {
      ended += 1;
      forget();
    });
    await check(stranger);
    expect(ended).toBe(0);
    await browser.submit('/logout', {}, '/ui/');
    await check(stranger);
    expect(ended).toBe(1);
  });
});

verifies('auth:declared', 'the start is refused for a page that declares no access rule', async () => {
  const handler = HomeController.prototype.show as unknown as object;
  const rule = Reflect.getMetadata(ACCESS, handler) as unknown;
  Reflect.deleteMetadata(ACCESS, handler);
  try {
    await expect(createApp(app.env, { preview: true })).rejects.toThrow(/GET \/ui declares neither .* nor @Page/);
  } finally {
    Reflect.defineMetadata(ACCESS, rule, handler);
  }
});
