// Also run with the queue on Redis by test:long: messages between processes.
import { afterAll, beforeAll, beforeEach, describe, expect } from '@jest/globals';
import { CredentialsService } from '../../../src/modules/oauth/credentials.service.js';
import { ConnectionRefresher } from '../../../src/modules/connections/recheck/connection-rechecker.js';
import { startApp, type TestAccount, type TestApp } from '../../support/app.js';
import {
  startAuthorizationServer,
  type AuthorizationServer,
  type ProtectedUpstream,
} from '../../support/people/authorization-server.js';
import { mcp, toolCall } from '../../support/mcp/calls.js';
import { age, personAt, storedText } from '../../support/people/credentials.js';
import { createConnection, createNamespace } from '../../support/factories.js';
import { until } from '../../support/until.js';
import { freePort } from '../../support/upstream/upstream-net.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';

let app: TestApp;
/** Another process of the same service. */
let sibling: TestApp;
let owner: TestAccount;
let upstream: Upstream;
let server: AuthorizationServer;
let guarded: ProtectedUpstream;
let namespace: string;

beforeAll(async () => {
  [upstream, server] = await Promise.all([startUpstream(), startAuthorizationServer()]);
  app = await startApp({ PORT: String(await freePort()), SETUP_RETURN_ORIGINS: 'https://app.example' });
  sibling = await app.sibling({ PORT: String(await freePort()), PUBLIC_URL: app.env.baseUrl });
  owner = await app.account();
  namespace = await createNamespace(app, owner);
});

beforeEach(async () => {
  guarded = await server.protect(upstream.url);
});

afterAll(async () => {
  await Promise.all([app.close(), upstream.close(), server.close()]);
});

interface Status {
  state: string;
  reason: string;
  message?: string;
  nextStep?: string;
  setupUrl?: string;
  authorizationUrl?: string;
  lastOkAt?: string;
}

const connect = (mcpUrl = guarded.url, body: object = {}) =>
  createConnection(app, owner, { mcpUrl, ...body }, { namespace });

async function statusOf(path: string, at = app): Promise<Status> {
  const { body } = await at.as(owner).get(path);
  return (body as { status: Status }).status;
}

/** Opens the setup page of a connection and presses its button; the test's authorization server lets everybody in. */
async function authorize(path: string): Promise<string> {
  const { setupUrl = '' } = await statusOf(path);
  const person = personAt(app);
  expect(await person.open(setupUrl)).toMatchObject({ status: 200 });
  const done = await person.press(setupUrl);
  expect([done.status, done.html]).toEqual([200, expect.stringContaining('Authorized')]);
  return setupUrl;
}

async function authorized(mcpUrl = guarded.url): Promise<{ path: string; id: string }> {
  const { path, connectionId } = await connect(mcpUrl);
  await authorize(path);
  expect(await statusOf(path)).toMatchObject({ state: 'connected' });
  return { path, id: await rowIdOf(connectionId) };
}

async function rowIdOf(connectionId: string): Promise<string> {
  const [{ id }] = await app.database.query('SELECT id FROM connections WHERE connection_id = $1', [connectionId]);
  return id as string;
}

const echo = (path: string, at = app) => at.as(owner).post(`${path}/.tools/echo`, { message: 'hi' });

