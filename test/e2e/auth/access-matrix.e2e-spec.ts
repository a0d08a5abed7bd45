import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import WebSocket from 'ws';
import { callers, type CallerName } from '../../support/access/access-kinds.js';
import { matrix, pages } from '../../support/access/access-matrix.js';
import { documented, Estates, nameOf, pathOf, type Estate } from '../../support/access/estates.js';
import { testAccount, testApp, type TestAccount } from '../../support/app.js';
import { pathOf as pathTo } from '../../support/database/server-rows.js';
import { createConnection, createNamespace } from '../../support/factories.js';
import { LoginClient } from '../../support/oauth-clients/login.js';
import { signedInBrowser } from '../../support/people/browser-session.js';
import { verifies } from '../../support/verifies.js';

const SLOW_MS = 180_000;

/** Callers that may change nothing share one estate. */
const harmless = new Set<CallerName>(['none', 'wrong', 'expired', 'revoked', 'stranger', 'elsewhere']);

const app = testApp();
let estates: Estates;
const stranger = testAccount(app);

beforeAll(async () => {
  estates = await Estates.in(app);
});
afterAll(async () => {
  await estates.close();
});

async function keyOf(account: TestAccount, scopes?: string[]): Promise<{ id: string; key: string }> {
  const { status, body } = await app.as(account).post('/accounts/me/api-keys', { name: 'of the matrix', scopes });
  expect(status).toBe(201);
  return body as { id: string; key: string };
}

/** The Authorization header of a caller in an estate; undefined for none. */
async function headerOf(caller: CallerName, estate: Estate): Promise<string | undefined> {
  const { owner, friend, guest } = estate;
  const bearer = async (account: TestAccount, scopes: string[]) => `Bearer ${(await keyOf(account, scopes)).key}`;
  switch (caller) {
    case 'none':
      return undefined;
    case 'wrong':
      return 'Bearer not-a-key';
    case 'expired':
      return `Bearer ${await estates.expiredKey(estate)}`;
    case 'revoked': {
      const { id, key } = await keyOf(owner);
      await app.as(owner).delete(`/accounts/me/api-keys/${id}`);
      return `Bearer ${key}`;
    }
    case 'stranger':
      return `Bearer ${stranger.key}`;
    case 'read':
    case 'call':
    case 'publish':
    case 'manage':
      return bearer(owner, [caller]);
    case 'elsewhere':
      return bearer(owner, [`manage:${await createNamespace(app, owner)}`]);
    case 'guest':
      return `Bearer ${guest.key}`;
    case 'friend':
      return `Bearer ${friend.key}`;
    case 'owner':
      return `Bearer ${owner.key}`;
    case 'operator':
      return `Bearer ${app.operator.key}`;
  }
}

/** An estate whose server is public or private, with a connection to a local server that is granted as the other one is. */
async function estateOf(visibility: string): Promise<Estate & { uplink: string }> {
  const estate = await estates.create();
  const { owner, namespace, friend, guest } = estate;
  const { path } = await createConnection(app, owner, { transport: 'uplink' }, { namespace });
  for (const [account, level] of [
    [friend, 'manage'],
    [guest, 'call'],
  ] as const) {
    await app.as(owner).post(`${path}/grants`, { account: account.id, level });
  }
  const changed = await app.as(owner).patch(pathTo(estate.server), { visibility });
  expect(changed.status).toBe(200);
  return { ...estate, uplink: path };
}

/** The status of an upgrade to a WebSocket; 101 when it is accepted. */
function upgrade(path: string, authorization: string | undefined): Promise<number> {
  const socket = new WebSocket(app.url.replace('http', 'ws') + path, {
    headers: authorization === undefined ? {} : { authorization },
  });
  return new Promise((resolve, reject) => {
    socket.on('open', () => {
      socket.close();
      resolve(101);
    });
    socket.on('unexpected-response', (request, response) => {
      request.destroy();
      resolve(response.statusCode ?? 0);
    });
    socket.on('error', reject);
  });
}

/** Everything of the owner but the keys and namespaces that the test itself makes. */
async function thingsOf(estate: Estate): Promise<object> {
  const {
    keys: _keys,
    namespaces: _namespaces,
    ...things
  } = (await estates.stateOf(estate)) as Record<string, unknown>;
  return things;
}

const UPGRADE = 'WS /connect/{namespace}/{connectionId}/uplink';

/** The status of each route, by its documented name, for a caller in an estate. */
async function walk(estate: Estate & { uplink: string }, caller: CallerName): Promise<Map<string, number>> {
  return walkWith(estate, await headerOf(caller, estate));
}

