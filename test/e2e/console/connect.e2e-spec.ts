import { beforeAll, describe, expect, it } from '@jest/globals';
import { clients } from '../../../src/extensions/console-pages/clients/clients.js';
import { testAccount, testApp, uniqueName } from '../../support/app.js';
import { releaseServer } from '../../support/database/server-rows.js';
import { createConnection, createServer } from '../../support/factories.js';
import { signedInBrowser, type BrowserSession } from '../../support/people/browser-session.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
const guest = testAccount(app);
const stranger = testAccount(app);
let browsers: Record<'owner' | 'guest' | 'stranger', BrowserSession>;

const SECRETS = ['nowhere.invalid', '4711', 'x-canary', 'canary-value', 'canary-metadata', 'canary-client'];

/** A connection to a host that does not answer, with what a guest must not see. */
const made = {
  mcpUrl: 'http://nowhere.invalid:4711/mcp',
  headers: { 'x-canary': 'canary-value' },
  metadata: { note: 'canary-metadata' },
};

beforeAll(async () => {
  const open = (account: typeof owner) => signedInBrowser(app, account);
  browsers = { owner: await open(owner), guest: await open(guest), stranger: await open(stranger) };
});

/** The lines of the inside of a page, without the token of its forms. */
const linesOf = (text: string) =>
  (/<main[^]*<\/main>/.exec(text)?.[0] ?? '').replace(/value="[\w-]{30,}"/g, '').split('\n');

