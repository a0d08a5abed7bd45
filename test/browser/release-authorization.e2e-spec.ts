import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from '@jest/globals';
import type { Browser, BrowserContext } from 'playwright-core';
import { startBrowser } from '../support/people/browser.js';
import { startApp, type TestAccount, type TestApp } from '../support/app.js';
import { startAuthorizationServer, type AuthorizationServer } from '../support/people/authorization-server.js';
import { createServer } from '../support/factories.js';
import { published, releaseIn, type ReleaseBody } from '../support/releases/releases.js';
import { pathOf } from '../support/database/server-rows.js';
import { freePort } from '../support/upstream/upstream-net.js';
import { startUpstream, type Upstream } from '../support/upstream/upstream.js';
import { longVerifies, verifies } from '../support/verifies.js';

/** A real browser on a busy machine takes its time. */
const SLOW_MS = 300_000;

let app: TestApp;
/** Another process of the same service. */
let sibling: TestApp;
let owner: TestAccount;
let upstream: Upstream;
let authorization: AuthorizationServer;
let browser: Browser;
let context: BrowserContext;

beforeAll(async () => {
  [upstream, authorization, browser] = await Promise.all([
    startUpstream(),
    startAuthorizationServer({ asks: true }),
    startBrowser(),
  ]);
  app = await startApp({ PORT: String(await freePort()) }, { releaseLeaseMs: 3_000 });
  // Links lead to the first one, wherever they are made.
  sibling = await app.sibling({ PORT: String(await freePort()), PUBLIC_URL: app.env.baseUrl });
  owner = await app.account();
}, SLOW_MS);

beforeEach(async () => {
  context = await browser.newContext();
});

afterEach(() => context.close(), SLOW_MS);

afterAll(async () => {
  await browser?.close();
  await Promise.all([upstream?.close(), authorization?.close()]);
}, SLOW_MS);

/** An event of a release's stream. */
interface StreamEvent {
  name: string;
  data: { status?: string; message?: string; logs?: { message: string }[] };
}

/** Follows a release at one process, until its stream ends. */
async function follow(at: TestApp, name: string, id: string): Promise<{ events: StreamEvent[]; ended: Promise<void> }> {
  const headers = { authorization: `Bearer ${owner.key}` };
  const response = await fetch(`${at.url}${pathOf(name, `/releases/${id}/stream`)}`, { headers });
  expect(response.status).toBe(200);
  const events: StreamEvent[] = [];
  const read = async () => {
    let rest = '';
    const decoder = new TextDecoder();
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      const texts = (rest + decoder.decode(chunk, { stream: true })).split('\n\n');
      rest = texts.pop() ?? '';
      for (const text of texts) {
        const [, event] = /^event: (.+)$/m.exec(text) ?? [];
        const [, data] = /^data: (.+)$/m.exec(text) ?? [];
        if (event !== undefined && data !== undefined) {
          events.push({ name: event, data: JSON.parse(data) as StreamEvent['data'] });
        }
      }
    }
  };
  return { events, ended: read() };
}

/** The newest link in the log of a release. */
function linkIn({ logs }: ReleaseBody): string {
  const [, link = ''] =
    /Authorize at (\S+) and the release continues automatically/.exec(
      logs.map((line) => line.message).findLast((text) => text.startsWith('Authorize at ')) ?? '',
    ) ?? [];
  expect(link).toMatch(new RegExp(`^${app.env.baseUrl}/setup/`));
  return link;
}

/** Authorizes as a publisher: opens the link, presses the button, signs in, and returns. */
async function authorizeAt(link: string, label: string): Promise<void> {
  const page = await context.newPage();
  await page.goto(link);
  expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe(`Connect ${label.split('/')[1]}`);
  await page.getByRole('button').click();
  expect(new URL(page.url()).origin).toBe(authorization.issuer);
  await page.getByRole('button', { name: 'Allow' }).click();
  await page.getByRole('heading', { name: 'Authorized' }).waitFor();
  expect(await page.getByRole('main').innerText()).toContain(label);
  await page.close();
}

/** The time in which somebody must authorize is over, as it is after an hour. */
async function endTime(id: string): Promise<void> {
  await app.database.query('UPDATE releases SET lease_until = now() WHERE id = $1', [id]);
}

