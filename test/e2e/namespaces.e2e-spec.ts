import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { startApp, uniqueName, type TestAccount, type TestApp } from '../support/app.js';
import { createConnection, createNamespace, createServer } from '../support/factories.js';
import { startUpstream } from '../support/upstream.js';
import { verifies } from '../support/verifies.js';

let app: TestApp;
let owner: TestAccount;
let other: TestAccount;

beforeAll(async () => {
  app = await startApp();
  owner = await app.account();
  other = await app.account();
});
afterAll(() => app.close());

describe('PUT /namespaces/{name}', () => {
  verifies('namespace:claim:created', 'a free name is claimed', async () => {
    const name = uniqueName('ns');
    const response = await app.as(owner).put(`/namespaces/${name}`);
    expect(response.status).toBe(201);
    expect(response.body).toEqual({ name, createdAt: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/) });
  });

  verifies('namespace:claim:idempotent', 'claiming one’s own name again changes nothing', async () => {
    const name = await createNamespace(app, owner);
    const [first, second] = [await app.as(owner).put(`/namespaces/${name}`), await app.as(owner).put(`/namespaces/${name}`)];
    expect(second.status).toBe(201);
    expect(second.body).toEqual(first.body);
  });
});

describe('DELETE /namespaces/{name}', () => {
  verifies('namespace:delete:cascades-connections', 'its connections go with it', async () => {
    const upstream = await startUpstream();
    const { namespace, path } = await createConnection(app, owner, { mcpUrl: upstream.url });
    expect((await app.as(owner).delete(`/namespaces/${namespace}`)).body).toEqual({ success: true, name: namespace });
    await createNamespace(app, owner, namespace);
    expect((await app.as(owner).get(path)).status).toBe(404);
    await upstream.close();
  });

  verifies('namespace:delete:holds-servers', 'a namespace with a server is kept', async () => {
    const name = await createServer(app, owner);
    const response = await app.as(owner).delete(`/namespaces/${name.split('/')[0]}`);
    expect(response.status).toBe(409);
    expect(response.headers['x-should-retry']).toBe('false');
    expect((await app.as(owner).get(`/servers/${name}`)).status).toBe(200);
    expect(other.id).not.toBe(owner.id);
  });
});