describe('the page of an address', () => {
  verifies('console:connect', 'has the address for every client, and no key in a link', async () => {
    const { namespace, connectionId } = await createConnection(app, owner, made);
    const server = await createServer(app, owner, { namespace });
    await releaseServer(app, server);
    for (const [page, path] of [
      [`/ui/c/${namespace}/${connectionId}`, `/connect/${namespace}/${connectionId}/mcp`],
      [`/ui/n/${namespace}`, `/connect/${namespace}/.mcp`],
      [`/ui/s/${server.replace('/', '--')}`, `/run/${server.replace('/', '--')}`],
    ]) {
      // A browser that opens the MCP address is led to the page.
      const led = await browsers.owner.get(path);
      expect(new URL(String(led.headers.location), app.url + path).pathname).toBe(page);
      for (const { id, isHosted } of clients) {
        const { status, text } = await browsers.owner.get(`${page}?client=${id}`);
        expect([page, status, text.includes(`>${app.url}${path}</pre>`)]).toEqual([page, 200, true]);
        expect(text).toMatch(new RegExp(`client=${id}#connect" aria-current="page"`));
        // Only this machine reaches the service of the tests.
        expect([id, text.includes('cannot be used')]).toEqual([id, isHosted === true]);
        const snippet = /<pre id="snippet"[^>]*>([^]*?)<\/pre>/.exec(text)?.[1];
        if (snippet !== undefined) expect(snippet).toContain(app.url + path);
        expect(text).not.toContain(owner.key);
        for (const [, link = ''] of text.matchAll(/href="((?:cursor|vscode):[^"]+)"/g)) {
          const config = /config=([^&]+)/.exec(link)?.[1] ?? '';
          const words = decodeURIComponent(link) + Buffer.from(decodeURIComponent(config), 'base64').toString();
          expect(words).toContain(`"url":"${app.url}${path}"`);
          expect(words).not.toMatch(/header|key|bearer/i);
        }
      }
    }
  });

  verifies('console:connect', 'remembers the client that was chosen last', async () => {
    const { namespace, connectionId } = await createConnection(app, owner, made);
    const browser = await signedInBrowser(app, owner);
    const current = async (page: string) =>
      /client=([\w-]+)#connect" aria-current="page"/.exec((await browser.get(page)).text)?.[1];
    const page = `/ui/c/${namespace}/${connectionId}`;
    expect(await current(page)).toBe('claude-code');
    await browser.get(`${page}?client=nothing;a=b`);
    expect(await current(`/ui/n/${namespace}`)).toBe('claude-code');
    await browser.get(`${page}?client=codex`);
    expect([await current(page), await current(`/ui/n/${namespace}`)]).toEqual(['codex', 'codex']);
    expect(await current(`${page}?client=cursor`)).toBe('cursor');
  });

  verifies(
    'console:guest',
    'shows a guest no address, host, port, text, header or metadata of what is behind',
    async () => {
      const { namespace, connectionId, path } = await createConnection(app, owner, made);
      const page = `/ui/c/${namespace}/${connectionId}`;
      for (const { cookies } of [browsers.owner, browsers.guest]) cookies.delete('slipway-client');
      const hidden = await browsers.guest.get(page);
      for (const { id } of [guest, stranger])
        await app.as(owner).post(`${path}/grants`, { account: id, level: 'call' });
      await app.as(stranger).post(`${path}/.tools/forecast`, {}).set('user-agent', 'canary-client');
      for (const query of ['', '?client=mcp-remote', '?client=cursor']) {
        const [own, seen] = [await browsers.owner.get(page + query), await browsers.guest.get(page + query)];
        expect([hidden.status, own.status, seen.status]).toEqual([404, 200, 200]);
        const ownLines = linesOf(own.text);
        const others = linesOf(seen.text).filter((line) => !ownLines.includes(line));
        // The owner's page says more of the fault; the guest's has other words for what one may do, and no calls of its own.
        expect(others).toEqual([
          expect.stringContaining('<div class="head">'),
          expect.stringContaining('<nav class="tabs"'),
          expect.stringContaining('No calls yet.'),
          expect.stringContaining('You may call its tools.'),
        ]);
        expect(own.text).toContain('nowhere.invalid');
        expect(seen.text).toMatch(/Does not work/);
        for (const secret of [...SECRETS, stranger.name, stranger.id]) expect(seen.text).not.toContain(secret);
      }
      const home = (await browsers.guest.get('/ui/')).text;
      expect(home).toMatch(new RegExp(`${connectionId}[^]*Does not work[^]*Not yet`));
      for (const secret of [...SECRETS, stranger.name, stranger.id]) expect(home).not.toContain(secret);
    },
  );

  verifies('console:missing', 'is one and the same for what is missing and what is not to be known', async () => {
    const { namespace, connectionId } = await createConnection(app, owner, made);
    const server = await createServer(app, owner, { namespace, visibility: 'private' });
    await releaseServer(app, server);
    for (const [there, missing] of [
      [`/ui/c/${namespace}/${connectionId}`, `/ui/c/${namespace}/${uniqueName('none')}`],
      [`/ui/c/${namespace}/${connectionId}`, `/ui/c/${uniqueName('none')}/${connectionId}`],
      [`/ui/n/${namespace}`, `/ui/n/${uniqueName('none')}`],
      [`/ui/s/${server.replace('/', '--')}`, `/ui/s/${uniqueName('none')}`],
    ]) {
      expect((await browsers.owner.get(there)).status).toBe(200);
      const [foreign, none] = [await browsers.stranger.get(there), await browsers.stranger.get(missing)];
      expect([there, foreign.status, none.status]).toEqual([there, 404, 404]);
      expect(linesOf(foreign.text)).toEqual(linesOf(none.text));
      expect(foreign.text).toContain('<nav class="side" aria-label="Pages">');
    }
  });

  it('shows names as text', async () => {
    const hostile = `<script>alert(1)</script>"'\u202e`;
    const { namespace, connectionId } = await createConnection(app, owner, {
      ...made,
      name: hostile.replace('\u202e', ''),
    });
    const server = await createServer(app, owner, { namespace });
    await releaseServer(app, server, { tools: [{ name: hostile, description: hostile }] });
    const name = hostile + 'x'.repeat(200);
    await app.database.query('UPDATE servers SET display_name = $1, description = $1 WHERE display_name = $2', [
      name,
      server.split('/')[1],
    ]);
    for (const page of [`/ui/c/${namespace}/${connectionId}`, `/ui/s/${server.replace('/', '--')}`]) {
      const { status, text } = await browsers.owner.get(page);
      expect([status, text.match(/<script/g)?.length, text.includes('\u202e')]).toEqual([200, 1, false]);
      expect(text).toContain('<h1>&lt;script&gt;alert(1)');
    }
  });
});
