import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { IdentityChecksService } from '../../../src/extensions/sign-in-oidc/identity-checks.service.js';
import { oidcSettingsSchema } from '../../../src/extensions/sign-in-oidc/oidc-settings.js';
import { signInOidc } from '../../../src/extensions/sign-in-oidc/sign-in-oidc.module.js';
import { ApiKeysService } from '../../../src/modules/auth/api-keys.service.js';
import { testApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import { startAuthorizationServer } from '../../support/people/authorization-server.js';
import { accountWithPassword } from '../../support/people/browser-session.js';
import { newPerson, type Person, type Shown } from '../../support/people/person.js';
import { startSmallIssuer } from '../../support/people/small-issuer.js';
import { until } from '../../support/until.js';

const HOME = 'https://slipway.example';
const SECRET = 'a secret of the client: %+';
const SESSION = '__Host-slipway-session';
const PASSWORD = 'correct horse battery';

/** Who signs in next at the company. */
let employee: { sub: string } & Record<string, unknown>;

const company = await startAuthorizationServer({
  clients: [{ clientId: 'slipway', clientSecret: SECRET, redirectUri: `${HOME}/login/oidc/callback` }],
  person: () => employee,
});
const small = await startSmallIssuer(SECRET);
afterAll(() => Promise.all([company.close(), small.close()]));

const settings = {
  PUBLIC_URL: HOME,
  OIDC_ISSUER: company.issuer,
  OIDC_CLIENT_ID: 'slipway',
  OIDC_CLIENT_SECRET: SECRET,
  OIDC_NAME: 'Example Staff',
  OIDC_GROUPS: 'devs=acme:editor; CN=admins,OU=staff=acme:owner; ops=acme:member',
};
const app = testApp(settings);

/** An employee with a name of their own. */
function newEmployee(claims: Record<string, unknown> = {}): string {
  const name = uniqueName('anna');
  employee = {
    sub: uniqueName('sub'),
    preferred_username: `${name}@example.com`,
    email: `${name}@example.com`,
    ...claims,
  };
  return name;
}

const browserAt = ({ url }: TestApp) => newPerson({ publicUrl: HOME, url });

/** Signs in at the company with a new browser, or with one that has begun something else. */
async function signIn(at = app, form: Record<string, string> = {}, browser = browserAt(at)): Promise<Shown> {
  await browser.open(`${HOME}/login`);
  return browser.press(`${HOME}/login/oidc`, undefined, form);
}

/** A new employee who has signed in. */
async function signedUp(claims?: Record<string, unknown>): Promise<{ name: string; id: string; browser: Person }> {
  const [name, browser] = [newEmployee(claims), browserAt(app)];
  await signIn(app, {}, browser);
  const [{ id }] = await app.database.query<[{ id: string }]>('SELECT id FROM accounts WHERE name = $1', [name]);
  return { name, id, browser };
}

/** Sends the form of the sign-in page. */
async function logIn(form: Record<string, string>, browser = browserAt(app)): Promise<Shown & { browser: Person }> {
  await browser.open(`${HOME}/login`);
  return { ...(await browser.press(`${HOME}/login`, undefined, form)), browser };
}

/** Begins a sign-in, up to the redirect to the issuer, or another one. */
async function begun(browser: Person, stop = (url: string) => !url.startsWith(HOME)): Promise<Shown> {
  await browser.open(`${HOME}/login`);
  return browser.press(`${HOME}/login/oidc`, stop);
}

/** Creates a key of an account. */
async function keyOf(accountId: string): Promise<string> {
  const { body } = await app.as(app.operator).post(`/accounts/${accountId}/api-keys`, { name: 'test' }).expect(201);
  return (body as { key: string }).key;
}

const isCallback = (url: string) => url.startsWith(`${HOME}/login/oidc/callback`);

/** What the record says of identities and suspensions of an account: the action, the actor, and a value after it. */
function recorded(accountId: string): Promise<object[]> {
  return app.database.query(
    `SELECT action, actor_id = account_id AS own, after->>'suspendedFor' AS reason FROM changes
      WHERE account_id = $1 AND (action ~ '^identity' OR coalesce(before, after) ? 'suspendedFor') ORDER BY id`,
    [accountId],
  );
}

/** The name of the account at a browser. */
async function accountAt(browser: Person): Promise<string | undefined> {
  const { html } = await browser.open(`${HOME}/me`);
  return /signed in as <strong>([^<]+)</.exec(html)?.[1];
}

async function withPassword(): Promise<{ name: string; id: string; browser: Person }> {
  const account = await accountWithPassword(app, PASSWORD);
  return { ...account, browser: (await logIn({ name: account.name, password: PASSWORD })).browser };
}

async function link(browser: Person, stop?: (url: string) => boolean): Promise<Shown> {
  await browser.open(`${HOME}/me`);
  return browser.press(`${HOME}/login/oidc/link`, stop);
}

describe('signing in by the issuer', () => {
  it('creates an account at the first sign-in, and finds it at the next one', async () => {
    const name = newEmployee();
    const browser = browserAt(app);
    const { html } = await browser.open(`${HOME}/login`);
    expect(html).toContain('Sign in with Example Staff');
    expect(html).not.toContain('is unavailable');
    const shown = await signIn(app, { next: '/me' }, browser);
    expect([shown.status, shown.url]).toEqual([200, `${HOME}/me`]);
    expect(await accountAt(browser)).toBe(name);

    employee.preferred_username = 'another@example.com';
    const later = browserAt(app);
    await signIn(app, {}, later);
    expect(await accountAt(later)).toBe(name);
    const [session] = await app.database.query(
      `SELECT extract(epoch FROM s.ends_at - s.created_at)::int AS life, s.expires_at = s.ends_at AS "isEnd"
         FROM sessions s JOIN accounts a ON a.id = s.account_id WHERE a.name = $1 ORDER BY s.created_at LIMIT 1`,
      [name],
    );
    expect(session).toEqual({ life: 12 * 60 * 60, isEnd: true });
    // Using it later does not make it longer.
    await app.database.query(`UPDATE sessions SET last_used_at = now() - interval '2 hours' WHERE ends_at IS NOT NULL`);
    expect(await accountAt(browser)).toBe(name);
    const [longer] = await app.database.query('SELECT count(*)::int AS n FROM sessions WHERE expires_at > ends_at');
    expect(longer).toEqual({ n: 0 });
  });

  it('creates one account for two concurrent first sign-ins of one identity', async () => {
    const name = newEmployee();
    const browsers = [browserAt(app), browserAt(app)];
    await Promise.all(browsers.map((browser) => signIn(app, {}, browser)));
    expect(await Promise.all(browsers.map(accountAt))).toEqual([name, name]);
  });

  it('never joins an identity to an account by its name or address, and gives a free name like no other', async () => {
    const taken = await app.account();
    newEmployee({ preferred_username: taken.name, email: `${taken.name}@example.com`, email_verified: true });
    const lookalike = taken.name.replace('o', '0');
    for (const [preferred_username, name] of [
      [taken.name, `${taken.name}-2`],
      [taken.name.toUpperCase(), `${taken.name}-3`],
      [lookalike, `${lookalike}-4`],
    ] as const) {
      employee = { ...employee, sub: uniqueName('sub'), preferred_username };
      const browser = browserAt(app);
      await signIn(app, {}, browser);
      expect(await accountAt(browser)).toBe(name);
    }
  });

  it('gives the name "user" where letters of two scripts look alike', async () => {
    newEmployee({ preferred_username: 'раypal' });
    const browser = browserAt(app);
    await signIn(app, {}, browser);
    expect(await accountAt(browser)).toMatch(/^user(-\d+)?$/);
  });

  it.each(['https://evil.example/', '//evil.example/ui/', '/\\evil.example', '/ui/../../evil', 'me', '/docs'])(
    'leads to the first page instead of %s',
    async (next) => {
      newEmployee();
      expect((await signIn(app, { next })).url).toBe(`${HOME}/ui/`);
    },
  );

  it('is refused for a disabled account, and when the person cancels', async () => {
    const { id } = await signedUp();
    await app.database.query('UPDATE accounts SET disabled_at = now() WHERE id = $1', [id]);
    const refused = await signIn();
    expect([refused.status, refused.html.includes('disabled')]).toEqual([403, true]);

    const browser = browserAt(app);
    const { url } = await begun(browser);
    const state = new URL(url).searchParams.get('state') ?? '';
    const response = new URLSearchParams({ error: 'access_denied', state, iss: company.issuer }).toString();
    const cancelled = await browser.open(`${HOME}/login/oidc/callback?${response}`);
    expect(cancelled.status).toBe(403);
    expect(cancelled.html).toContain('access_denied');
    expect(cancelled.html).toContain(`href="${HOME}/login"`);
  });
});

describe('linking an identity', () => {
  it('lets the identity sign in to the account of the person who linked it', async () => {
    newEmployee();
    const { name, browser } = await withPassword();
    expect((await link(browser)).html).toContain(String(employee.email));
    const other = browserAt(app);
    await signIn(app, {}, other);
    expect(await accountAt(other)).toBe(name);
  });

  it('changes nothing for an identity of another account', async () => {
    const { name: first } = await signedUp();
    const { browser } = await withPassword();
    const shown = await link(browser);
    expect([shown.status, shown.html.includes('has an account already')]).toEqual([403, true]);
    const other = browserAt(app);
    await signIn(app, {}, other);
    expect(await accountAt(other)).toBe(first);
  });

  it('is refused for a session that began with an API key, and when another person has signed in meanwhile', async () => {
    newEmployee();
    const { browser, id } = await withPassword();
    const { browser: keyed } = await logIn({ key: await keyOf(id) });
    expect(await link(keyed)).toMatchObject({ status: 403, url: `${HOME}/login/oidc/link` });
    for (const other of [keyed, (await withPassword()).browser]) {
      const { url } = await link(browser, isCallback);
      const [own, foreign] = [browser, other].map(({ cookies }) => cookies.get('slipway.example'));
      const session = own?.get(SESSION) ?? '';
      own?.set(SESSION, foreign?.get(SESSION) ?? '');
      expect((await browser.open(url)).status).toBe(403);
      own?.set(SESSION, session);
    }
    expect(await app.database.query('SELECT 1 FROM identities WHERE subject = $1', [employee.sub])).toEqual([]);
  });
});

describe('unlinking an identity', () => {
  const unlink = async (browser: Person, id = `${company.issuer} ${employee.sub}`) => {
    await browser.open(`${HOME}/me`);
    return browser.press(`${HOME}/login/oidc/unlink`, undefined, { id });
  };

  it('leaves the password and another identity as ways to sign in, and is recorded with its actor', async () => {
    newEmployee();
    const { browser, id } = await withPassword();
    await link(browser);
    const first = `${company.issuer} ${employee.sub}`;
    newEmployee();
    browser.cookies.delete(new URL(company.issuer).host);
    expect((await link(browser)).html).toContain(`value="${first}"`);
    const other = (await withPassword()).browser;
    expect((await unlink(other, first)).status).toBe(403);
    expect((await unlink(browser, first)).url).toBe(`${HOME}/me`);
    const { status, html } = await unlink(browser);
    expect([status, html.includes('Unlink')]).toEqual([200, false]);
    const rows = ['created', 'created', 'deleted', 'deleted'];
    const expected = rows.map((verb) => ({ action: `identity.${verb}`, own: true, reason: null }));
    expect(await recorded(id)).toEqual(expected);
  });

  it('is refused for the last way to sign in, and for a session that began with an API key', async () => {
    const { name, id, browser } = await signedUp();
    const { status, html } = await unlink(browser);
    expect([status, html.includes('stays linked')]).toEqual([403, true]);
    expect((await unlink((await logIn({ key: await keyOf(id) })).browser)).status).toBe(403);
    // One of another issuer than the present one signs nobody in.
    const sql = `INSERT INTO identities (issuer, subject, account_id, name) VALUES ('https://old.example', $2, $1, 'old')`;
    await app.database.query(sql, [id, name]);
    expect((await unlink(browser)).status).toBe(403);
    expect((await unlink(browser, `https://old.example ${name}`)).status).toBe(200);
  });
});

describe('who gets an account', () => {
  it('is decided by the verified domain', async () => {
    const limited = await app.sibling({ ...settings, OIDC_DOMAINS: 'example.com, Example.org' });
    for (const [claims, status] of [
      [{ email_verified: true }, 200],
      [{ email: 'anna@EXAMPLE.ORG', email_verified: true }, 200],
      [{ email_verified: false }, 403],
      [{}, 403],
      [{ email: 'anna@example.com.evil.example', email_verified: true }, 403],
      [{ email: 'anna@example.com@evil.example', email_verified: true }, 403],
    ] as const) {
      newEmployee(claims);
      expect([claims, (await signIn(limited)).status]).toEqual([claims, status]);
    }
    await limited.close();
  });

  it('is nobody with OIDC_SIGN_UP=off but those with a linked identity', async () => {
    const closed = await app.sibling({ ...settings, OIDC_SIGN_UP: 'off' });
    newEmployee();
    const { status, html } = await signIn(closed);
    expect([status, html.includes('No account is linked')]).toEqual([403, true]);
    await link((await withPassword()).browser);
    expect((await signIn(closed)).status).toBe(200);
    await closed.close();
  });
});

describe('an issuer that is unavailable', () => {
  it('stops neither the start nor who is signed in, and works as soon as it is back', async () => {
    const { name, browser } = await withPassword();
    company.down();
    const started = await app.sibling(settings);
    const { html } = await browserAt(started).open(`${HOME}/login`);
    expect(html).toContain('Example Staff is unavailable right now');
    expect((await signIn(started)).status).toBe(503);
    expect(await accountAt(browser)).toBe(name);
    company.up();
    newEmployee();
    expect((await signIn(started)).status).toBe(200);
    const isBack = async () => !(await browserAt(started).open(`${HOME}/login`)).html.includes('unavailable');
    await until(isBack, 'the page says that people can sign in');
    await started.close();
  });
});

it('offers to sign out at the issuer too', async () => {
  const { browser } = await signedUp();
  await browser.open(`${HOME}/me`);
  const { html } = await browser.press(`${HOME}/logout`, undefined, {});
  const [, href = ''] = /href="([^"]+)">Also sign out at Example Staff</.exec(html) ?? [];
  const sent = Object.fromEntries(new URL(href.replaceAll('&amp;', '&')).searchParams);
  const idToken = expect.stringMatching(/^ey.*\./) as unknown as string;
  expect(sent).toEqual({ client_id: 'slipway', post_logout_redirect_uri: `${HOME}/login`, id_token_hint: idToken });
  expect(await accountAt(browser)).toBeUndefined();
});