async function toolsOf(name: string): Promise<string[]> {
  const { body } = await app.as(owner).get(pathOf(name));
  return (body as { tools: { name: string }[] }).tools.map((tool) => tool.name);
}

const external = (upstreamUrl: string) => ({ type: 'external', upstreamUrl });

describe('a release of a server behind OAuth', () => {
  verifies(
    'contract:release-authorization',
    'continues after its publisher authorized it, and its stream shows that',
    async () => {
      const guarded = await authorization.protect(upstream.url);
      const name = await createServer(app, owner);
      const id = await published(app, owner, name, external(guarded.url));
      const followed = await follow(sibling, name, id);
      const waiting = await releaseIn(app, owner, name, id, 'AUTH_REQUIRED');
      await authorizeAt(linkIn(waiting), name);
      const done = await releaseIn(app, owner, name, id, 'SUCCESS');
      expect(await toolsOf(name)).toEqual(expect.arrayContaining(['echo', 'repo.search']));

      await followed.ended;
      const { events } = followed;
      expect(events.at(-1)).toMatchObject({ name: 'complete', data: { status: 'SUCCESS' } });
      const statuses = events.flatMap(({ name: event, data }) => (event === 'status' ? [data.status] : []));
      expect(statuses).toEqual(expect.arrayContaining(['AUTH_REQUIRED', 'WORKING', 'SUCCESS']));
      const lines = events.flatMap(({ data: { logs = [], message } }) => [
        ...logs.map((line) => line.message),
        ...(message === undefined ? [] : [message]),
      ]);
      // The link is shown only while it works.
      const withoutLink = lines.map((line) => line.replace(/ at http\S+\/setup\/\S+/, ' at setupUrl of the release'));
      expect(withoutLink).toEqual(done.logs.map((line) => line.message));

      // The next release of this server needs nobody.
      const asked = authorization.seen.filter(({ endpoint }) => endpoint === 'authorize').length;
      const second = await published(app, owner, name, external(guarded.url));
      const release = await releaseIn(app, owner, name, second, ['SUCCESS', 'AUTH_REQUIRED', 'FAILURE']);
      expect(release.status).toBe('SUCCESS');
      expect(release.logs.map((line) => line.message)).not.toContain('auth_required');
      expect(authorization.seen.filter(({ endpoint }) => endpoint === 'authorize')).toHaveLength(asked);
    },
    SLOW_MS,
  );

  longVerifies(
    'contract:release-authorization',
    'needs its own authorization for another server, which may come late',
    async () => {
      const guarded = await authorization.protect(upstream.url);
      const [first, other] = [await createServer(app, owner), await createServer(app, owner)];
      const firstId = await published(app, owner, first, external(guarded.url));
      await authorizeAt(linkIn(await releaseIn(app, owner, first, firstId, 'AUTH_REQUIRED')), first);
      await releaseIn(app, owner, first, firstId, 'SUCCESS');

      const id = await published(app, owner, other, external(guarded.url));
      const waiting = await releaseIn(app, owner, other, id, 'AUTH_REQUIRED');
      await endTime(id);
      await releaseIn(app, owner, other, id, 'AUTH_TIMEOUT');
      await authorizeAt(linkIn(waiting), other);
      await releaseIn(app, owner, other, id, 'SUCCESS');
      expect(await toolsOf(other)).toContain('echo');
    },
    SLOW_MS,
  );

  longVerifies(
    'contract:release-authorization',
    'is resumed by hand after its timeout, and has a new link',
    async () => {
      const guarded = await authorization.protect(upstream.url);
      const name = await createServer(app, owner);
      const id = await published(app, owner, name, external(guarded.url));
      const old = linkIn(await releaseIn(app, owner, name, id, 'AUTH_REQUIRED'));
      await endTime(id);
      await releaseIn(app, owner, name, id, 'AUTH_TIMEOUT');
      const resumed = await app.as(owner).post(pathOf(name, '/releases/latest/resume'));
      expect([resumed.status, resumed.body]).toEqual([202, { status: 'WORKING', deploymentId: id }]);
      const link = linkIn(await releaseIn(app, owner, name, id, 'AUTH_REQUIRED'));
      expect(link).not.toBe(old);
      await authorizeAt(link, name);
      await releaseIn(app, owner, name, id, 'SUCCESS');
      expect(await toolsOf(name)).toContain('echo');
    },
    SLOW_MS,
  );
});
