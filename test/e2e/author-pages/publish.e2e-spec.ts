import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { testAccount, testApp, uniqueName } from '../../support/app.js';
import { createNamespace, createServer } from '../../support/factories.js';
import { type BrowserSession, openBrowser, signedInBrowser } from '../../support/people/browser-session.js';
import { type FileForm, submitFiles } from '../../support/people/file-form.js';
import { bundleOf } from '../../support/releases/bundles.js';
import { releaseIn } from '../../support/releases/releases.js';
import { startGuarded } from '../../support/special-upstreams/guarded-upstream.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';

const app = testApp();
const owner = testAccount(app);
const stranger = testAccount(app);

const PAGE = '/ui/publish';
const HOSTILE = '"><script>alert(1)</script>\u202e';

let browser: BrowserSession;
let other: BrowserSession;
let upstream: Upstream;
let namespace: string;

beforeAll(async () => {
  upstream = await startUpstream();
  namespace = await createNamespace(app, owner);
  browser = await signedInBrowser(app, owner);
  other = await signedInBrowser(app, stranger);
});
afterAll(() => upstream.close());

const send = (source: string, form: Partial<FileForm>, as = browser) =>
  submitFiles(app, as, `${PAGE}/${source}`, { page: `${PAGE}?source=${source}`, ...form });

/** The address of the release to which a form leads. */
function releaseOf({ headers, text }: { headers: Record<string, string>; text: string }) {
  const [, slug, id] = /ui\/s\/([^/]+)\/releases\/([^/?]+)$/.exec(headers.location ?? '') ?? [];
  if (id === undefined) throw new Error(text);
  return { name: slug.replace('--', '/'), slug, id, page: `/ui/s/${slug}/releases/${id}` };
}