describe('OIDC_ONLY', () => {
  it('leaves the issuer, and API keys of operators, as ways to sign in', async () => {
    const account = await accountWithPassword(app, PASSWORD);
    const byPassword = (await withPassword()).browser;
    const organization = await app.account({ kind: 'organization' });
    const { body: invitation } = await app.as(app.operator).post(`/accounts/${account.id}/invitations`).expect(201);
    const only = await app.sibling({ ...settings, OIDC_ONLY: 'on' });
    expect(await accountAt(byPassword)).toBeUndefined();
    const { html } = await browserAt(only).open(`${HOME}/login`);
    expect([html.includes('name="password"'), html.includes('name="key"')]).toEqual([false, true]);
    const { url } = invitation as { url: string };
    expect((await browserAt(only).open(url)).status).toBe(410);
    const invite = (path: string, body?: object) => only.as(only.operator).post(`/accounts/${path}invitations`, body);
    await invite(`${account.id}/`).expect(403);
    await invite(`${organization.id}/members/`, { role: 'member' }).expect(403);
    for (const [form, status] of [
      [{ name: account.name, password: PASSWORD }, 403],
      [{ key: (await app.account()).key }, 403],
      [{ key: app.operator.key }, 200],
    ] as const) {
      expect([form, (await logIn(form, browserAt(only))).status]).toEqual([form, status]);
    }
    const name = newEmployee();
    const browser = browserAt(only);
    await signIn(only, {}, browser);
    expect(await accountAt(browser)).toBe(name);
    expect((await browser.open(`${HOME}/me`)).html).not.toContain('name="password"');
    await only.close();
  });
});

