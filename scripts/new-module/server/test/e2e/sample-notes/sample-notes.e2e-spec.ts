import { afterAll, beforeAll, beforeEach, describe, expect } from '@jest/globals';
import { startApp, type TestAccount, type TestApp } from '../../support/app.js';
import { createServer } from '../../support/factories.js';
import { verifies } from '../../support/verifies.js';

let app: TestApp;
let owner: TestAccount;
let other: TestAccount;
let server: string;
let path: string;

beforeAll(async () => {
  app = await startApp({ PUBLIC_READS: 'true' });
  owner = await app.account();
  other = await app.account();
});
beforeEach(async () => {
  server = `/servers/${encodeURIComponent(await createServer(app, owner))}`;
  path = `${server}/sample-notes`;
});
afterAll(() => app.close());

describe('sample notes', () => {
  verifies('sample-notes:put', 'are counted once for each account, which removes only its own', async () => {
    for (const count of [1, 1]) {
      const { status, body } = await app.as(owner).put(path);
      expect([status, body]).toEqual([200, { count, mine: true }]);
    }
    expect((await app.as(other).get(path)).body).toEqual({ count: 1, mine: false });
    expect((await app.as(other).delete(path)).body).toEqual({ count: 1, mine: false });
    expect((await app.as(other).put(path)).body).toEqual({ count: 2, mine: true });
    expect((await app.as(owner).delete(path)).body).toEqual({ count: 1, mine: false });
  });

  verifies('sample-notes:card', 'are counted on the cards of servers', async () => {
    const none = `/servers/${encodeURIComponent(await createServer(app, owner))}`;
    await app.as(other).put(path);
    expect((await app.as(owner).get(server)).body.sampleNotes).toBe(1);
    expect((await app.as(owner).get(none)).body.sampleNotes).toBe(0);
    const { servers } = (await app.as(owner).get('/servers?fields=sampleNotes')).body;
    expect(servers).toEqual(expect.arrayContaining([{ sampleNotes: 1 }, { sampleNotes: 0 }]));
  });

  verifies('sample-notes:read', 'are counted without a key, and need one to change', async () => {
    await app.as(owner).put(path);
    expect((await app.as().get(path)).body).toEqual({ count: 1, mine: false });
    expect((await app.as().put(path)).status).toBe(401);
    expect((await app.as().delete(path)).status).toBe(401);
  });

  verifies('sample-notes:deleted', 'go with their server', async () => {
    const account = await app.account();
    await app.as(account).put(path);
    await app.as(owner).delete(server);
    for (const { status, body } of [await app.as(account).get(path), await app.as(account).put(path)]) {
      expect([status, body]).toEqual([404, { error: 'Server not found' }]);
    }
    expect(await app.database.query('SELECT * FROM sample_notes WHERE account_id = $1', [account.id])).toEqual([]);
  });
});
