import { expect } from '@jest/globals';
import { uniqueName, type TestAccount, type TestApp } from './app.js';

/** Claims a namespace over the API. */
export async function createNamespace(app: TestApp, owner: TestAccount, name = uniqueName('ns')): Promise<string> {
  const response = await app.as(owner).put(`/namespaces/${name}`);
  expect(response.status).toBe(201);
  return name;
}

/** Creates a server over the API; returns its qualified name. */
export async function createServer(
  app: TestApp,
  owner: TestAccount,
  overrides: {
    namespace?: string;
    server?: string;
    displayName?: string;
    description?: string;
    visibility?: string;
  } = {},
): Promise<string> {
  const { namespace = await createNamespace(app, owner), server = uniqueName('server'), ...body } = overrides;
  const name = server === '' ? namespace : `${namespace}/${server}`;
  const response = await app.as(owner).put(`/servers/${encodeURIComponent(name)}`, body);
  expect(response.status).toBe(201);
  return name;
}

/** Creates a connection over the API; returns where it is. */
export async function createConnection(
  app: TestApp,
  owner: TestAccount,
  body: Record<string, unknown>,
  { namespace, connectionId = uniqueName('conn') }: { namespace?: string; connectionId?: string } = {},
): Promise<{ namespace: string; connectionId: string; path: string; body: Record<string, unknown> }> {
  const inside = namespace ?? (await createNamespace(app, owner));
  const path = `/connect/${inside}/${connectionId}`;
  const response = await app.as(owner).put(path, body);
  expect(response.status).toBe(201);
  return { namespace: inside, connectionId, path, body: response.body as Record<string, unknown> };
}

/** An organization with these members. */
export async function createOrganization(
  app: TestApp,
  members: Partial<Record<'owner' | 'editor' | 'member' | 'guest', TestAccount>>,
): Promise<TestAccount> {
  const organization = await app.account({ kind: 'organization' });
  for (const [role, { id }] of Object.entries(members))
    await app.as(app.operator).put(`/accounts/${organization.id}/members/${id}`, { role }).expect(200);
  return organization;
}