describe('slipway doctor', () => {
  const examine = (more: object) => signInOidc.doctor?.(app.env, oidcSettingsSchema.parse({ ...settings, ...more }));

  it('checks issuer, redirect address and clock', async () => {
    expect(await examine({})).toBe(`${company.issuer} accepts the redirect address ${HOME}/login/oidc/callback`);
    await expect(examine({ OIDC_CLIENT_ID: 'other' })).rejects.toThrow('register the redirect address');
    small.aheadSeconds = 120;
    await expect(examine({ OIDC_ISSUER: small.issuer })).rejects.toThrow(/differs by 1(19|20|21) s/);
    small.aheadSeconds = 0;
    company.down();
    await expect(examine({})).rejects.toThrow('is unavailable');
    company.up();
  });
});

/** Lets the hour pass after the last check of the employee, and checks who is due. */
async function check(...at: TestApp[]): Promise<void> {
  const due = `UPDATE identities SET checked_at = now() - interval '61 minutes' WHERE subject = $1`;
  await app.database.query(due, [employee.sub]);
  const processes = at.length > 0 ? at : [app];
  await Promise.all(processes.map((each) => each.get(IdentityChecksService).checkDue()));
}

describe('groups of the directory', () => {
  let acme: TestAccount;
  beforeAll(async () => {
    acme = await app.account({ kind: 'organization' });
    await app.database.query(`UPDATE accounts SET name = 'acme' WHERE id = $1`, [acme.id]);
    await join(app.operator.id, 'owner');
  });
  const join = (accountId: string, role: string) =>
    app.database.query(
      'INSERT INTO memberships (organization_id, account_id, role, created_by) VALUES ($1, $2, $3, $2)',
      [acme.id, accountId, role],
    );

  /** The role of the employee. */
  async function employed() {
    const sql = `SELECT m.role FROM identities i LEFT JOIN memberships m USING (account_id) WHERE subject = $1`;
    const [account] = await app.database.query<[{ role: string | null }]>(sql, [employee.sub]);
    return account;
  }

  it('give and take memberships at the sign-in and at each check, and an absent claim changes none', async () => {
    const { id } = await signedUp({ groups: ['devs', 'others'] });
    expect((await employed()).role).toBe('editor');
    const key = await keyOf(id);
    for (const [groups, expected] of [
      [undefined, 'editor'],
      [['CN=admins,OU=staff', 'ops'], 'owner'],
      [[{ name: 'ops' }], 'owner'],
      ['ops', 'member'],
      [[], null],
      [['devs'], 'editor'],
      [['others'], null],
    ] as const) {
      employee.groups = groups;
      await check();
      expect([groups, (await employed()).role]).toEqual([groups, expected]);
      const { status } = await app.as({ key }).get(`/accounts/${acme.id}/members`);
      expect([groups, status]).toEqual([groups, expected === null ? 404 : 200]);
    }
  });

  it('change neither a membership that a person gave, nor the last owner', async () => {
    const { id } = await signedUp({ groups: ['devs'] });
    await app.as(app.operator).put(`/accounts/${acme.id}/members/${id}`, { role: 'guest' }).expect(200);
    for (const groups of [['CN=admins,OU=staff'], []]) {
      employee.groups = groups;
      await check();
      expect((await employed()).role).toBe('guest');
    }
    await signedUp({ groups: ['CN=admins,OU=staff'] });
    await app.database.query('DELETE FROM memberships WHERE account_id = $1', [app.operator.id]);
    for (const groups of [['devs'], []]) {
      employee.groups = groups;
      await check();
      expect((await employed()).role).toBe('owner');
    }
    await join(app.operator.id, 'owner');
  });
});