describe('a connection whose server requires authorization', () => {
  verifies('connection:setup:return', 'leads back to the app over the authorization server', async () => {
    const { path } = await connect();
    const { setupUrl = '' } = await statusOf(path);
    const home = 'https://app.example/done';
    const person = personAt(app);
    await person.open(`${setupUrl}&returnUrl=${encodeURIComponent(home)}`);
    const done = await person.press(setupUrl, (url) => url === home);
    expect([done.status, done.url]).toEqual([303, home]);
    expect(await statusOf(path)).toMatchObject({ state: 'connected' });
  });

  verifies(
    ['connection:state:auth-required-setup', 'connection:state:authorized', 'oauth:flow'],
    'has a status with the setup URL, and is connected in every process after the authorization',
    async () => {
      const { path, body } = await connect();
      const status = body.status as Status;
      expect(status).toMatchObject({
        state: 'auth_required',
        reason: 'unauthorized',
        setupUrl: expect.stringMatching(`^${app.env.baseUrl}/setup/connections/`),
        nextStep: expect.stringContaining('setupUrl'),
        message: expect.stringMatching(/by OAuth\. Open setupUrl of the connection in a browser, or PUT .* headers/),
      });
      expect(status.authorizationUrl).toBe(status.setupUrl);
      expect(await echo(path, sibling)).toMatchObject({ status: 409 });

      const person = personAt(app);
      const shown = await person.open(status.setupUrl ?? '');
      for (const part of [`${path.slice('/connect/'.length)}`, new URL(guarded.url).host, 'tools:read']) {
        expect(shown.html).toContain(part);
      }
      expect((await person.press(status.setupUrl ?? '')).html).toContain('Authorized');

      expect(await statusOf(path)).toEqual({
        state: 'connected',
        reason: 'ok',
        since: expect.any(String),
        lastOkAt: expect.any(String),
      });
      expect(await echo(path)).toMatchObject({ status: 200 });
      await until(async () => (await echo(path, sibling)).status === 200, 'the other process has the token');
      expect(new Set(guarded.tokens)).toEqual(new Set([server.issued.at(-1)?.accessToken]));
    },
  );

  verifies(
    ['connection:refusal:words', 'connection:setup:link'],
    'reports that to callers over REST and MCP, and never with a 401 or 404 of this service',
    async () => {
      const { path, body } = await connect();
      const { setupUrl = '' } = body.status as Status;
      for (const answer of [await echo(path), await app.as(owner).get(`${path}/.tools`)]) {
        expect([answer.status, answer.headers['x-should-retry']]).toEqual([409, 'false']);
        expect(answer.body).toEqual({
          error: 'auth_required',
          message: expect.stringContaining(`by OAuth. Open ${setupUrl} in a browser, or PUT the connection again`),
        });
      }
      const listed = await mcp(app, owner, path, { jsonrpc: '2.0', id: 1, method: 'tools/list' });
      expect(listed.status).toBe(200);
      expect(listed.body.error.message).toContain(setupUrl);
      const called = await mcp(app, owner, path, toolCall(1, 'echo', { message: 'hi' }));
      expect(called.status).toBe(200);
      expect(JSON.stringify(called.body)).toContain(setupUrl);
    },
  );

  verifies(
    ['connection:auth:own', 'oauth:secrets'],
    'shares its authorization with no other connection to the same URL',
    async () => {
      const one = await authorized();
      const token = server.issued.at(-1)?.accessToken ?? '';
      const { path, body } = await connect();
      expect(body).toMatchObject({ status: { state: 'auth_required' } });
      const before = guarded.tokens.length;
      expect(await echo(path)).toMatchObject({ status: 409 });
      expect(guarded.tokens).toHaveLength(before);
      await authorize(path);
      const own = server.issued.at(-1)?.accessToken ?? '';
      expect(own).not.toBe(token);
      for (const [at, expected] of [
        [one.path, token],
        [path, own],
      ]) {
        expect(await echo(at)).toMatchObject({ status: 200 });
        expect(guarded.tokens.at(-1)).toBe(expected);
      }
      expect(await storedText(app)).not.toContain(token);
      expect(JSON.stringify((await app.as(owner).get(path)).body)).not.toContain(own);
    },
  );

  verifies('connection:auth:own', 'sends a header of its own instead, if it has one', async () => {
    const { path } = await authorized();
    const { status } = await app.as(owner).put(path, { headers: { Authorization: 'Bearer mine' } });
    expect(status).toBe(200);
    expect(guarded.tokens.at(-1)).toBe('mine');
    expect(await statusOf(path)).toMatchObject({ state: 'auth_required' });
    await app.as(owner).put(path, { headers: {} });
    expect(await statusOf(path)).toMatchObject({ state: 'connected' });
  });
});

