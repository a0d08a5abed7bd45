// Also run with the queue on Redis by test:long: the message about ended grants.
/*
 * Logins by URL with more than one process, many at once, and over a restart; what the sweeps remove.
 */
import { beforeAll, describe, expect } from '@jest/globals';
import { AuthorizationServerRepository } from '../../../src/modules/authorization-server/authorization-server.repository.js';
import { testAccount, testApp, type TestApp } from '../../support/app.js';
import { createConnection } from '../../support/factories.js';
import { LoginClient } from '../../support/oauth-clients/login.js';
import {
  formTokenIn,
  openBrowser,
  signedInBrowser,
  type BrowserSession,
} from '../../support/people/browser-session.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

/** The longest time in which a login may outlive its end. */
const END_MS_MAX = 5_000;
const REDIRECT = 'https://app.example/callback';
const AT_ONCE = 200;
/** Logins at once of a person that nobody has used yet. */
const UNUSED_MAX = 20;

const app = testApp();
let second: TestApp;
const person = testAccount(app);
let upstream: Upstream;
let path: string;

beforeAll(async () => {
  second = await sibling();
  upstream = await startUpstream();
  ({ path } = await createConnection(app, person, { mcpUrl: upstream.url }));
});

/** Another process of the same service, with its address. */
function sibling(): Promise<TestApp> {
  return app.sibling({ PUBLIC_URL: app.url });
}

async function call(of: TestApp, token: string): Promise<number> {
  const response = await fetch(`${of.url}${path}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${token}`,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  });
  await response.text();
  return response.status;
}

async function registeredAt(of: TestApp): Promise<LoginClient> {
  const client = new LoginClient(of, `${app.url}${path}/mcp`, REDIRECT);
  await client.register();
  return client;
}

/** Allows what a browser has begun. @returns the code */
async function allow(browser: BrowserSession, page: string, accountId = person.id): Promise<string> {
  const shown = await browser.get(page);
  const fields = { 'form-token': formTokenIn(shown), account: accountId, answer: 'allow' };
  const decided = await browser.post(page, fields);
  if (decided.status !== 303) throw new Error(`${page} returned ${decided.status}: ${decided.text}`);
  const { pathname } = new URL(String(decided.headers.location), app.url);
  const { status, headers, text } = await browser.get(pathname);
  if (status !== 303) throw new Error(`${pathname} returned ${status}: ${text}`);
  return new URL(String(headers.location)).searchParams.get('code') ?? '';
}