describe('a person who leaves', () => {
  it('has no session, key and client authorization after two rejected checks, until the next sign-in', async () => {
    const { name, id, browser } = await signedUp();
    const key = await keyOf(id);
    const [grant] = await app.database.query<[{ id: string }]>(
      `WITH n AS (INSERT INTO namespaces (name, account_id) VALUES ($2, $1) RETURNING id)
       INSERT INTO as_grants (id, account_id, client_id, client_name, redirect_key, redirects_hash, resource, namespace_id, expires_at, address)
       SELECT gen_random_uuid(), $1, 'app', 'app', 'app', '', $2, id, now() + interval '1 day', '127.0.0.1' FROM n RETURNING id`,
      [id, name],
    );
    const works = async () => {
      const { size } = await app.get(ApiKeysService).liveAmong([grant.id]);
      return [(await app.as({ key }).get('/accounts/me')).status, await accountAt(browser), size];
    };
    const reject = async () => (company.refuseTokens('invalid_grant'), check());
    await reject();
    company.down();
    await check();
    company.up();
    await check();
    await reject();
    expect(await works()).toEqual([200, name, 1]);
    await reject();
    await until(async () => (await works()).join() === '401,,0', 'the key is refused');
    const { body } = await app.as(app.operator).get(`/accounts?q=${name}`).expect(200);
    const suspended = expect.stringMatching(
      /^Since .* UTC: Example Staff rejected two checks in a row\.$/,
    ) as unknown as string;
    expect(body.accounts).toMatchObject([{ signIn: 'identity', suspended }]);
    // The refresh token is not used again.
    const { refreshes } = company;
    await check();
    expect(company.refreshes).toBe(refreshes);

    await signIn(app, {}, browser);
    expect(await works()).toEqual([200, name, 1]);
    expect(await recorded(id)).toEqual([
      { action: 'identity.created', own: true, reason: null },
      { action: 'account.changed', own: null, reason: 'Example Staff rejected two checks in a row.' },
      { action: 'account.changed', own: true, reason: null },
    ]);
  });

  it('keeps the keys of an operator', async () => {
    const { name, id, browser } = await signedUp();
    await app.database.query('UPDATE accounts SET is_operator = true WHERE id = $1', [id]);
    const key = await keyOf(id);
    company.refuseTokens('invalid_grant', 2);
    await check();
    await check();
    expect(await accountAt(browser)).toBeUndefined();
    await app.as({ key }).get('/accounts/me').expect(200);
    expect(await accountAt((await logIn({ key })).browser)).toBe(name);
  });

  it('is checked once by two processes, and again after one that stopped in the middle', async () => {
    await signedUp({ groups: [] });
    const other = await app.sibling(settings);
    const { refreshes } = company;
    await check(app, other);
    expect(company.refreshes).toBe(refreshes + 1);
    company.delayTokens();
    const checking = check(other);
    await until(() => company.refreshes === refreshes + 1, 'the check waits for the issuer');
    company.releaseTokens('cut');
    await checking;
    await other.close();
    const state = async () => {
      const sql = `SELECT failed_at IS NOT NULL AS failed, a.credentials_suspended_at IS NOT NULL AS suspended
                     FROM identities i JOIN accounts a ON a.id = i.account_id WHERE subject = $1`;
      const [{ failed, suspended }] = await app.database.query<[Record<string, boolean>]>(sql, [employee.sub]);
      return [failed, suspended];
    };
    company.refuseTokens('invalid_grant');
    await check();
    await check();
    expect(await state()).toEqual([false, false]);
    // The issuer has rotated the token, and the new one was lost: the old one fails twice.
    company.holdTokens(1);
    const rotating = check();
    await until(() => company.held === 1, 'the issuer has rotated the token');
    company.releaseTokens('cut');
    await rotating;
    expect(await state()).toEqual([false, false]);
    await check();
    expect(await state()).toEqual([true, false]);
    await check();
    expect(await state()).toEqual([true, true]);
    await signIn();
    expect(await state()).toEqual([false, false]);
  });
});