describe('the page Publish', () => {
  it('publishes a server by its URL and shows its stages, log and tools', async () => {
    const name = uniqueName('url');
    const fields = {
      namespace,
      name,
      url: upstream.url,
      visibility: 'restricted',
      configSchema: '',
      note: 'First one',
    };
    const release = releaseOf(await browser.submit(`${PAGE}/url`, fields, `${PAGE}?source=url`));
    await releaseIn(app, owner, release.name, release.id, 'SUCCESS');
    const { text } = await browser.get(release.page);
    expect(text).toMatch(/<h1>Release 1<\/h1><span class="badge ok">Live<\/span>/);
    expect(text.match(/<li class="ok"><b>/g)).toHaveLength(4);
    expect(text).toContain('<code>echo</code>');
    expect(text).not.toContain('http-equiv="refresh"');
    const { body } = await app.as(owner).get(`/servers/${namespace}%2F${name}`);
    expect(body).toMatchObject({ visibility: 'restricted' });
    const list = await browser.get(`/ui/s/${release.slug}/releases`);
    expect(list.text).toContain('First one');
    // The next release begins with the URL of this one.
    expect((await browser.get(`${PAGE}?server=${release.name}&source=url`)).text).toContain(`value="${upstream.url}"`);
  });

  it('creates the first namespace of an account on the way', async () => {
    const newcomer = await app.account();
    const session = await signedInBrowser(app, newcomer);
    const fields = { name: 'weather', url: upstream.url };
    const release = releaseOf(await session.submit(`${PAGE}/url`, fields, PAGE));
    await releaseIn(app, newcomer, release.name, release.id, 'SUCCESS');
  });

  it('publishes a file: a bundle, or a module whose failure is shown with its cause and remedy', async () => {
    const bundle = await send('file', {
      fields: { namespace, name: uniqueName('b') },
      files: { file: await bundleOf() },
    });
    const published = releaseOf(bundle);
    await releaseIn(app, owner, published.name, published.id, 'SUCCESS');
    const module = Buffer.from('throw new Error("WEATHER_DB is not reachable"); export default () => {};');
    const failing = releaseOf(
      await send('file', { fields: { namespace, name: uniqueName('m') }, files: { file: module } }),
    );
    await releaseIn(app, owner, failing.name, failing.id, 'FAILURE');
    const { text } = await browser.get(failing.page);
    expect(text).toContain('<span class="badge bad">Failed</span>');
    expect(text).toMatch(/role="alert"><div><p><b>[^<]*WEATHER_DB is not reachable/);
    expect(text).toContain('Correct the module');
    expect(text).toContain(`ui/publish?server=${encodeURIComponent(failing.name)}&amp;source=file`);
    // It never succeeded: its author finds it on the first page and on its own.
    expect((await browser.get('/ui/')).text).toMatch(new RegExp(`Needs you.+${failing.name}.+See why`, 's'));
    expect((await browser.get(`/ui/s/${failing.slug}`)).text).toMatch(/Release 1<\/a>: Failed.+WEATHER_DB/s);
    expect((await other.get('/ui/')).text).not.toContain(failing.name);
  });

  it('publishes pasted code', async () => {
    const code = /<textarea[^>]*name="code"[^>]*>\n([^<]+)/.exec((await browser.get(`${PAGE}?source=code`)).text)?.[1];
    const source = code?.replaceAll('&#39;', "'").replaceAll('&gt;', '>');
    const fields = { namespace, name: uniqueName('code'), code: source ?? '' };
    const release = releaseOf(await send('code', { fields }));
    await releaseIn(app, owner, release.name, release.id, 'SUCCESS');
    expect((await browser.get(release.page)).text).toContain('<code>forecast</code>');
  });

  it('is shown again with what was typed and the reason at its field, and has created nothing', async () => {
    const name = uniqueName('wrong');
    const code = `export default (${HOSTILE}`;
    const wrong: [source: string, fields: Record<string, string>, field: string, text: string][] = [
      ['url', { url: 'no URL' }, 'url', 'URL'],
      [
        'url',
        { url: upstream.url, configSchema: '{ "type": "object"' },
        'configSchema',
        'Configuration schema is not valid JSON',
      ],
      ['url', { url: upstream.url, configSchema: '{ "type": "array" }' }, 'configSchema', 'object'],
      ['code', { code }, 'code', 'cannot be compiled'],
      ['code', { code: ' ' }, 'code', 'must not be empty'],
      ['file', {}, 'file', 'must be chosen'],
    ];
    for (const [source, fields, field, text] of wrong) {
      const all = { namespace, name, ...fields };
      const answer =
        source === 'url' ? await browser.submit(`${PAGE}/url`, all, PAGE) : await send(source, { fields: all });
      expect([source, answer.status]).toEqual([source, 400]);
      const [, fault] = new RegExp(`-${field}-fault" class="error" role="alert">([^<]+)<`).exec(answer.text) ?? [];
      expect(fault).toContain(text);
      expect(answer.text).toContain(`value="${name}"`);
      expect(answer.text).not.toContain('<script>alert');
    }
    const short = await browser.submit(`${PAGE}/url`, { namespace, name: HOSTILE, url: upstream.url }, PAGE);
    expect([short.status, short.text.includes('<script>alert')]).toEqual([400, false]);
    expect((await app.as(owner).get(`/servers/${namespace}%2F${name}`)).status).toBe(404);
  });

  it('publishes nothing into a namespace or server of others, and shows nothing of them', async () => {
    const hidden = await createServer(app, owner, { visibility: 'private' });
    const visible = await createServer(app, owner, { visibility: 'public' });
    const foreign: Record<string, string>[] = [{ namespace, name: 'mine' }, { server: hidden }, { server: visible }];
    for (const fields of foreign) {
      const { status } = await other.submit(`${PAGE}/url`, { url: upstream.url, ...fields }, PAGE);
      expect([fields, status]).toEqual([fields, expect.any(Number)]);
      expect([403, 404]).toContain(status);
    }
    for (const name of [hidden, visible]) {
      const { text } = await other.get(`${PAGE}?server=${name}`);
      expect(text).not.toContain(name);
      expect((await app.as(owner).get(`/servers/${encodeURIComponent(name)}/releases`)).body).toMatchObject({
        releases: [],
      });
    }
  });

  it('takes files only of a signed-in person, from a page of this service', async () => {
    const name = uniqueName('foreign');
    const form = { fields: { namespace, name }, files: { file: await bundleOf() } };
    expect((await send('file', { ...form, token: 'wrong' })).status).toBe(403);
    expect((await send('file', { ...form, headers: { 'sec-fetch-site': 'cross-site' } })).status).toBe(403);
    const out = await send('file', { ...form, token: 'none' }, openBrowser(app));
    expect([out.status, out.headers.location]).toEqual([303, expect.stringContaining('login')]);
    const large = await send('code', { fields: { namespace, name, code: 'x'.repeat(131 * 1024) } });
    expect([large.status, large.text]).toEqual([400, expect.stringContaining('larger than')]);
    expect((await app.as(owner).get(`/servers/${namespace}%2F${name}`)).status).toBe(404);
  });
});

