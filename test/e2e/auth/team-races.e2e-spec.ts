import { beforeAll, expect } from '@jest/globals';
import supertest from 'supertest';
import { testAccount, testApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import { pathOf } from '../../support/database/server-rows.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { publishExternal } from '../../support/releases/releases.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { aloneVerifies, verifies } from '../../support/verifies.js';

const app = testApp();
/** A process that receives no message of the others: it listens on another channel. */
let deaf: TestApp;
let upstream: Upstream;
const owner = testAccount(app);
const caller = testAccount(app);

beforeAll(async () => {
  upstream = await startUpstream();
  deaf = await app.sibling({ QUEUE_PREFIX: uniqueName('deaf') });
});

/** A new organization with an owner whom no process knows yet. */
async function organization(): Promise<{ id: string; owner: TestAccount }> {
  const [{ id }, owner] = [await app.account({ kind: 'organization' }), await app.account()];
  await app.as(app.operator).put(`/accounts/${id}/members/${owner.id}`, { role: 'owner' }).expect(200);
  return { id, owner };
}

const at = (process: TestApp, account: TestAccount) => ({
  put: (path: string, body: object) =>
    supertest(process.url).put(path).auth(account.key, { type: 'bearer' }).send(body),
  patch: (path: string, body: object) =>
    supertest(process.url).patch(path).auth(account.key, { type: 'bearer' }).send(body),
});

verifies('team:races', 'an organization that is deleted during a claim owns nothing, or stays', async () => {
  for (let n = 0; n < 8; n += 1) {
    const { id, owner } = await organization();
    const namespace = uniqueName('raced');
    const [claimed, deleted] = await Promise.all([
      at(deaf, owner).put(`/namespaces/${namespace}`, { organizationId: id }),
      app.as(app.operator).delete(`/accounts/${id}`),
    ]);
    const isDeleted = deleted.status === 200;
    expect([claimed.status, deleted.status]).toEqual(isDeleted ? [expect.any(Number), 200] : [201, 409]);
    expect(await app.database.query('SELECT 1 FROM accounts WHERE id = $1', [id])).toHaveLength(isDeleted ? 0 : 1);
    const { body } = await app.as(owner).get('/namespaces');
    const names = (body.namespaces as { name: string }[]).map(({ name }) => name);
    expect([claimed.status === 201, names.includes(namespace)]).toEqual([!isDeleted, !isDeleted]);
  }
});

verifies('team:races', 'a namespace that moves during a release has the release afterwards', async () => {
  const { id, owner } = await organization();
  const namespace = await createNamespace(app, owner);
  const server = await createServer(app, owner, { namespace });
  const [, moved] = await Promise.all([
    publishExternal(app, owner, server, { upstreamUrl: upstream.url }),
    at(deaf, owner).patch(`/namespaces/${namespace}`, { organizationId: id }),
  ]);
  expect(moved.status).toBe(200);
  const { status, body } = await app.as(owner).get(pathOf(server, '/releases'));
  expect([status, body.releases]).toEqual([200, [expect.objectContaining({ status: 'SUCCESS' })]]);
});

aloneVerifies('team:races', 'a grant that expires during a stream closes it, in every process', async () => {
  const { path } = await createConnection(app, owner, { mcpUrl: upstream.url });
  const expiresAt = new Date(Date.now() + 2_000).toISOString();
  await app.as(owner).post(`${path}/grants`, { account: caller.id, level: 'call', expiresAt }).expect(201);
  const headers = { authorization: `Bearer ${caller.key}`, accept: 'text/event-stream' };
  const ends = [app, deaf].map(async ({ url }) => {
    const stream = await fetch(`${url}${path}/mcp`, { headers });
    expect(stream.status).toBe(200);
    await stream.text();
    return Date.now();
  });
  for (const endedAt of await Promise.all(ends)) {
    const lateMs = endedAt - Date.parse(expiresAt);
    expect(lateMs).toBeGreaterThan(-50);
    expect(lateMs).toBeLessThan(5_500);
  }
});