describe('a login', () => {
  verifies('login:processes', 'goes on at any process, and ends in all of them', async () => {
    const client = await registeredAt(app);
    const browser = await signedInBrowser(app, person);
    const begun = await browser.get(client.authorizePath());
    const code = await allow(browser.at(second), String(begun.headers.location));
    const { body, status } = await client.redeem(code);
    expect(status).toBe(200);
    for (const each of [app, second]) expect(await call(each, body.access_token)).toBe(200);
    const refreshed = await new LoginClient(second, client.resource).token({
      client_id: client.id,
      grant_type: 'refresh_token',
      refresh_token: body.refresh_token,
    });
    expect(refreshed.status).toBe(200);
    await client.revoke(refreshed.body.refresh_token);
    for (const token of [body.access_token, refreshed.body.access_token]) {
      expect(await call(app, token)).toBe(401);
      await until(async () => (await call(second, token)) === 401, 'the other process rejects the token', END_MS_MAX);
    }
  });

  verifies('login:branches', 'has one successor of a refresh token, in every process and after a restart', async () => {
    const before = await sibling();
    const client = await registeredAt(before);
    const { refresh_token: first } = await client.login(await signedInBrowser(before, person));
    const at = (of: TestApp) => Object.assign(new LoginClient(of, client.resource), { id: client.id });
    const answers = await Promise.all([before, app, second, before].map((each) => at(each).refresh(first)));
    await before.close();
    const after = await sibling();
    answers.push(await at(after).refresh(first));
    await after.close();
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(new Set(answers.map(({ body }) => `${body.refresh_token} ${body.access_token}`)).size).toBe(1);
  });

  verifies('login:processes', 'is redeemed once at two processes at the same moment', async () => {
    const client = await registeredAt(app);
    const browser = await signedInBrowser(app, person);
    for (let round = 0; round < 5; round += 1) {
      const begun = await browser.get(client.authorizePath());
      const code = await allow(browser, String(begun.headers.location));
      const form = {
        client_id: client.id,
        grant_type: 'authorization_code',
        code,
        redirect_uri: REDIRECT,
        code_verifier: client.verifier,
      };
      const other = new LoginClient(second, client.resource);
      const answers = await Promise.all([client.token(form), other.token(form)]);
      const good = answers.filter(({ status }) => status === 200);
      expect(good.length).toBeLessThanOrEqual(1);
      expect(answers.filter(({ status }) => status !== 200 && status !== 400)).toEqual([]);
    }
  });

  verifies('login:restart', 'survives a restart between its beginning and the decision', async () => {
    const before = await sibling();
    const client = await registeredAt(before);
    const browser = await signedInBrowser(before, person);
    const begun = await browser.get(client.authorizePath());
    const page = String(begun.headers.location);
    expect((await browser.get(page)).status).toBe(200);
    await before.close();
    const after = await sibling();
    const code = await allow(browser.at(after), page);
    const form = { grant_type: 'authorization_code', code, redirect_uri: REDIRECT, code_verifier: client.verifier };
    const { status, body } = await new LoginClient(after, client.resource).token({ client_id: client.id, ...form });
    expect(status).toBe(200);
    expect(await call(after, body.access_token)).toBe(200);
    await after.close();
  });

  verifies(
    'login:processes',
    'succeeds 200 times concurrently, while the service keeps responding',
    async () => {
      const friends = Array.from({ length: AT_ONCE / UNUSED_MAX }, async () => {
        const friend = await app.account();
        await app.as(person).post(`${path}/grants`, { account: friend.id, level: 'call' });
        return { friend, client: await registeredAt(app), cookies: (await signedInBrowser(app, friend)).cookies };
      });
      const people = await Promise.all(friends);
      const one = async ({ friend, client, cookies }: (typeof people)[number]) => {
        const browser = openBrowser(app, new Map(cookies));
        const begun = await browser.get(client.authorizePath());
        if (begun.status !== 303) throw new Error(`/authorize returned ${begun.status}: ${begun.text}`);
        const { status, body } = await client.redeem(await allow(browser, String(begun.headers.location), friend.id));
        return status === 200 ? body.access_token : `${status}`;
      };
      const logins = Promise.all(people.flatMap((each) => Array.from({ length: UNUSED_MAX }, () => one(each))));
      const health = await fetch(`${app.url}/health`);
      expect(health.status).toBe(200);
      const tokens = await logins;
      expect(tokens.filter((token) => !token.startsWith('slipway_oat_'))).toEqual([]);
      expect(new Set(tokens).size).toBe(AT_ONCE);
      expect(await call(app, tokens[0])).toBe(200);
      expect(await call(app, tokens[AT_ONCE - 1])).toBe(200);
    },
    120_000,
  );
});

describe('the sweeps', () => {
  verifies('login:sweep', 'remove what is over and nothing else', async () => {
    const rows = app.get(AuthorizationServerRepository);
    const browser = await signedInBrowser(app, person);
    const [kept, gone, old] = [await registeredAt(app), await registeredAt(app), await registeredAt(app)];
    const { access_token: token, refresh_token: refresh } = await kept.login(browser);
    await gone.login(browser);
    const forsaken = await registeredAt(app);
    const run = (text: string, id: string) => app.database.query(text, [id]);
    await run(`UPDATE as_grants SET expires_at = now() - interval '1 s' WHERE client_id = $1`, gone.id);
    await run(
      `UPDATE as_clients SET first_used_at = created_at, last_used_at = now() - interval '91 days' WHERE id = $1`,
      old.id,
    );
    await run(`UPDATE as_clients SET created_at = now() - interval '25 hours' WHERE id = $1`, forsaken.id);
    const begun = await browser.get(kept.authorizePath());
    expect(begun.status).toBe(303);
    await run(`UPDATE as_records SET expires_at = now() - interval '1 s' WHERE kind = 'Interaction' AND $1 <> ''`, '-');
    expect(await rows.sweep(new Date())).toBeGreaterThanOrEqual(4);
    const left = await app.database.query<{ id: string }[]>('SELECT id FROM as_clients WHERE id = ANY($1)', [
      [kept.id, gone.id, old.id, forsaken.id],
    ]);
    expect(left.map(({ id }) => id).sort()).toEqual([kept.id, gone.id].sort());
    const over = await app.database.query(
      `SELECT kind FROM as_records WHERE expires_at < now() AND kind <> 'AuthorizationCode'`,
    );
    expect(over).toEqual([]);
    expect(await app.database.query('SELECT id FROM as_grants WHERE client_id = $1', [gone.id])).toEqual([]);
    expect(await call(app, token)).toBe(200);
    expect((await kept.refresh(refresh)).status).toBe(200);
  });
});
