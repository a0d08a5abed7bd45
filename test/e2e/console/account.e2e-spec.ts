import { describe, expect } from '@jest/globals';
import { testApp, uniqueName } from '../../support/app.js';
import { accountWithPassword, openBrowser, personAt, signedInBrowser } from '../../support/people/browser-session.js';
import { shownFault } from '../../support/people/form-faults.js';
import { verifies } from '../../support/verifies.js';

const PASSWORD = 'correct horse battery';
const HOSTILE = `<script>alert(1)</script>"'`;

const app = testApp();
const keyIn = (text: string) => /<pre id="new-key"[^>]*>([^<]+)<\/pre>/.exec(text)?.[1] ?? '';
const namedIn = async (who: { id: string; key: string }, name: string) => {
  const { body } = await app.as(who).get('/accounts/me/api-keys');
  return (body.apiKeys as { id: string; name: string; expiresAt: string | null; scopes: string[] | null }[]).filter(
    (key) => key.name === name,
  );
};

describe('/me', () => {
  verifies(
    'account:keys',
    'creates a key for 90 days with the ticked rights, shows it once, rotates and revokes it',
    async () => {
      const account = await accountWithPassword(app, PASSWORD);
      const namespace = uniqueName('space');
      await app.as(account).put(`/namespaces/${namespace}`);
      const browser = openBrowser(app);
      await browser.submit('/login', { name: account.name, password: PASSWORD });
      const page = await browser.get('/me');
      expect(page.text).toContain(`value="call:${namespace}"`);
      expect(page.text).toContain('name="days" type="number" min="1" max="3650" required value="90"');
      const fields = { form: 'create', name: HOSTILE, days: '90', scope: `read:${namespace}` };
      const made = await browser.submit('/me/keys', fields, '/me');
      expect([made.status, made.headers.location]).toEqual([303, '../../me']);
      const shown = await browser.get('/me');
      const key = keyIn(shown.text);
      expect([key, String(made.headers['set-cookie'])]).toEqual([
        expect.stringMatching(/^slipway_/),
        expect.not.stringContaining('slipway_'),
      ]);
      expect(shown.text).not.toContain('<script>alert');
      expect((await browser.get('/me')).text).not.toContain(key);
      expect((await app.as({ key }).get(`/connect/${namespace}`)).status).toBe(200);
      expect((await app.as({ key }).put(`/namespaces/${uniqueName('no')}`)).status).toBe(403);
      const [stored] = await namedIn(account, HOSTILE);
      expect(stored.scopes).toEqual([`read:${namespace}`]);
      expect((Date.parse(String(stored.expiresAt)) - Date.now()) / 86_400_000).toBeCloseTo(90, 1);
      const rotated = await browser.submit('/me/keys', { form: 'rotate', id: stored.id }, '/me');
      expect(rotated.status).toBe(303);
      const second = keyIn((await browser.get('/me')).text);
      expect([(await app.as({ key }).get('/accounts/me')).status, second === key]).toEqual([401, false]);
      expect((await app.as({ key: second }).get(`/connect/${namespace}`)).status).toBe(200);
      const newest = (await namedIn(account, HOSTILE)).find(({ id }) => id !== stored.id);
      expect(newest?.expiresAt).toBe(stored.expiresAt);
      const revoked = await browser.submit('/me/keys', { form: 'revoke', id: String(newest?.id) }, '/me');
      expect([revoked.status, revoked.headers.location]).toEqual([303, '../../me?saved=revoked']);
      expect((await app.as({ key: second }).get('/accounts/me')).status).toBe(401);
    },
  );

  verifies('account:faults', 'keeps what was typed, and touches no key or browser of another account', async () => {
    const [account, other] = [await app.account(), await app.account()];
    const browser = await signedInBrowser(app, account);
    for (const wrong of [{ name: '' }, { days: '0' }, { days: 'x' }, { scope: 'fly' }]) {
      const fields = { form: 'create', name: HOSTILE, days: '30', scope: 'read', ...wrong };
      const { status, text } = await browser.submit('/me/keys', fields, '/me');
      expect([wrong, status, shownFault(text).focused]).toEqual([wrong, 400, Object.keys(wrong)]);
      expect(text).toContain(`name="days" type="number" min="1" max="3650" required value="${fields.days}"`);
    }
    const { body } = await app.as(other).get('/accounts/me/api-keys');
    for (const word of ['rotate', 'revoke']) {
      const { status } = await browser.submit('/me/keys', { form: word, id: body.apiKeys[0].id as string }, '/me');
      expect([word, status]).toEqual([word, 404]);
    }
    const foreign = await signedInBrowser(app, other);
    const id = (await personAt(app, foreign))?.keyId ?? '';
    await browser.submit('/me/browsers', { browser: id }, '/me');
    expect(await personAt(app, foreign)).not.toBeNull();
    const second = await signedInBrowser(app, account);
    const own = (await personAt(app, second))?.keyId ?? '';
    expect((await browser.get('/me')).text).toContain(`name="browser" value="${own}"`);
    await browser.submit('/me/browsers', { browser: own }, '/me');
    expect([await personAt(app, second), await personAt(app, browser)]).toEqual([null, expect.anything()]);
  });

  verifies('account:zone', 'shows times in the zone of the account, with its name', async () => {
    const account = await app.account();
    const browser = await signedInBrowser(app, account);
    const timesOf = async () => [
      ...(await browser.get('/me')).text.matchAll(/<time datetime="[^"]+">([^<]+)<\/time>/g),
    ];
    expect((await timesOf())[0][1]).toMatch(/ UTC$/);
    const wrong = await browser.submit('/me/zone', { timeZone: 'Mars/Base' }, '/me');
    expect([wrong.status, wrong.text]).toEqual([400, expect.stringContaining('must be a zone such as Europe/Berlin')]);
    const saved = await browser.submit('/me/zone', { timeZone: 'Asia/Kolkata' }, '/me');
    expect([saved.status, saved.headers.location]).toEqual([303, '../me?saved=zone']);
    const [[tag, shown]] = await timesOf();
    const [, iso = ''] = /"([^"]+)"/.exec(tag) ?? [];
    const minutes = new Date(Date.parse(iso) + 5.5 * 3_600_000).toISOString().slice(11, 16);
    expect(shown).toContain(`${minutes} GMT+5:30`);
    expect((await app.as(account).get('/accounts/me')).body.timeZone).toBe('Asia/Kolkata');
    const { body } = await app.as(account).put('/accounts/me/time-zone', { timeZone: null });
    expect(body.timeZone).toBeNull();
    expect((await app.as(account).put('/accounts/me/time-zone', { timeZone: 'x' })).status).toBe(400);
  });

  verifies('account:root-key', 'creates no key that outlives the key that the session began with', async () => {
    const account = await app.account();
    const expiresAt = new Date(Date.now() + 86_400_000).toISOString();
    const { body } = await app.as(account).post('/accounts/me/api-keys', { name: 'short', expiresAt });
    const browser = await signedInBrowser(app, { key: body.key as string });
    const make = (days: string) =>
      browser.submit('/me/keys', { form: 'create', name: 'long', days, scope: 'read' }, '/me');
    const { status, text } = await make('90');
    expect([status, text]).toEqual([400, expect.stringContaining('expiresAt must not be later than')]);
    await app.as(account).delete(`/accounts/me/api-keys/${body.id as string}`);
    expect((await make('90')).status).not.toBe(200);
    expect(await namedIn(account, 'long')).toEqual([]);
  });
});