async function walkWith(
  estate: Estate & { uplink: string },
  authorization: string | undefined,
  cookie?: string,
): Promise<Map<string, number>> {
  const statuses = new Map<string, number>();
  statuses.set(UPGRADE, await upgrade(`${estate.uplink}/uplink`, authorization));
  const guarded = estates.bySafety;
  const open = estates.routes.filter((route) => !guarded.includes(route) && route.method !== 'HEAD');
  for (const route of [...open, ...guarded]) {
    // The key that is rotated or revoked on the way is not the one that asks.
    const isOfKey = route.path.includes(':keyId');
    const target = isOfKey ? { ...estate, keyId: (await keyOf(estate.owner)).id } : estate;
    const { response } = await estates.visit(route, target, authorization, { path: pathOf(route, target), cookie });
    statuses.set(documented(nameOf(route)), response.status);
  }
  return statuses;
}

/** `y`: as the owner; `-`: 401; `f`: 403; `x`: 404; `!`: anything else. */
function symbolOf(status: number, ownerStatus: number): string {
  if (status === 401) return '-';
  if (status === 403) return 'f';
  if (status === 404) return 'x';
  return status === ownerStatus || status < 400 ? 'y' : '!';
}

describe.each(['public', 'private'] as const)('every route, around a %s server', (visibility) => {
  verifies(
    'auth:matrix',
    'answers each caller as the table says',
    async () => {
      const shared = await estateOf(visibility);
      const before = await thingsOf(shared);
      const seen = new Map<CallerName, Map<string, number>>();
      for (const caller of callers) {
        seen.set(caller, await walk(harmless.has(caller) ? shared : await estateOf(visibility), caller));
      }
      const owners = seen.get('owner') as Map<string, number>;
      const actual = Object.fromEntries(
        [...owners].map(([name, ownerStatus]) => [
          name,
          callers.map((caller) => symbolOf(seen.get(caller)?.get(name) ?? 0, ownerStatus)).join(''),
        ]),
      );
      expect(actual).toEqual(matrix[visibility]);
      // Nobody of those who may not has changed anything, and all of it still answers its owner.
      expect(await thingsOf(shared)).toEqual(before);
      for (const path of [pathTo(shared.server), `/connect/${shared.namespace}/${shared.connectionId}/.tools`]) {
        expect([path, (await app.as(shared.owner).get(path)).status]).toEqual([path, 200]);
      }
    },
    SLOW_MS,
  );

  verifies(
    'auth:matrix-logins',
    'opens the endpoint of an OAuth token to it and nothing else, and nothing to a session of a browser',
    async () => {
      const estate = await estateOf(visibility);
      const { namespace, connectionId, owner } = estate;
      const before = await thingsOf(estate);
      const browser = await signedInBrowser(app, owner);
      const tokenFor = async (path: string) =>
        `Bearer ${(await new LoginClient(app, app.url + path).login(browser)).access_token}`;
      const own = new Set(
        ['GET', 'POST', 'DELETE'].map((method) => `${method} /connect/{namespace}/{connectionId}/mcp`),
      );
      const cookies = () => [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
      const statuses = {
        none: await walkWith(estate, undefined),
        token: await walkWith(estate, await tokenFor(`/connect/${namespace}/${connectionId}/mcp`)),
        foreign: await walkWith(estate, await tokenFor(`${estate.uplink}/mcp`)),
        person: await walkWith(estate, undefined, cookies()),
      };
      const signedIn = cookies();
      await browser.submit('/logout', {}, '/me');
      const all = { ...statuses, signedOut: await walkWith(estate, undefined, signedIn) };
      for (const name of Object.keys(matrix[visibility])) {
        const seen = Object.fromEntries(Object.entries(all).map(([who, found]) => [who, found.get(name)]));
        // Pages answer a person with themselves, and others with the way to sign in.
        const isPage = name === 'GET /login' || (name in pages && name.startsWith('GET '));
        const open = [200, 202, 204, 400, 405].includes(seen.token ?? 0);
        expect({
          name,
          ...seen,
          token: own.has(name) ? open : seen.token,
          ...(isPage && { person: seen.none }),
        }).toEqual({
          name,
          none: seen.none,
          token: own.has(name) ? true : seen.none,
          foreign: seen.none,
          person: seen.none,
          signedOut: seen.none,
        });
      }
      expect(await thingsOf(estate)).toEqual(before);
    },
    SLOW_MS,
  );
});