describe('the token of a connection', () => {
  verifies('oauth:refresh', 'is renewed ahead of its end, once, without a call', async () => {
    const { id } = await authorized();
    const before = server.refreshes;
    await grow(id, 'due');
    await Promise.all([app, sibling].map((at) => at.get(ConnectionRefresher).run()));
    // A sweep that came by itself may be the one that renews it.
    await until(() => isRenewed(id), 'it is renewed');
    await app.get(ConnectionRefresher).run();
    expect(server.refreshes - before).toBe(1);
  });

  verifies(
    'connection:state:refresh-refused',
    'sets the connection to `auth_required` immediately when its refresh is rejected, until a new authorization',
    async () => {
      const { path, id } = await authorized();
      const { refreshToken = '' } = server.issued.at(-1) ?? {};
      await revokeAt(refreshToken);
      await grow(id, 'ended');
      await sibling.get(ConnectionRefresher).run();
      // A sweep that came by itself may be the one that is refused.
      await until(async () => (await statusOf(path)).state === 'auth_required', 'the refusal is written');
      expect(await statusOf(path)).toMatchObject({
        state: 'auth_required',
        reason: 'authorization_ended',
        message: expect.stringContaining('Authorize it again'),
        setupUrl: expect.any(String),
      });
      expect(await echo(path)).toMatchObject({ status: 409, body: { error: 'auth_required' } });
      await authorize(path);
      expect(await statusOf(path)).toMatchObject({ state: 'connected' });
      expect(await echo(path)).toMatchObject({ status: 200 });
    },
  );

  verifies('oauth:remove', 'is revoked when the namespace goes, and not when that is refused', async () => {
    const inside = await createNamespace(app, owner);
    const { path } = await createConnection(app, owner, { mcpUrl: guarded.url }, { namespace: inside });
    await authorize(path);
    const { accessToken = '' } = server.issued.at(-1) ?? {};
    await app.as(owner).put(`/servers/${inside}%2Fkept`, {});
    expect((await app.as(owner).delete(`/namespaces/${inside}`)).status).toBe(409);
    expect(await echo(path)).toMatchObject({ status: 200 });
    expect(isRevoked(accessToken)).toBe(false);
    expect((await app.as(owner).delete(`/servers/${inside}%2Fkept`)).status).toBe(200);
    expect((await app.as(owner).delete(`/namespaces/${inside}`)).status).toBe(200);
    await until(() => isRevoked(accessToken), 'the authorization server hears of it');
  });
});

describe('scopes that do not reach', () => {
  verifies('connection:auth:step-up', 'are requested together with the granted ones', async () => {
    const wanting = await server.protect(upstream.url, { toolScope: 'tools:admin', challengeScope: 'tools:read' });
    const { path } = await authorized(wanting.url);
    expect(await echo(path)).toMatchObject({ status: 409, body: { error: 'auth_required' } });
    // The process that called writes the status behind the answer.
    await until(async () => (await statusOf(path, sibling)).reason === 'insufficient_scope', 'the refusal is written');
    expect(await statusOf(path, sibling)).toMatchObject({ state: 'auth_required' });
    await authorize(path);
    const asked = server.seen
      .findLast(({ endpoint }) => endpoint === 'authorize')
      ?.params.get('scope')
      ?.split(' ');
    expect(asked).toEqual(expect.arrayContaining(['tools:read', 'tools:admin']));
    expect(await echo(path)).toMatchObject({ status: 200 });
  });

  verifies('connection:auth:step-up', 'although they were granted twice are not requested a third time', async () => {
    const wanting = await server.protect(upstream.url, { toolScope: 'tools:admin', toolScopeSatisfies: false });
    const { path } = await authorized(wanting.url);
    for (let granted = 0; granted < 2; granted += 1) {
      expect(await echo(path)).toMatchObject({ status: 409 });
      expect(await statusOf(path)).toMatchObject({ reason: 'insufficient_scope' });
      await authorize(path);
    }
    expect(await echo(path)).toMatchObject({ status: 409 });
    const status = await statusOf(path);
    expect(status).toMatchObject({
      state: 'error',
      reason: 'scopes_refused',
      message: expect.stringContaining('"tools:admin" again, although they were granted 2 times'),
    });
    expect(status).not.toHaveProperty('setupUrl');
  });
});

/** Ends an authorization at its server, past us. */
async function revokeAt(token: string): Promise<void> {
  const { authorization = '', params } = server.seen.findLast(({ endpoint }) => endpoint === 'token') ?? {};
  const body = new URLSearchParams({ token, token_type_hint: 'refresh_token' });
  const clientId = params?.get('client_id');
  if (clientId) body.set('client_id', clientId);
  const secret = params?.get('client_secret');
  if (secret) body.set('client_secret', secret);
  const response = await fetch(`${server.issuer}/revoke`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...(authorization ? { authorization } : {}) },
    body,
  });
  expect(response.status).toBe(200);
}

function isRevoked(token: string): boolean {
  return server.seen.some(({ endpoint, params }) => endpoint === 'revoke' && params.get('token') === token);
}

/** True once the token of a connection is not due any more. */
async function isRenewed(id: string): Promise<boolean> {
  const sql = `SELECT 1 FROM upstream_credentials WHERE owner_id = $1 AND due_at > now() AND state = 'active'`;
  return (await app.database.query<unknown[]>(sql, [id])).length > 0;
}

/** Lets the token of a connection be due or ended, as every process sees: what they believe is at most 5 s old. */
async function grow(id: string, how: 'due' | 'ended'): Promise<void> {
  await age(app, { kind: 'connection', id }, how);
  for (const at of [app, sibling]) {
    const { cache } = at.get(CredentialsService) as unknown as { cache: { drop(key: string): void } };
    cache.drop(`connection/${id}`);
  }
}
