import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startApp, type TestAccount, type TestApp } from '../../support/app.js';
import { createServer } from '../../support/factories.js';

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
  it('are counted once for each account, which removes only its own', async () => {
    for (const count of [1, 1]) {
      const { status, body } = await app.as(owner).put(path);
      expect([status, body]).toEqual([200, { count, mine: true }]);
    }
    expect((await app.as(other).get(path)).body).toEqual({ count: 1, mine: false });
    expect((await app.as(other).delete(path)).body).toEqual({ count: 1, mine: false });
    expect((await app.as(other).put(path)).body).toEqual({ count: 2, mine: true });
    expect((await app.as(owner).delete(path)).body).toEqual({ count: 1, mine: false });
  });

  it('are listed for their account, without those on servers that it may not find', async () => {
    const account = await app.account();
    const newer = await createServer(app, owner);
    const list = async () => (await app.as(account).get('/sample-notes')).body;
    const namesOf = ({ sampleNotes }: { sampleNotes: { qualifiedName: string }[] }) =>
      sampleNotes.map(({ qualifiedName }) => qualifiedName);
    for (const each of [path, `/servers/${encodeURIComponent(newer)}/sample-notes`]) await app.as(account).put(each);
    const older = decodeURIComponent(server.replace('/servers/', ''));
    expect(namesOf(await list())).toEqual([newer, older]);
    expect(namesOf((await app.as(account).get('/sample-notes?pageSize=1&page=2')).body)).toEqual([older]);
    await app.as(owner).patch(server, { visibility: 'private' });
    const listed = await list();
    expect([namesOf(listed), listed.pagination.totalCount]).toEqual([[newer], 1]);
  });

  it('are counted on the cards of servers', async () => {
    const none = `/servers/${encodeURIComponent(await createServer(app, owner))}`;
    await app.as(other).put(path);
    expect((await app.as(owner).get(server)).body.sampleNotes).toBe(1);
    expect((await app.as(owner).get(none)).body.sampleNotes).toBe(0);
    const { servers } = (await app.as(owner).get('/servers?fields=sampleNotes')).body;
    expect(servers).toEqual(expect.arrayContaining([{ sampleNotes: 1 }, { sampleNotes: 0 }]));
  });

  it('are counted without a key, and need one to change', async () => {
    await app.as(owner).put(path);
    expect((await app.as().get(path)).body).toEqual({ count: 1, mine: false });
    expect((await app.as().put(path)).status).toBe(401);
    expect((await app.as().delete(path)).status).toBe(401);
  });

  it('go with their server', async () => {
    const account = await app.account();
    await app.as(account).put(path);
    await app.as(owner).delete(server);
    for (const { status, body } of [await app.as(account).get(path), await app.as(account).put(path)]) {
      expect([status, body]).toEqual([404, { error: 'Server not found' }]);
    }
    expect(await app.database.query('SELECT * FROM sample_notes WHERE account_id = $1', [account.id])).toEqual([]);
  });
});
