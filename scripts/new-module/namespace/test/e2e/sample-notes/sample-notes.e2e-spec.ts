import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startApp, type TestAccount, type TestApp } from '../../support/app.js';
import { createNamespace } from '../../support/factories.js';

const notFound = { error: 'Sample note not found' };

let app: TestApp;
let owner: TestAccount;
let other: TestAccount;

beforeAll(async () => {
  app = await startApp();
  owner = await app.account();
  other = await app.account();
});
afterAll(() => app.close());

describe('sample notes', () => {
  it('are replaced by the next one of their name', async () => {
    const path = `/sample-notes/${await createNamespace(app, owner)}/first`;
    for (const text of ['Sunny', 'Rain']) {
      const written = await app.as(owner).put(path, { text });
      expect([written.status, written.body]).toEqual([200, { name: 'first', text, createdAt: expect.any(String) }]);
      expect((await app.as(owner).get(path)).body).toEqual(written.body);
    }
  });

  it('need a text and a plain name', async () => {
    const path = `/sample-notes/${await createNamespace(app, owner)}`;
    expect((await app.as(owner).put(`${path}/first`, {})).status).toBe(400);
    expect((await app.as(owner).put(`${path}/First!`, { text: 'Sunny' })).status).toBe(400);
    expect((await app.as(owner).get(path)).body.sampleNotes).toEqual([]);
  });

  it('are listed by name, page by page', async () => {
    const path = `/sample-notes/${await createNamespace(app, owner)}`;
    for (const name of ['b', 'c', 'a']) await app.as(owner).put(`${path}/${name}`, { text: name });
    for (const [page, names] of [['a', 'b'], ['c'], []].entries()) {
      const { body } = await app.as(owner).get(`${path}?pageSize=2&page=${page + 1}`);
      expect(body.sampleNotes.map(({ name }: { name: string }) => name)).toEqual(names);
      expect(body.pagination).toEqual({ currentPage: page + 1, pageSize: 2, totalPages: 2, totalCount: 3 });
    }
  });

  it('are gone when they are deleted', async () => {
    const path = `/sample-notes/${await createNamespace(app, owner)}/first`;
    await app.as(owner).put(path, { text: 'Sunny' });
    expect((await app.as(owner).delete(path)).body).toEqual({ success: true });
    for (const again of [app.as(owner).get(path), app.as(owner).delete(path)]) {
      const { status, body } = await again;
      expect([status, body]).toEqual([404, notFound]);
    }
  });

  it('need a key', async () => {
    const path = `/sample-notes/${await createNamespace(app, owner)}`;
    const asked = [
      app.as().get(path),
      app.as().get(`${path}/a`),
      app.as().put(`${path}/a`),
      app.as().delete(`${path}/a`),
    ];
    for (const { status } of await Promise.all(asked)) expect(status).toBe(401);
  });

  it('look to everybody else as if there were none', async () => {
    const path = `/sample-notes/${await createNamespace(app, owner)}`;
    await app.as(owner).put(`${path}/first`, { text: 'Sunny' });
    const stranger = app.as(other);
    const asked = [stranger.get(path), stranger.get(`${path}/first`), stranger.delete(`${path}/first`)];
    for (const { status, body } of await Promise.all([...asked, stranger.put(`${path}/first`, { text: 'Rain' })])) {
      expect([status, body]).toEqual([404, expect.objectContaining(notFound)]);
    }
    expect((await app.as(owner).get(`${path}/first`)).body.text).toBe('Sunny');
  });
});
