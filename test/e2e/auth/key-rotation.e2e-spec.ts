import { randomUUID } from 'node:crypto';
import { describe, expect } from '@jest/globals';
import { testAccount, testApp, type TestAccount } from '../../support/app.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const DAY_MS = 24 * 60 * 60_000;

const app = testApp();
const owner = testAccount(app);

interface Key {
  id: string;
  key: string;
  name: string;
  scopes: string[] | null;
  expiresAt: string | null;
  replacedBy: string | null;
}

async function makeKey(more: object = {}): Promise<Key> {
  const { body, status } = await app.as(owner).post('/accounts/me/api-keys', { name: 'agent', ...more });
  expect(status).toBe(201);
  return body as Key;
}

const rotate = (id: string, body: object = {}, by: TestAccount = owner) =>
  app.as(by).post(`/accounts/me/api-keys/${id}/rotate`, body);

async function listed(id: string): Promise<Key> {
  const { body } = await app.as(owner).get('/accounts/me/api-keys');
  return body.apiKeys.find((key: Key) => key.id === id);
}

const statusOf = async ({ key }: Key, of = app) => (await of.as({ ...owner, key }).get('/accounts/me')).status;

describe('POST /accounts/{id}/api-keys/{keyId}/rotate', () => {
  verifies(
    'key:rotate',
    'answers a new key of the same name and scopes once; the old one works on for a day',
    async () => {
      const old = await makeKey({ scopes: ['call:acme', 'read'] });
      const rotatedAt = Date.now();
      const { status, body, headers } = await rotate(old.id);
      expect([status, headers['cache-control']]).toEqual([201, 'no-store']);
      expect(body).toMatchObject({ name: 'agent', scopes: ['call:acme', 'read'], expiresAt: null, replacedBy: null });
      expect([body.id === old.id, body.key === old.key]).toEqual([false, false]);
      expect([await statusOf(old), await statusOf(body)]).toEqual([200, 200]);
      const { replacedBy, expiresAt } = await listed(old.id);
      expect(replacedBy).toBe(body.id);
      const overlap = Date.parse(expiresAt ?? '') - rotatedAt;
      expect(overlap).toBeGreaterThan(DAY_MS - 5_000);
      expect(overlap).toBeLessThan(DAY_MS + 60_000);
      expect((await app.as(owner).get('/accounts/me/api-keys')).text).not.toContain(body.key);
    },
  );

  verifies('key:rotate', 'revokes the old one immediately without an overlap, in each process', async () => {
    const elsewhere = await app.sibling();
    try {
      const old = await makeKey();
      expect([await statusOf(old), await statusOf(old, elsewhere)]).toEqual([200, 200]);
      const { body } = await rotate(old.id, { overlapSeconds: 0 });
      expect([await statusOf(old), await statusOf(body)]).toEqual([401, 200]);
      await until(async () => (await statusOf(old, elsewhere)) === 401, 'the other process refuses it');
      expect(await statusOf(body, elsewhere)).toBe(200);
    } finally {
      await elsewhere.close();
    }
  });

  verifies(
    'key:rotate',
    'never lets the old one live longer, and gives the new one the expiry of the body',
    async () => {
      const expiresAt = new Date(Date.now() + 60 * 60_000).toISOString();
      const old = await makeKey({ expiresAt });
      const next = '2099-01-01T00:00:00.000Z';
      const { body } = await rotate(old.id, { overlapSeconds: 604_800, expiresAt: next });
      expect([body.expiresAt, (await listed(old.id)).expiresAt]).toEqual([next, expiresAt]);
    },
  );

  verifies('key:rotate', 'lets a key rotate itself', async () => {
    const old = await makeKey();
    expect((await rotate(old.id, {}, { ...owner, key: old.key })).status).toBe(201);
  });

  verifies('key:expiry-of-maker', 'a key that expires makes and rotates none that outlives it', async () => {
    const expiresAt = new Date(Date.now() + 60 * 60_000).toISOString();
    const later = '2099-01-01T00:00:00.000Z';
    const short = await makeKey({ expiresAt, scopes: ['manage'] });
    const by = { ...owner, key: short.key };
    const make = (body: object) => app.as(by).post('/accounts/me/api-keys', { name: 'b', scopes: ['read'], ...body });
    const sooner = new Date(Date.now() + 60_000).toISOString();
    expect([(await make({})).body.expiresAt, (await make({ expiresAt: sooner })).body.expiresAt]).toEqual([
      expiresAt,
      sooner,
    ]);
    for (const refused of [await make({ expiresAt: later }), await rotate(short.id, { expiresAt: later }, by)]) {
      expect([refused.status, refused.body.error]).toEqual([400, expect.stringContaining(`later than ${expiresAt}`)]);
    }
    const rotated = await rotate(short.id, {}, by);
    expect([rotated.status, rotated.body.expiresAt]).toEqual([201, expiresAt]);
  });

  verifies('key:rotate', 'refuses wrong values, keys of others, and a key that has been replaced', async () => {
    const { id } = await makeKey();
    for (const overlapSeconds of [-1, 604_801, 1.5, 'long']) {
      const { status, body } = await rotate(id, { overlapSeconds });
      expect([overlapSeconds, status, body]).toEqual([
        overlapSeconds,
        400,
        { error: expect.stringMatching(/^overlapSeconds must/) },
      ]);
    }
    expect((await rotate(id, { expiresAt: '2001-01-01T00:00:00Z' })).status).toBe(400);
    const stranger = await app.account();
    for (const answer of [await rotate(id, {}, stranger), await rotate(randomUUID()), await rotate('none')]) {
      expect([answer.status, answer.body]).toEqual([404, { error: 'API key not found' }]);
    }
    const answers = await Promise.all([rotate(id), rotate(id), rotate(id)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409]);
    const again = await rotate(id);
    const made = answers.find(({ status }) => status === 201)?.body as Key;
    expect(again.body).toEqual({ error: `This API key was replaced by ${made.id}: rotate that one` });
    // A replacement that was revoked leaves the old key to be rotated again.
    await app.as(owner).delete(`/accounts/me/api-keys/${made.id}`);
    expect((await rotate(id)).status).toBe(201);
  });

  verifies('key:rotate', 'is refused to a key with fewer rights than the one it rotates', async () => {
    const [all, manager, caller] = [
      await makeKey(),
      await makeKey({ scopes: ['manage'] }),
      await makeKey({ scopes: ['call'] }),
    ];
    const by = ({ key }: Key) => ({ ...owner, key });
    const refused = await rotate(all.id, {}, by(manager));
    expect([refused.status, refused.body]).toEqual([
      403,
      {
        error: expect.stringMatching(
          /^Forbidden: an API key cannot create a key with broader scopes than its own: manage/,
        ),
      },
    ]);
    expect((await listed(all.id)).replacedBy).toBeNull();
    expect((await rotate(caller.id, {}, by(caller))).body.error).toMatch(/lacks the scope "manage"/);
    expect((await rotate(caller.id, {}, by(manager))).status).toBe(201);
  });
});