describe('the page of a release', () => {
  it('follows a release that runs, asks for an authorization, and goes on by itself', async () => {
    const guarded = await startGuarded({ wants: 'oauth' });
    try {
      const fields = { namespace, name: uniqueName('guarded'), url: guarded.url };
      const { name, id, page } = releaseOf(await browser.submit(`${PAGE}/url`, fields, PAGE));
      await releaseIn(app, owner, name, id, 'AUTH_REQUIRED');
      const { text, headers } = await browser.get(page);
      expect(text).toContain('<noscript><meta http-equiv="refresh" content="2"></noscript>');
      expect(text).toMatch(/<main[^>]* data-live>/);
      expect(headers['content-security-policy']).toContain("connect-src 'self'");
      expect(text).toMatch(/<a class="button primary" href="[^"]*\/setup\/[^"]+">Authorize<\/a>/);
      // No form of the page is sent while it is read again.
      expect(text.slice(text.indexOf('<main'))).not.toContain('<form');
      const paused = (await browser.get(`${page}?follow=0`)).text;
      expect(paused).not.toContain('http-equiv="refresh"');
      guarded.unlock();
    } finally {
      await guarded.close();
    }
  });

  it('rolls back to an earlier release', async () => {
    const name = await createServer(app, owner);
    const slug = name.replace('/', '--');
    const publish = async () => {
      const { id } = releaseOf(
        await browser.submit(`${PAGE}/url`, { server: name, url: upstream.url }, `${PAGE}?server=${name}`),
      );
      await releaseIn(app, owner, name, id, 'SUCCESS');
      return id;
    };
    const first = await publish();
    await publish();
    const path = `/ui/s/${slug}/releases/roll-back`;
    const refused = await other.post(path, { id: first });
    expect(refused.status).toBe(403);
    const { status, headers } = await browser.submit(path, { id: first }, `/ui/s/${slug}/releases`);
    expect([status, headers.location]).toEqual([303, expect.stringContaining(`releases/${first}?done=rolled-back`)]);
    expect((await browser.get(`/ui/s/${slug}/releases/${first}?done=rolled-back`)).text).toContain(
      'reach this release again',
    );
    await releaseIn(app, owner, name, first, 'SUCCESS');
  });

  it('is there for nobody else', async () => {
    const name = await createServer(app, owner);
    const slug = name.replace('/', '--');
    const { id, page } = releaseOf(
      await browser.submit(`${PAGE}/url`, { server: name, url: upstream.url }, `${PAGE}?server=${name}`),
    );
    await releaseIn(app, owner, name, id, 'SUCCESS');
    for (const path of [page, `/ui/s/${slug}/releases`, '/ui/s/nothing/releases']) {
      expect([path, (await other.get(path)).status]).toEqual([path, 404]);
      expect((await openBrowser(app).get(path)).headers.location).toContain('login');
    }
    // Its page is for everybody, without the tabs of its author.
    const { text } = await other.get(`/ui/s/${slug}`);
    expect(text).not.toContain(`s/${slug}/releases`);
  });
});
