import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect } from '@jest/globals';
import { testAccount, testApp, type TestAccount, type TestApp } from '../../support/app.js';
import { pathOf } from '../../support/database/server-rows.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { modern, post } from '../../support/mcp/mcp-calls.js';
import { LoginClient } from '../../support/oauth-clients/login.js';
import { signedInBrowser } from '../../support/people/browser-session.js';
import { publishExternal } from '../../support/releases/releases.js';
import { sendJson, startScripted, type ScriptedUpstream } from '../../support/special-upstreams/scripted-upstream.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
const owner = testAccount(app);
const guest = testAccount(app);
/** Another process of the service. */
let elsewhere: TestApp;

interface Key extends TestAccount {
  madeBy: string | null;
}

/** A new key that another one makes, as an account whose id is that of the key. */
async function makeKey(by: TestAccount, account = 'me'): Promise<Key> {
  const { status, body } = await app.as(by).post(`/accounts/${account}/api-keys`, { name: 'made' });
  expect(status).toBe(201);
  return body as Key;
}

const revoke = (by: TestAccount, key: Key, query = '', account = 'me') =>
  app.as(by).delete(`/accounts/${account}/api-keys/${key.id}${query}`);

const isRefused = (key: TestAccount, of = elsewhere) =>
  until(async () => (await of.as(key).get('/accounts/me')).status === 401, 'the key is refused');

beforeAll(async () => {
  elsewhere = await app.sibling();
});

describe('DELETE /accounts/{id}/api-keys/{keyId}?made=true', () => {
  verifies('key:made-by', 'deletes the unused invitations of the revoked keys, and no others', async () => {
    const organization = await app.account({ kind: 'organization' });
    const members = `/accounts/${organization.id}/members`;
    await app.as(app.operator).put(`${members}/${owner.id}`, { role: 'owner' });
    const leaked = await makeKey(owner);
    const second = await makeKey(leaked);
    const invite = async (by: TestAccount) =>
      (await app.as(by).post(`${members}/invitations`, { role: 'owner' })).body.url as string;
    const links = [await invite(leaked), await invite(second), await invite(owner)];
    const account = await app.account();
    expect((await app.as(second).put(`${members}/${account.id}`, { role: 'owner' })).status).toBe(202);
    // A link of an operator's key to the password of another account.
    const operators = await makeKey(app.operator);
    const { body } = await app.as(operators).post(`/accounts/${account.id}/invitations`);
    const opened = async () => Promise.all([...links, String(body.url)].map(async (url) => (await fetch(url)).status));
    expect(await opened()).toEqual([200, 200, 200, 200]);
    expect((await revoke(owner, leaked, '?made=true')).status).toBe(200);
    expect(await opened()).toEqual([410, 410, 200, 200]);
    expect((await app.as(account).get('/accounts/me/invitations')).body.invitations).toMatchObject([{ role: null }]);
    expect((await revoke(app.operator, operators, '?made=true')).status).toBe(200);
    expect(await opened()).toEqual([410, 410, 200, 410]);
  });

  verifies('key:made-by', 'revokes keys that a key created, even through revoked ones, in each process', async () => {
    const leaked = await makeKey(owner);
    const second = await makeKey(leaked);
    const rotated = await app.as(second).post(`/accounts/me/api-keys/${second.id}/rotate`, {});
    const third = rotated.body as Key;
    const fourth = await makeKey(third);
    expect([second, third, fourth].map(({ madeBy }) => madeBy)).toEqual([leaked.id, second.id, third.id]);
    for (const gone of [second, third]) expect((await revoke(leaked, gone)).body.revoked).toEqual([gone.id]);
    expect((await elsewhere.as(fourth).get('/accounts/me')).status).toBe(200);
    const { body } = await app.as(owner).get('/accounts/me/api-keys');
    expect(body.apiKeys).toContainEqual(expect.objectContaining({ id: fourth.id, madeBy: third.id }));
    expect((await revoke(owner, second, '?made=maybe')).status).toBe(400);
    expect((await revoke(owner, second, '?made=0')).status).toBe(404);
    const fifth = await makeKey(fourth);
    expect((await revoke(owner, third, '?made=true')).body.revoked.toSorted()).toEqual(
      [fourth.id, fifth.id].toSorted(),
    );
    await isRefused(fourth);
    expect((await revoke(leaked, leaked, '?made=true')).body).toEqual({ success: true, revoked: [leaked.id] });
    expect((await revoke(owner, leaked, '?made=true')).status).toBe(404);
  });

  verifies('key:made-by', 'ends keys of other accounts for the operator only', async () => {
    const leaked = await makeKey(app.operator);
    const given = await makeKey(leaked, owner.id);
    expect((await revoke(owner, leaked, '?made=true')).status).toBe(404);
    expect((await revoke(app.operator, leaked, '?made=true', owner.id)).status).toBe(404);
    expect((await elsewhere.as(given).get('/accounts/me')).status).toBe(200);
    const { body } = await revoke(app.operator, leaked, '?made=true');
    expect(body.revoked.toSorted()).toEqual([leaked.id, given.id].toSorted());
    await isRefused(given);
  });

  verifies(
    'key:made-by',
    'misses no key that is made at the same moment, nor one at the end of a long chain',
    async () => {
      const leaked = await makeKey(owner);
      await app.database.query(
        'UPDATE api_keys SET made_by = array_prepend($2::uuid, array_fill($3::uuid, ARRAY[999])) WHERE id = $1',
        [(await makeKey(owner)).id, leaked.id, randomUUID()],
      );
      const key = await makeKey(leaked);
      await app.database.query(
        'UPDATE api_keys SET made_by = array_prepend($2::uuid, array_fill($3::uuid, ARRAY[999])) WHERE id = $1',
        [key.id, leaked.id, randomUUID()],
      );
      const long = await makeKey(key);
      const making = Array.from({ length: 8 }, (_, i) =>
        (i % 2 ? app : elsewhere)
          .as(i < 4 ? leaked : long)
          .post('/accounts/me/api-keys', { name: 'at the same moment' }),
      );
      const [revoked, ...made] = await Promise.all([revoke(owner, leaked, '?made=true'), ...making]);
      expect(revoked.body.revoked).toEqual(expect.arrayContaining([leaked.id, key.id, long.id]));
      for (const { status } of made) expect([201, 401]).toContain(status);
      const { body } = await app.as(owner).get('/accounts/me/api-keys');
      expect(body.apiKeys.filter(({ name }: { name: string }) => name === 'at the same moment')).toEqual([]);
    },
  );
});

