/*
 * Budgets of logins: refreshes, authorizations that wait, grants of an account. The roots of a login, and the list of an account's
 * logins.
 */
import { createHash, randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { AuthorizationServerRepository } from '../../../src/modules/authorization-server/authorization-server.repository.js';
import type { LoginListDto } from '../../../src/modules/authorization-server/login.dto.js';
import { ExpiredGrants } from '../../../src/modules/grants/expired-grants.js';
import { deletionTime } from '../../../src/platform/database/deletion-time.js';
import { testAccount, testApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import { createConnection } from '../../support/factories.js';
import { LoginClient, type Tokens } from '../../support/oauth-clients/login.js';
import {
  accountWithPassword,
  openBrowser,
  signedInBrowser,
  type BrowserSession,
} from '../../support/people/browser-session.js';
import { startUpstream } from '../../support/upstream/upstream.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const REDIRECT = 'https://app.example/callback';

const app = testApp();
/** A process that receives no message of the others. */
let deaf: TestApp;
const person = testAccount(app);
const friend = testAccount(app);
let browser: BrowserSession;
let path: string;

beforeAll(async () => {
  const upstream = await startUpstream();
  deaf = await app.sibling({ QUEUE_PREFIX: uniqueName('deaf') });
  ({ path } = await createConnection(app, person, { mcpUrl: upstream.url }));
  browser = await signedInBrowser(app, person);
});

async function registered(): Promise<LoginClient> {
  const client = new LoginClient(app, `${app.url}${path}/mcp`, REDIRECT);
  expect((await client.register()).status).toBe(201);
  return client;
}

async function count(where: string, ...values: unknown[]): Promise<number> {
  const [row] = await app.database.query<[{ count: number }]>(`SELECT count(*)::int FROM ${where}`, values);
  return row.count;
}

/** Statuses of a call with a token at both processes. */
async function calls(token: string): Promise<number[]> {
  return Promise.all(
    [app, deaf].map(async ({ url }) => {
      const response = await fetch(`${url}${path}/mcp`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json', authorization: `Bearer ${token}` },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
      });
      await response.text();
      return response.status;
    }),
  );
}

describe('refreshes', () => {
  verifies('login:refresh-storm', 'lock nothing and leave six rows for one login used by 64 programs', async () => {
    const client = await registered();
    const first = await client.login(browser);
    const retryAfter: (string | null)[] = [];
    const program = async () => {
      const statuses: number[] = [];
      let { refresh_token: newest } = first;
      // A new minute may begin meanwhile.
      while (retryAfter.length === 0) {
        const form = { client_id: client.id, grant_type: 'refresh_token', refresh_token: newest };
        const answer = await fetch(`${app.url}/token`, { method: 'POST', body: new URLSearchParams(form) });
        const body = (await answer.json()) as Tokens;
        statuses.push(answer.status);
        if (answer.status === 429) retryAfter.push(answer.headers.get('retry-after'));
        if (answer.status === 200) newest = body.refresh_token;
      }
      return statuses;
    };
    const statuses = (await Promise.all(Array.from({ length: 64 }, program))).flat();
    expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
    expect(statuses.filter((status) => status === 200).length).toBeLessThanOrEqual(2 * 60);
    expect(retryAfter.map(Number).every((seconds) => seconds > 0)).toBe(true);
    expect(
      await count('as_records r JOIN as_grants g ON g.id = r.grant_id WHERE g.client_id = $1', client.id),
    ).toBeLessThanOrEqual(6);
  });

  verifies('login:assertion-once', 'an assertion is stored once', async () => {
    const rows = app.get(AuthorizationServerRepository);
    const hash = createHash('sha256').update(randomUUID()).digest();
    const save = () =>
      rows.saveRecord('ReplayDetection', hash, { grantId: null, predecessor: null, sealed: 's', lifeSeconds: 9 });
    expect((await Promise.all([save(), save()])).sort()).toEqual([false, true]);
  });
});

describe('rows of unauthenticated clients', () => {
  verifies(
    'login:waiting',
    'authorizations of one address give way to newer ones, and a long state is refused',
    async () => {
      const client = await registered();
      const stranger = openBrowser(app);
      const begin = () => stranger.get(client.authorizePath());
      const oldest = await begin();
      await Promise.all(Array.from({ length: 260 }, begin));
      expect(await count(`as_records WHERE kind = 'Interaction' AND client_id = $1`, client.id)).toBe(250);
      const newest = await begin();
      const shown = await stranger.get(String(newest.headers.location));
      expect([shown.status, shown.text]).toEqual([200, expect.stringContaining('Sign in to decide')]);
      expect((await stranger.get(String(oldest.headers.location))).status).toBe(410);
      const long = await stranger.get(client.authorizePath({ state: 'x'.repeat(4_097) }));
      expect([long.status, long.text]).toEqual([400, expect.stringContaining('state')]);
    },
  );

  it('give way to newer ones of the same network, and take no place of others', async () => {
    const client = await registered();
    const honest = openBrowser(app);
    const begun = await honest.get(client.authorizePath());
    const rows = app.get(AuthorizationServerRepository);
    const network = `kind = 'Interaction' AND address LIKE '8193:3512:1:%'`;
    // 16 networks of 64 bits, which one customer has.
    await app.database.query(
      `INSERT INTO as_records (kind, id_hash, address, client_id, sealed, expires_at)
       SELECT 'Interaction', sha256(n::text::bytea), '8193:3512:1:' || n % 16, 'c', 's', now() + interval '1 hour'
         FROM generate_series(1, 12000) n`,
    );
    const waiting = { address: '9:9:9:9', clientId: 'c', sealed: 's', lifeSeconds: 600 };
    await rows.saveInteraction(createHash('sha256').update(randomUUID()).digest(), waiting);
    // Beyond the number of all, the largest network loses.
    expect(await count(`as_records WHERE kind = 'Interaction'`)).toBeLessThanOrEqual(10_000);
    expect((await honest.get(String(begun.headers.location))).status).toBe(200);
    const theirs = { ...waiting, clientId: 'd', address: '8193:3512:1:5' };
    await rows.saveInteraction(createHash('sha256').update(randomUUID()).digest(), theirs);
    expect(await count(`as_records WHERE ${network}`)).toBe(1_000);
    await app.database.query(`DELETE FROM as_records WHERE ${network}`);
  });

  verifies('login:storable', 'a NUL is no client and no endpoint', async () => {
    const client = await registered();
    const bad = Object.assign(await registered(), { id: 'a\0b' });
    for (const path of ['/token', '/revoke']) {
      expect((await bad.token({ token: 'a', grant_type: 'refresh_token', refresh_token: 'a' }, path)).status).toBe(401);
    }
    const begun = await browser.get(client.authorizePath({ resource: `${app.url}/connect/a%00b/one%00/mcp` }));
    const page = begun.status === 303 && String(begun.headers.location).startsWith('/consent/');
    if (page) expect((await browser.get(String(begun.headers.location))).text).toContain('Nothing to authorize');
    else expect(begun.status).toBeLessThan(500);
  });
});

describe('grants', () => {
  verifies('login:grants-budget', 'give way to newer ones of their account; a page shows 100', async () => {
    const client = await registered();
    const who = await app.account();
    await app.as(person).post(`${path}/grants`, { account: who.id, level: 'call' });
    const of = await signedInBrowser(app, who);
    const { access_token: token } = await client.login(of);
    const copy = (n: number, used: string) =>
      app.database.query(
        `INSERT INTO as_grants (id, account_id, client_id, client_name, redirect_key, redirects_hash, resource, connection_id,
                                last_used_at, created_at, expires_at, logins_epoch)
         SELECT gen_random_uuid(), account_id, client_id, repeat('n', 100), redirect_key, redirects_hash, resource, connection_id,
                ${used}, now() - interval '1 hour', expires_at, logins_epoch
           FROM as_grants, generate_series(1, $2::int) WHERE account_id = $1 LIMIT $2`,
        [who.id, n],
      );
    await copy(25, 'NULL');
    await copy(600, `now() - interval '1 day'`);
    const newest = await client.login(of);
    expect(await count('as_grants WHERE account_id = $1', who.id)).toBe(500);
    expect(await count('as_grants WHERE account_id = $1 AND last_used_at IS NULL', who.id)).toBe(19);
    for (const used of [token, newest.access_token]) expect(await calls(used)).toEqual([200, 200]);
    const page = await of.get('/me/access');
    expect(page.text.match(/name="grant"/g)).toHaveLength(100);
    expect(page.text.length).toBeLessThan(200_000);
    expect((await of.get('/me/access?page=5')).text.match(/name="grant"/g)).toHaveLength(100);
    expect((await of.get('/me/access?page=6')).text).not.toContain('name="grant"');
  });
});

/** Ends the root of a login, and makes it anew. */
interface Root {
  who: TestAccount;
  of: BrowserSession;
  end: () => Promise<unknown>;
}

/** @param between runs when the grant with this id has expired, and before it is given again */
async function expiredGrant(between: (id: string) => Promise<unknown>): Promise<Root> {
  const who = await app.account();
  const terms = { account: who.id, level: 'call' };
  const end = async () => {
    const again = await app.as(person).post(`${path}/grants`, terms);
    const { id } = again.body as { id: string };
    await app.database.query(`UPDATE grants SET expires_at = now() - interval '1 second' WHERE id = $1`, [id]);
    await between(id);
    const anew = await app.as(person).post(`${path}/grants`, terms);
    expect([again.status, anew.status, anew.body.id === id]).toEqual([200, 201, false]);
  };
  return { who, of: await signedInBrowser(app, who), end };
}

const roots: Record<string, () => Promise<Root>> = {
  'a key that is revoked': async () => {
    const who = await app.account();
    const { id, key } = (await app.as(who).post('/accounts/me/api-keys', { name: 'leaked' })).body as {
      id: string;
      key: string;
    };
    const end = () => app.as(who).delete(`/accounts/me/api-keys/${id}`);
    return { who, of: await signedInBrowser(app, { ...who, key }), end };
  },
  'a key that expires': async () => {
    const who = await app.account();
    const { id, key } = (await app.as(who).post('/accounts/me/api-keys', { name: 'short', expiresInSeconds: 3_600 }))
      .body as { id: string; key: string };
    const end = () => app.database.query(`UPDATE api_keys SET expires_at = now() WHERE id = $1`, [id]);
    return { who, of: await signedInBrowser(app, { ...who, key }), end };
  },
  'a grant that is withdrawn and given again': async () => {
    const end = async () => {
      const { body } = await app.as(person).get(`${path}/grants`);
      const { id } = (body as { grants: { id: string; account: { id: string } }[] }).grants.find(
        ({ account }) => account.id === friend.id,
      ) ?? { id: '' };
      await app.as(person).delete(`${path}/grants/${id}`);
      await app.as(person).post(`${path}/grants`, { account: friend.id, level: 'call' });
    };
    return { who: friend, of: await signedInBrowser(app, friend), end };
  },
  'an expired grant that is given again': () => expiredGrant(async () => undefined),
  'an expired grant that is deleted and given again': () =>
    expiredGrant(async (id) => {
      const now = await deletionTime(app.database);
      await app.get(ExpiredGrants).delete(now ?? new Date());
      expect(await count('grants WHERE id = $1', id)).toBe(0);
    }),
  'an account that is disabled and enabled': async () => {
    const who = await app.account();
    const end = async () => {
      for (const disabled of [true, false]) await app.as(app.operator).patch(`/accounts/${who.id}`, { disabled });
    };
    return { who, of: await signedInBrowser(app, who), end };
  },
  'logins_epoch, which a password or an invitation raises': async () => {
    const who = await app.account();
    const end = () => app.database.query('UPDATE accounts SET logins_epoch = logins_epoch + 1 WHERE id = $1', [who.id]);
    return { who, of: await signedInBrowser(app, who), end };
  },
};

describe('the logins of an account', () => {
  verifies('people:logins', 'are listed and ended, one or all, in every process', async () => {
    const who = await accountWithPassword(app, 'a long password of a person');
    await app.as(person).post(`${path}/grants`, { account: who.id, level: 'call' });
    const made = (await app.as(who).post('/accounts/me/api-keys', { name: 'other' })).body as {
      id: string;
      key: string;
    };
    const of = await signedInBrowser(app, { ...who, key: made.key });
    const [one, two] = [await registered(), await registered()];
    const [first, second] = [await one.login(of), await two.login(of)];
    const list = async (as: TestAccount, account = 'me') =>
      (await app.as(as).get(`/accounts/${account}/logins`)).body as LoginListDto;
    const { logins, pagination } = await list(who);
    expect(logins.map(({ kind }) => kind)).toEqual(['oauth', 'oauth', 'browser', 'password']);
    expect(logins[0]).toMatchObject({
      name: 'Test client',
      host: 'app.example',
      resource: two.resource,
      keyId: made.id,
    });
    expect(pagination.totalCount).toBe(4);
    expect((await list(app.operator, who.id)).logins).toEqual(logins);
    const rotated = await app.as(who).post(`/accounts/me/api-keys/${made.id}/rotate`, { overlapSeconds: 0 });
    const { id: keyId } = rotated.body as { id: string };
    expect((await list(who)).logins.map((each) => each.keyId)).toEqual([keyId, keyId, keyId, null]);
    expect(await calls(second.access_token)).toEqual([200, 200]);
    const end = (id: string, as: TestAccount = who) => app.as(as).delete(`/accounts/${who.id}/logins/${id}`);
    expect((await end(logins[0].id, friend)).status).toBe(404);
    expect((await end(logins[0].id)).status).toBe(200);
    expect((await end(logins[2].id, app.operator)).status).toBe(200);
    expect((await of.get('/me')).status).toBe(303);
    await until(async () => (await calls(second.access_token)).every((status) => status === 401), 'the login ends');
    expect(await calls(first.access_token)).toEqual([200, 200]);
    expect((await app.as(who).delete('/accounts/me/logins')).status).toBe(200);
    expect((await list(who)).logins).toEqual([]);
    await until(async () => (await calls(first.access_token)).every((status) => status === 401), 'all logins end');
    for (const id of ['password', logins[0].id, 'nonsense']) expect((await end(id)).status).toBe(404);
  });
});

describe('a login', () => {
  verifies('login:roots', 'ends with what it hangs on, in every process, and does not come back', async () => {
    const logins: { name: string; client: LoginClient; tokens: Tokens; end: Root['end'] }[] = [];
    for (const [name, make] of Object.entries(roots)) {
      const { who, of, end } = await make();
      await app.as(person).post(`${path}/grants`, { account: who.id, level: 'call' });
      const client = await registered();
      const tokens = await client.login(of);
      expect([name, ...(await calls(tokens.access_token))]).toEqual([name, 200, 200]);
      logins.push({ name, client, tokens, end });
    }
    for (const { end } of logins) await end();
    for (const { name, client, tokens } of logins) {
      await until(
        async () => (await calls(tokens.access_token)).every((status) => status === 401),
        `${name} ends the login`,
      );
      expect([name, (await client.refresh(tokens.refresh_token)).status]).toEqual([name, 400]);
    }
  });
});
