import { beforeAll, describe, expect } from '@jest/globals';
import { AccessRequestsRepository } from '../../../src/modules/grants/access-requests.repository.js';
import { testAccount, testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { pathOf, releaseServer } from '../../support/database/server-rows.js';
import { createServer } from '../../support/factories.js';
import { mcpAccept, request, send } from '../../support/mcp/calls.js';
import { LoginClient } from '../../support/oauth-clients/login.js';
import { formTokenIn, signedInBrowser } from '../../support/people/browser-session.js';
import { startScripted } from '../../support/special-upstreams/scripted-upstream.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
const manager = testAccount(app);
const stranger = testAccount(app);
let upstreamUrl: string;

beforeAll(async () => {
  upstreamUrl = (await startScripted(() => '{"tools":[{"name":"forecast","inputSchema":{"type":"object"}}]}')).url;
});

async function serverOf(visibility: string): Promise<string> {
  const name = await createServer(app, owner);
  await releaseServer(app, name, { upstreamUrl });
  expect((await app.as(owner).patch(pathOf(name), { visibility })).status).toBe(200);
  await app.as(owner).post(pathOf(name, '/grants'), { account: manager.name, level: 'manage' });
  return name;
}

const ask = (account: TestAccount, name: string, text = 'Forecasts for our dashboard.') =>
  app.as(account).post(pathOf(name, '/access-requests'), { text });

const decide = (account: TestAccount, name: string, id: string, body: object) =>
  app.as(account).post(pathOf(name, `/access-requests/${id}`), body);

const call = (account: TestAccount, name: string) =>
  send(app, account, `/run/${name.replace('/', '--')}`, request(1, 'tools/list'), { headers: mcpAccept });

describe('a request for access', () => {
  verifies('access-request:granted', 'opens a restricted server when its owner grants it', async () => {
    const name = await serverOf('restricted');
    expect((await call(stranger, name)).status).toBe(403);
    const asked = await ask(stranger, name);
    expect([asked.status, asked.body]).toEqual([
      201,
      {
        id: expect.any(String),
        qualifiedName: name,
        account: { id: stranger.id, name: stranger.name },
        text: 'Forecasts for our dashboard.',
        state: 'open',
        answer: null,
        createdAt: expect.any(String),
        decidedAt: null,
      },
    ]);
    // One is open: the same again.
    const again = await ask(stranger, name, 'Another text.');
    expect([again.status, again.body]).toEqual([200, asked.body]);
    for (const reader of [owner, manager]) {
      const { body } = await app.as(reader).get(pathOf(name, '/access-requests'));
      expect([body.requests, body.pagination.totalCount]).toEqual([[asked.body], 1]);
    }
    const granted = await decide(owner, name, asked.body.id as string, { grant: { level: 'call' } });
    expect([granted.status, granted.body.state]).toEqual([200, 'granted']);
    await until(async () => (await call(stranger, name)).status === 200, 'the grant opens the server');
    const mine = await app.as(stranger).get('/accounts/me/access-requests');
    expect(mine.body.requests).toContainEqual(granted.body);
    expect((await app.as(owner).get(pathOf(name, '/grants'))).body.pagination.totalCount).toBe(2);
    for (const body of [{ refuse: 'No.' }, { grant: { level: 'manage' } }]) {
      expect((await decide(owner, name, asked.body.id as string, body)).status).toBe(409);
    }
    expect((await app.as(stranger).get('/accounts/me/grants')).body.grants).toMatchObject([{ level: 'call' }]);
  });

  verifies(
    'access-request:refused',
    'is refused with a sentence, which the asker reads, and may be made again',
    async () => {
      const name = await serverOf('restricted');
      const { body: asked } = await ask(stranger, name);
      const refused = await decide(manager, name, asked.id as string, { refuse: 'Use another one.' });
      expect([refused.status, refused.body.state, refused.body.answer]).toEqual([200, 'refused', 'Use another one.']);
      const { body } = await app.as(stranger).get('/accounts/me/access-requests');
      expect(body.requests[0]).toEqual(refused.body);
      expect((await call(stranger, name)).status).toBe(403);
      expect((await ask(stranger, name)).status).toBe(201);
    },
  );

  verifies('access-request:granted', 'is granted for some tools and until a time', async () => {
    const name = await serverOf('restricted');
    const { body: asked } = await ask(stranger, name);
    const terms = { level: 'call', tools: { allow: ['forecast'] }, expiresAt: '2099-01-01T00:00:00.000Z' };
    const wrong = { manage: { ...terms, level: 'manage' }, past: { ...terms, expiresAt: '2020-01-01T00:00:00.000Z' } };
    for (const grant of Object.values(wrong)) {
      expect((await decide(owner, name, asked.id as string, { grant })).status).toBe(400);
    }
    expect((await decide(owner, name, asked.id as string, { grant: terms })).body.state).toBe('granted');
    const { body } = await app.as(owner).get(pathOf(name, '/grants'));
    expect(body.grants).toContainEqual(
      expect.objectContaining({ account: { id: stranger.id, name: stranger.name }, ...terms }),
    );
  });

  verifies('access-request:decided-by', 'is granted by the owner alone, and read by nobody else', async () => {
    const name = await serverOf('restricted');
    const { body: asked } = await ask(stranger, name);
    const path = pathOf(name, '/access-requests');
    expect((await decide(manager, name, asked.id as string, { grant: { level: 'call' } })).status).toBe(403);
    expect((await decide(stranger, name, asked.id as string, { grant: { level: 'call' } })).status).toBe(404);
    expect((await app.as(stranger).get(path)).status).toBe(404);
    expect((await app.as(owner).get(`/accounts/${stranger.id}/access-requests`)).status).toBe(404);
    const other = await serverOf('restricted');
    expect((await decide(owner, other, asked.id as string, { refuse: 'No.' })).status).toBe(404);
    for (const body of [{}, { grant: { level: 'call' }, refuse: 'No.' }, { grant: { level: 'own' } }, { refuse: '' }]) {
      expect([body, (await decide(owner, name, asked.id as string, body)).status]).toEqual([body, 400]);
    }
  });

  verifies('access-request:one-decision', 'is decided once by two at the same moment', async () => {
    const name = await serverOf('restricted');
    const { body: asked } = await ask(stranger, name);
    const answers = await Promise.all([
      decide(owner, name, asked.id as string, { grant: { level: 'call' } }),
      decide(owner, name, asked.id as string, { refuse: 'No.' }),
    ]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    const isGranted = answers[0].status === 200;
    expect((await app.as(owner).get(pathOf(name, '/grants'))).body.pagination.totalCount).toBe(isGranted ? 2 : 1);
    await until(async () => (await call(stranger, name)).status === (isGranted ? 200 : 403), 'the decision holds');
  });

  verifies('access-request:private', 'looks for a private server like one for a missing server', async () => {
    const name = await serverOf('private');
    const [hidden, missing] = [await ask(stranger, name), await ask(stranger, `${name}x`)];
    expect([hidden.status, hidden.text, hidden.headers['slipway-hint']]).toEqual([
      404,
      missing.text,
      missing.headers['slipway-hint'],
    ]);
    expect((await ask(stranger, await serverOf('public'))).status).toBe(201);
    expect((await ask(owner, name)).status).toBe(409);
    for (const text of ['', 'x'.repeat(501), 1, undefined]) {
      expect((await app.as(stranger).post(pathOf(name, '/access-requests'), { text })).status).toBe(400);
    }
  });

  verifies(
    'access-request:bounded',
    'is one of 20 a day, even with concurrent requests, and is deleted after 30 days',
    async () => {
      const busy = await app.account();
      const names = await Promise.all(Array.from({ length: 22 }, () => serverOf('restricted')));
      const statuses = await Promise.all(names.map(async (name) => (await ask(busy, name)).status));
      expect(statuses.sort()).toEqual([...Array<number>(20).fill(201), 429, 429]);
      const rows = app.get(AccessRequestsRepository);
      const DAY_MS = 86_400_000;
      await rows.deleteOld(new Date(Date.now() + 29 * DAY_MS));
      expect(await rows.count({ accountId: busy.id })).toBe(20);
      await rows.deleteOld(new Date(Date.now() + 31 * DAY_MS));
      expect(await rows.count({ accountId: busy.id })).toBe(0);
    },
  );
});

describe('the consent page', () => {
  verifies('access-request:consent', 'asks for access to a restricted server, and to no other', async () => {
    const person = await app.account();
    const browser = await signedInBrowser(app, person);
    const name = await serverOf('restricted');
    const client = new LoginClient(app, `${app.url}/run/${name.replace('/', '--')}`);
    await client.register();
    const { headers } = await browser.get(client.authorizePath());
    const { pathname } = new URL(String(headers.location), app.url);
    const shown = await browser.get(pathname);
    expect(shown.text).toContain('Nothing to authorize');
    const fields = { 'form-token': formTokenIn(shown), account: person.id, text: 'For <b>Claude</b>.' };
    // Nothing is let in by a form that the page did not show.
    expect((await browser.post(pathname, { ...fields, answer: 'allow' })).status).toBe(404);
    const asked = await browser.post(pathname, { ...fields, answer: 'ask' });
    expect([asked.status, asked.text]).toEqual([200, expect.stringContaining('Asked for access')]);
    const { body } = await app.as(owner).get(pathOf(name, '/access-requests'));
    expect(body.requests).toMatchObject([{ account: { id: person.id }, text: 'For <b>Claude</b>.', state: 'open' }]);

    const hidden = new LoginClient(app, `${app.url}/run/${(await serverOf('private')).replace('/', '--')}`);
    const missing = new LoginClient(app, `${app.url}/run/${uniqueName('none')}`);
    const pages = [];
    for (const one of [hidden, missing]) {
      await one.register();
      const begun = await browser.get(one.authorizePath());
      const at = new URL(String(begun.headers.location), app.url).pathname;
      const page = await browser.get(at);
      expect((await browser.post(at, { ...fields, 'form-token': formTokenIn(page), answer: 'ask' })).status).toBe(404);
      pages.push(
        page.text
          .replaceAll(one.resource, 'RESOURCE')
          .replaceAll(at, 'PAGE')
          .replace(/name="form-token" value="[^"]+"/g, ''),
      );
    }
    expect(pages[0]).toBe(pages[1]);
    expect(pages[0]).not.toContain('Ask for access');
  });
});