describe('running calls', () => {
  let upstream: ScriptedUpstream;
  /** Answers the calls that the upstream holds. */
  let answers: (() => void)[];
  let connection: string;
  let server: string;

  beforeAll(async () => {
    upstream = await startScripted(({ method, id }, res) => {
      if (method !== 'tools/call') return '{"tools":[{"name":"hold","inputSchema":{"type":"object"}}]}';
      answers.push(() => sendJson(res, `{"jsonrpc":"2.0","id":${id},"result":{"content":[]}}`));
    });
    const namespace = await createNamespace(app, owner);
    connection = (await createConnection(app, owner, { mcpUrl: upstream.url }, { namespace })).path;
    server = await createServer(app, owner, { namespace });
    await publishExternal(app, owner, server, { upstreamUrl: upstream.url });
    await app.as(owner).patch(pathOf(server), { visibility: 'private' });
  });

  const call = modern('tools/call', { name: 'hold', arguments: {} });
  /** Where calls go, what they send, and the path below which are the logs and the grants. */
  const targets = () => [
    { of: `${connection}/.tools/hold`, at: connection, send: { body: {}, headers: {} } },
    { of: `${connection}/mcp`, at: connection, send: call },
    { of: `/run/${server.replace('/', '--')}`, at: pathOf(server), send: call },
  ];

  /** The status of a call; `cut` for one without an answer. */
  const begin = (url: string, { body, headers }: typeof call, { key }: Pick<TestAccount, 'key'>) =>
    post(url, body, { ...headers, authorization: `Bearer ${key}` }).then(
      ({ status }) => status,
      () => 'cut',
    );

  const newestOutcomes = async (at: string): Promise<string[]> => {
    const { body } = await app.as(owner).get(`${at}/logs`);
    return body.invocations.slice(0, 2).map(({ response }: { response: { outcome: string } }) => response.outcome);
  };

  /** Cuts the calls to each target by `end('?now=true')` and lets those be answered that run at `end('')`. */
  async function areCut(
    prepare: (at: string) => Promise<{ account: TestAccount; end: (query: string) => Promise<{ status: number }> }>,
    isOver: (account: TestAccount, at: string) => Promise<unknown>,
  ) {
    for (const target of targets()) {
      for (const [query, status, outcome] of [
        ['', 200, 'ok'],
        ['?now=1', 'cut', 'canceled'],
      ] as const) {
        answers = [];
        const { account, end } = await prepare(target.at);
        const statuses: unknown[] = [];
        const calls = [app, elsewhere].map(async ({ url }) => {
          statuses.push(await begin(`${url}${target.of}`, target.send, account));
        });
        await until(() => answers.length === 2, 'the calls have arrived');
        expect((await end(query)).status).toBe(200);
        await isOver(account, target.at);
        if (query === '') {
          expect(statuses).toEqual([]);
          answers.forEach((answer) => answer());
        }
        await Promise.all(calls);
        expect([target.of, query, statuses]).toEqual([target.of, query, [status, status]]);
        const logged = async () => (await newestOutcomes(target.at)).join() === [outcome, outcome].join();
        await until(logged, `the log of ${target.of} says ${outcome}`);
      }
    }
  }

  verifies('key:revoked-now', 'complete after their key is revoked, and are cut by now=true', async () => {
    await areCut(
      async () => {
        const key = await makeKey(owner);
        return { account: key, end: (query) => revoke(owner, key, query) };
      },
      (key) => isRefused(key),
    );
  });

  verifies('key:revoked-now', 'are cut by now=true when their login began with the revoked key', async () => {
    const key = await makeKey(owner);
    const client = new LoginClient(app, `${app.url}${connection}/mcp`);
    await client.register();
    const { access_token: token } = await client.login(await signedInBrowser(app, key));
    answers = [];
    const status = begin(client.resource, call, { key: token });
    await until(() => answers.length === 1, 'the call has arrived');
    expect((await revoke(owner, key, '?now=true')).status).toBe(200);
    expect(await status).toBe('cut');
  });

  verifies('grants:withdrawn-now', 'complete after their grant is revoked, and are cut by now=true', async () => {
    await areCut(
      async (at) => {
        const { body } = await app.as(owner).post(`${at}/grants`, { account: guest.id, level: 'call' });
        return { account: guest, end: (query) => app.as(owner).delete(`${at}/grants/${body.id}${query}`) };
      },
      (account, at) => until(async () => (await elsewhere.as(account).get(at)).status === 404, 'the grant is gone'),
    );
  });
});