describe('a response of the issuer', () => {
  let hostile: TestApp;
  beforeAll(async () => {
    hostile = await app.sibling({ ...settings, OIDC_ISSUER: small.issuer });
  });
  afterAll(() => hostile.close());

  /** Begins a sign-in, and returns the claims and the callback of an honest response. */
  async function begin(browser = browserAt(hostile)) {
    const { url } = await begun(browser);
    const { state, nonce, ...sent } = Object.fromEntries(new URL(url).searchParams);
    const seconds = Math.floor(Date.now() / 1000);
    const claims = {
      ...{ iss: small.issuer, sub: uniqueName('sub'), aud: 'slipway', nonce, iat: seconds, exp: seconds + 60 },
      preferred_username: uniqueName('berta'),
    };
    const code = uniqueName('code');
    return { browser, code, sent, claims, callback: `${HOME}/login/oidc/callback?code=${code}&state=${state}` };
  }
  type Claims = Awaited<ReturnType<typeof begin>>['claims'] & { azp?: string };

  it('is requested with PKCE', async () => {
    const { sent } = await begin();
    expect(sent).toMatchObject({
      ...{ response_type: 'code', code_challenge_method: 'S256', scope: 'openid profile email' },
      ...{ client_id: 'slipway', redirect_uri: `${HOME}/login/oidc/callback` },
    });
  });

  const honest = (claims: Claims) => small.sign(claims);
  it.each<[status: number, name: string, idToken: (claims: Claims) => string, suffix?: string]>([
    [200, 'an honest response', honest],
    [
      200,
      'a clock that is 40 s behind',
      (claims) => small.sign({ ...claims, exp: claims.iat - 40, iat: claims.iat - 100 }),
    ],
    [200, 'a rotated key', (claims) => (small.rotate(), small.sign(claims))],
    [
      200,
      'two audiences and our "azp"',
      (claims) => small.sign({ ...claims, aud: ['other', 'slipway'], azp: 'slipway' }),
    ],
    [403, 'a token that expired 2 minutes ago', (claims) => small.sign({ ...claims, exp: claims.iat - 120 })],
    [403, 'another nonce', (claims) => small.sign({ ...claims, nonce: 'other' })],
    [403, 'no nonce', ({ nonce: _, ...claims }) => small.sign(claims)],
    [403, 'another audience', (claims) => small.sign({ ...claims, aud: 'other' })],
    [403, 'two audiences without "azp"', (claims) => small.sign({ ...claims, aud: ['other', 'slipway'] })],
    [403, 'another "azp"', (claims) => small.sign({ ...claims, azp: 'other' })],
    [403, 'another issuer in the token', (claims) => small.sign({ ...claims, iss: company.issuer })],
    [403, 'no signature', (claims) => small.sign(claims, 'none')],
    [403, 'a signature with the secret of the client', (claims) => small.sign(claims, 'secret')],
    [403, 'a signature with a foreign key', (claims) => small.sign(claims, 'foreign key')],
    [403, 'another issuer in the response', honest, `&iss=${encodeURIComponent(company.issuer)}`],
    [403, 'two codes', honest, '&code=other'],
  ])('leads to %i with %s', async (status, _, idToken, suffix = '') => {
    const { browser, code, claims, callback } = await begin();
    small.idTokens.set(code, idToken(claims));
    expect((await browser.open(callback + suffix)).status).toBe(status);
    const rows = await app.database.query('SELECT 1 FROM identities WHERE subject = $1', [claims.sub]);
    expect(rows).toHaveLength(status === 200 ? 1 : 0);
  });

  it('signs in once, in the browser that asked for it, with its own state', async () => {
    const { browser, code, claims, callback } = await begin();
    small.idTokens.set(code, small.sign(claims));
    const stranger = await begin();
    // Signed in already, so that the response of somebody else would replace the account.
    const { browser: victim, name } = await withPassword();
    for (const [other, url] of [
      [browserAt(hostile), callback],
      [stranger.browser, callback],
      [victim, callback],
      [browser, callback.replace(/state=.*/, 'state=other')],
      [browser, callback.replace(/&state=.*/, '')],
    ] as const) {
      const shown = await other.open(url);
      expect([shown.status, shown.html.includes('no longer pending')]).toEqual([403, true]);
    }
    expect(await accountAt(victim)).toBe(name);
    expect((await browser.open(callback)).status).toBe(200);
    small.idTokens.set(code, small.sign(claims));
    expect((await browser.open(callback)).status).toBe(403);
    const late = await begin();
    small.idTokens.set(late.code, small.sign(late.claims));
    const eleventhMinute = Date.now() + 660_000;
    jest.spyOn(Date, 'now').mockImplementation(() => eleventhMinute);
    const { html } = await late.browser.open(late.callback);
    jest.restoreAllMocks();
    expect(html).toContain('no longer pending');
  });

  it('leads to checks only with "offline_access", and a check ignores the tokens of another person', async () => {
    const scoped = { ...settings, OIDC_ISSUER: small.issuer, OIDC_SCOPES: 'openid offline_access' };
    const offline = await app.sibling(scoped);
    for (const [at, isKept] of [
      [hostile, false],
      [offline, true],
    ] as const) {
      const { browser, code, claims, callback } = await begin(browserAt(at));
      small.idTokens.set(code, small.sign(claims));
      expect((await browser.open(callback)).status).toBe(200);
      const foreign = { ...claims, sub: 'other', groups: ['ops'] };
      small.idTokens.set(`refresh ${code}`, small.sign(foreign));
      employee = { sub: claims.sub };
      await check(at);
      const [row] = await app.database.query(
        `SELECT refresh_token IS NOT NULL AS kept, failed_at, m.role FROM identities LEFT JOIN memberships m USING (account_id) WHERE subject = $1`,
        [claims.sub],
      );
      expect(row).toEqual({ kept: isKept, failed_at: null, role: null });
      expect(small.idTokens.delete(`refresh ${code}`)).toBe(!isKept);
    }
    await offline.close();
  });

  it('is refused if another issuer sent it, before its code is sent anywhere', async () => {
    newEmployee();
    const browser = browserAt(hostile);
    const { url } = await begun(browser);
    // The issuer of the sign-in leads the person on to the honest one, whose code it would receive.
    const { url: callback } = await browser.open(url.replace(small.issuer, company.issuer), isCallback);
    expect(new URL(callback).searchParams.get('iss')).toBe(company.issuer);
    const { codes } = small;
    expect((await browser.open(callback)).status).toBe(403);
    expect([small.codes, await accountAt(browser)]).toEqual([codes, undefined]);
  });

  it('must name the issuer where the issuer announces that it does', async () => {
    newEmployee();
    const browser = browserAt(app);
    const { url } = await begun(browser, isCallback);
    expect((await browser.open(url.replace(/&iss=[^&]*/, ''))).status).toBe(403);
  });
});

describe('each address', () => {
  it('begins and fails only so many sign-ins', async () => {
    const strict = await app.sibling({ ...settings, AUTH_FAILURES_MAX: '3' });
    const browser = browserAt(strict);
    const statuses: number[] = [];
    const fail = async () => statuses.push((await browser.open(`${HOME}/login/oidc/callback?state=x`)).status);
    await fail();
    for (let times = 0; times < 4; times += 1) {
      newEmployee();
      expect((await signIn(strict)).url).toBe(`${HOME}/ui/`);
    }
    for (let times = 0; times < 3; times += 1) await fail();
    expect(statuses).toEqual([403, 403, 403, 429]);
    newEmployee();
    expect((await signIn(strict)).status).toBe(429);

    // A minute can end in between.
    let [count, shown] = [1, await begun(browser)];
    for (; shown.status === 303 && count < 300; count += 1) shown = await begun(browser);
    expect([shown.status, count > 100, shown.headers['retry-after']]).toEqual([429, true, expect.anything()]);
    await strict.close();
  });
});
