/** Another `mcpUrl` for a connection that has never worked: what its owner may do, and what does not follow to the new host. */
import { beforeAll, describe, expect } from '@jest/globals';
import { testAccount, testApp, uniqueName, type TestAccount } from '../../support/app.js';
import { createConnection, createNamespace } from '../../support/factories.js';
import { personAt } from '../../support/people/credentials.js';
import { startQuirky } from '../../support/people/quirky-provider.js';
import {
  answer,
  legacy,
  legacyHello,
  startWire,
  type WireUpstream,
} from '../../support/special-upstreams/wire-upstream.js';
import { closing, start } from '../../support/upstream/upstream-clients.js';
import type { Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

const OLD_KEY = 'key-of-the-old-host';
const app = testApp();
const owner = testAccount(app);
const manager = testAccount(app);
const guest = testAccount(app);
const stranger = testAccount(app);
let team: TestAccount;
const conflict = {
  error: 'conflict',
  message: 'The connection exists with another mcpUrl: delete it and create it again, or use another id.',
};

beforeAll(async () => {
  team = await app.account({ kind: 'organization' });
});

/** A server that answers 500 until `hold` is called, and then nothing until `letGo`. */
async function startBroken(): Promise<WireUpstream & { hold(): void; letGo(): void }> {
  let held: Promise<void> | undefined;
  let letGo = () => {};
  const good = legacy((message, res) =>
    answer(res, message, { content: [{ type: 'text', text: 'from the old host' }] }),
  );
  const wire = await startWire(async (message, res, nth) => {
    if (!held) return res.writeHead(500).end();
    if (message.method === 'initialize') {
      await held;
      return answer(res, message, legacyHello);
    }
    return good(message, res, nth);
  });
  const hold = () => (held = new Promise((resolve) => (letGo = resolve)));
  return closing({ ...wire, hold, letGo: () => letGo() });
}

const broken = (mcpUrl: string, namespace?: string) =>
  createConnection(app, owner, { mcpUrl, headers: { 'X-Key': OLD_KEY } }, { namespace });

const headersOf = (upstream: Upstream) => JSON.stringify(upstream.requests.map(({ headers }) => headers));

async function rowOf(connectionId: string): Promise<Record<string, unknown>> {
  const [row] = await app.database.query<Record<string, unknown>[]>(
    `SELECT id, revision, setup_epoch, sealed_headers, sealed_oauth_secret, oauth, status_challenges, step_ups, recording_until,
            (SELECT count(*)::int FROM recorded_calls r WHERE r.connection_id = c.id) AS recorded,
            (SELECT count(*)::int FROM upstream_credentials u WHERE u.owner_id = c.id) AS tokens,
            (SELECT count(*)::int FROM pending_authorizations p WHERE p.owner_id = c.id) AS logins,
            (SELECT count(*)::int FROM oauth_clients o WHERE o.owner_id = c.id) AS clients
       FROM connections c WHERE connection_id = $1`,
    [connectionId],
  );
  return row;
}

describe('a connection that has never worked', () => {
  verifies('connection:put:new-address', 'takes another address from its owner, and works', async () => {
    const [old, next] = [await startBroken(), await start()];
    const { path, connectionId, body } = await broken(old.url);
    expect(body.status).toMatchObject({ state: 'error' });
    const before = await rowOf(connectionId);
    const moved = await app
      .as(owner)
      .put(path, { mcpUrl: `${next.url}?a=1`, headers: { 'X-New': 'n' }, name: 'Moved' });
    expect(moved).toMatchObject({
      status: 200,
      body: {
        name: 'Moved',
        mcpUrl: `${next.url}?a=***`,
        status: { state: 'connected' },
        serverInfo: { name: 'upstream' },
      },
    });
    expect(await rowOf(connectionId)).toMatchObject({
      revision: (before.revision as number) + 1,
      setup_epoch: (before.setup_epoch as number) + 1,
    });
    expect((await app.as(owner).post(`${path}/.tools/echo`, { message: 'hi' })).body.content[0].text).toBe('hi');
    expect(headersOf(next)).not.toContain(OLD_KEY);
    expect(next.requests.every(({ headers }) => headers['x-new'] === 'n')).toBe(true);
    // From now on the address stays.
    expect(await app.as(owner).put(path, { mcpUrl: old.url })).toMatchObject({ status: 409, body: conflict });
    expect(await app.as(owner).put(path, { mcpUrl: `${next.url}?a=1` })).toMatchObject({ status: 200 });
  });

  verifies('connection:put:new-address', 'is not moved to an address that is refused at creation', async () => {
    const old = await startBroken();
    const { path } = await broken(old.url);
    for (const change of [{ mcpUrl: `${app.env.baseUrl}/skills` }, { mcpUrl: 'ftp://a.example' }]) {
      expect([change, (await app.as(owner).put(path, change)).status]).toEqual([change, 400]);
    }
    for (const change of [{ server: 'no/such' }, { transport: 'uplink' }]) {
      expect([change, (await app.as(owner).put(path, change)).status]).toEqual([change, 409]);
    }
    expect((await app.as(owner).get(path)).body.mcpUrl).toBe(old.url);
  });

  verifies('connection:put:new-address', 'is moved by no grant and no other tenant', async () => {
    const [old, next] = [await startBroken(), await start()];
    const namespace = await createNamespace(app, owner);
    const { path } = await broken(old.url, namespace);
    await app.as(owner).post(`${path}/grants`, { account: manager.id, level: 'manage' });
    await app.as(owner).post(`${path}/grants`, { account: guest.id, level: 'call' });
    expect(await app.as(manager).put(path, { mcpUrl: next.url })).toMatchObject({ status: 409, body: conflict });
    await app.as(owner).post(`/namespaces/${namespace}/grants`, { account: team.id, level: 'manage' });
    expect(await app.as(team).put(path, { mcpUrl: next.url })).toMatchObject({ status: 409, body: conflict });
    const answers = await Promise.all([guest, stranger].map((one) => app.as(one).put(path, { mcpUrl: next.url })));
    const asToday = await Promise.all([guest, stranger].map((one) => app.as(one).put(path, { mcpUrl: old.url })));
    expect(answers.map(({ status, body }) => [status, body])).toEqual(
      asToday.map(({ status, body }) => [status, body]),
    );
    expect(answers.every(({ status }) => status === 403 || status === 404)).toBe(true);
    expect([next.requests.length, (await app.as(owner).get(path)).body.mcpUrl]).toEqual([0, old.url]);
  });

  verifies('connection:put:new-address', 'is moved by an editor of the organization that owns it', async () => {
    const [old, next] = [await startBroken(), await start()];
    const organization = await app.account({ kind: 'organization' });
    const [editor, member] = [await app.account(), await app.account()];
    for (const [account, role] of [
      [owner, 'owner'],
      [editor, 'editor'],
      [member, 'member'],
    ] as const) {
      await app.as(app.operator).put(`/accounts/${organization.id}/members/${account.id}`, { role });
    }
    const namespace = uniqueName('ns');
    await app.as(owner).put(`/namespaces/${namespace}`, { organizationId: organization.id });
    const { path } = await broken(old.url, namespace);
    expect((await app.as(member).put(path, { mcpUrl: next.url })).status).toBe(403);
    expect(next.requests).toEqual([]);
    expect(await app.as(editor).put(path, { mcpUrl: next.url })).toMatchObject({
      status: 200,
      body: { mcpUrl: next.url, status: { state: 'connected' } },
    });
  });

  verifies(
    'connection:put:new-address',
    'is not marked as working by a call that ends at the old address',
    async () => {
      const [old, next] = [await startBroken(), await startBroken()];
      const { path } = await broken(old.url);
      const failed = old.count('initialize');
      old.hold();
      // In another process, since this one remembers the failure for a moment.
      const sibling = closing(await app.sibling());
      const call = sibling
        .as(owner)
        .post(`${path}/.tools/any`, {})
        .then(({ body }) => body as object);
      await old.came('initialize', failed + 1);
      expect(await app.as(owner).put(path, { mcpUrl: next.url })).toMatchObject({
        status: 200,
        body: { mcpUrl: next.url, status: { state: 'error' } },
      });
      old.letGo();
      expect(JSON.stringify(await call)).toContain('from the old host');
      const { body } = await app.as(owner).get(path);
      expect(body).toMatchObject({ status: { state: 'error' } });
      expect(body).not.toHaveProperty('serverInfo');
      expect(body.status).not.toHaveProperty('lastOkAt');
      expect(JSON.stringify(next.seen)).not.toContain(OLD_KEY);
      // So it may move once more.
      expect((await app.as(owner).put(path, { mcpUrl: (await start()).url })).body.status.state).toBe('connected');
    },
  );

  verifies('connection:put:new-address', 'gets no header that was sent for the old address meanwhile', async () => {
    const old = await startBroken();
    const { path } = await broken(old.url);
    const targets = [await start(), await start()];
    const moves = targets.map(({ url }, i) =>
      app.as(owner).put(path, { mcpUrl: url, headers: { 'X-For': `host-${i}` } }),
    );
    const statuses = (await Promise.all(moves)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThan(0);
    targets.forEach((target, i) => expect(headersOf(target)).not.toContain(`host-${1 - i}`));
  });

  verifies('connection:put:new-address', 'keeps no token, login, client, challenge and recording', async () => {
    const provider = closing(await startQuirky());
    const next = await start();
    const oauth = { clientId: 'by-hand', clientSecret: 'secret-by-hand' };
    const { path, connectionId } = await createConnection(app, owner, { mcpUrl: provider.mcpUrl, oauth });
    const { setupUrl } = (await app.as(owner).get(path)).body.status;
    const person = personAt(app);
    await person.open(setupUrl);
    expect((await person.press(setupUrl)).html).toContain('Authorized');
    await app.database.query(
      `WITH c AS (UPDATE connections SET last_ok_at = NULL, step_ups = '[{"at": "2026-01-01", "scopes": "a"}]',
                         recording_until = now() + interval '1 day' WHERE connection_id = $1 RETURNING id)
       INSERT INTO recorded_calls (connection_id, tool, sealed, bytes) SELECT id, 'a', 'b', 1 FROM c`,
      [connectionId],
    );
    expect(await rowOf(connectionId)).toMatchObject({ tokens: 1, clients: 1, recorded: 1 });
    const moved = await app.as(owner).put(path, { mcpUrl: next.url });
    expect(moved).toMatchObject({ status: 200, body: { status: { state: 'connected' } } });
    expect(moved.body).not.toHaveProperty('oauth');
    expect(await rowOf(connectionId)).toMatchObject({
      ...{
        tokens: 0,
        logins: 0,
        clients: 0,
        recorded: 0,
        recording_until: null,
        step_ups: [],
        status_challenges: null,
      },
      ...{ sealed_headers: null, oauth: null, sealed_oauth_secret: null },
    });
    expect(next.requests.some(({ headers }) => headers.authorization !== undefined)).toBe(false);
    // The link of the old address is over.
    expect((await personAt(app).open(setupUrl)).html).not.toContain(provider.origin);
  });
});
