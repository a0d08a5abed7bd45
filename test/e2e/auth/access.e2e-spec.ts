import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createApp } from '../../../src/app.setup.js';
import { declarationOf } from '../../../src/modules/auth/access.service.js';
import { generateApiKey } from '../../../src/modules/auth/api-key.js';
import { ServersController } from '../../../src/modules/servers/servers.controller.js';
import { ACCESS } from '../../../src/platform/http/public.decorator.js';
import { RESERVED_NAMESPACES } from '../../../src/platform/http/resource-names.js';
import type { Route } from '../../../src/platform/http/route-table.js';
import { openToEveryKey, operatorOnly } from '../../support/access/access-matrix.js';
import {
  CANARY,
  documented,
  Estates,
  isMcp,
  isPublishing,
  nameOf,
  pathOf,
  unfit,
  type Estate,
  type Visit,
} from '../../support/access/estates.js';
import { testAccount, testApp, uniqueName } from '../../support/app.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
let estates: Estates;
let estate: Estate;
const stranger = testAccount(app);

beforeAll(async () => {
  estates = await Estates.in(app);
  estate = await estates.create();
});
afterAll(async () => {
  await estates.close();
});

const visit = (route: Route, authorization: string | undefined, options?: Parameters<Estates['visit']>[3]) =>
  estates.visit(route, estate, authorization, options);

async function walk(chosen: Route[], authorization: string | undefined): Promise<Visit[]> {
  const visits: Visit[] = [];
  for (const route of chosen) visits.push(await visit(route, authorization));
  return visits;
}

/** Says what is wrong with the answer to a request without a valid key; nothing when all is right. */
function faultsOf401({ name, path, response: { status, headers, body } }: Visit): string[] {
  const faults = (isRight: boolean, what: string) => (isRight ? [] : [`${name}: ${what}, ${JSON.stringify(body)}`]);
  const isConnect = path.startsWith('/connect');
  const keys = Object.keys(body as object).join();
  const isRightBody = isMcp(path)
    ? body.jsonrpc === '2.0' && body.id === null && typeof body.error.message === 'string'
    : isConnect
      ? body.error === 'unauthorized' && typeof body.message === 'string' && keys === 'error,message'
      : body.error === 'Unauthorized' && keys === (isPublishing(name) ? 'error,code' : 'error');
  return [
    ...faults(status === 401, `status ${status}`),
    ...faults(isRightBody, 'wrong body'),
    ...faults(/^Bearer\b/.test(headers['www-authenticate'] ?? ''), 'no challenge'),
    ...faults(!JSON.stringify(body).includes(CANARY), 'tells too much'),
  ];
}

describe('a request without a valid key', () => {
  it('the walk covers the whole API document', async () => {
    const document = await app.as().get('/openapi.json');
    const operations = Object.entries(document.body.paths as Record<string, object>).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const walked = estates.routes.map(nameOf).map(documented);
    expect(operations.filter((name) => !walked.includes(name))).toEqual([]);
    expect(estates.guarded.length).toBeGreaterThan(20);
  });

  verifies('auth:missing', 'is refused by every route, in the shape of its prefix', async () => {
    const visits = await walk(estates.guarded, undefined);
    expect(visits.flatMap(faultsOf401)).toEqual([]);
  });

  verifies('auth:missing', 'is refused with HEAD and in the short form of connections too', async () => {
    for (const route of estates.guarded) {
      if (route.method === 'GET') {
        const { response } = await visit(route, undefined, { method: 'HEAD' });
        expect([nameOf(route), response.status]).toEqual([nameOf(route), 401]);
      }
      if (!route.path.startsWith('/connect/')) continue;
      const full = pathOf(route, estate);
      const short = await visit(route, undefined, { path: full.replace('/connect', '') });
      expect(faultsOf401({ ...short, path: full })).toEqual([]);
    }
  });

  verifies('auth:malformed', 'is refused whatever is wrong with the header', async () => {
    const { key } = estate.owner;
    const headers = [
      'Bearer',
      'Bearer ',
      'Bearer undefined',
      'Bearer not-a-key',
      `Bearer ${key.slice(0, -1)}`,
      `Bearer ${key}A`,
      `Bearer ${key} ${key}`,
      `Bearer "${key}"`,
      `Bearer${key}`,
      `Bearer ${key.toUpperCase()}`,
      `Bearer Bearer ${key}`,
      `Basic ${Buffer.from(`me:${key}`).toString('base64')}`,
      `Token ${key}`,
      key,
    ];
    for (const header of headers) {
      const faults = (await walk(estates.guarded, header)).flatMap(faultsOf401);
      expect([header.replace(key, 'KEY'), faults]).toEqual([header.replace(key, 'KEY'), []]);
    }
  });

  verifies('auth:unknown-key', 'is refused with a key that was never issued', async () => {
    expect((await walk(estates.guarded, `Bearer ${generateApiKey()}`)).flatMap(faultsOf401)).toEqual([]);
  });

  verifies('auth:expired-key', 'is refused with a key past its expiry', async () => {
    expect((await walk(estates.guarded, `Bearer ${await estates.expiredKey(estate)}`)).flatMap(faultsOf401)).toEqual(
      [],
    );
  });

  verifies('auth:body:registry', 'gets {error: "Unauthorized"} outside connections', async () => {
    const outside = estates.guarded.filter(
      (route) => !route.path.startsWith('/connect') && !isMcp(route.path) && !isPublishing(nameOf(route)),
    );
    expect(outside.length).toBeGreaterThan(8);
    for (const { response } of await walk(outside, undefined))
      expect(response.body).toEqual(expect.objectContaining({ error: 'Unauthorized' }));
  });

  verifies('auth:body:connect', 'gets {error: "unauthorized", message} under connections', async () => {
    const inside = estates.guarded.filter(({ path }) => path.startsWith('/connect') && !isMcp(path));
    expect(inside.length).toBeGreaterThan(8);
    for (const { response } of await walk(inside, undefined)) {
      expect(response.body).toEqual({ error: 'unauthorized', message: expect.stringContaining('API key') });
    }
  });

  verifies('auth:missing', 'receives neither validation errors nor the existence of the target', async () => {
    const nowhere = { ...estate, namespace: 'no-such-ns', server: 'no-such-ns/none', connectionId: 'none' };
    for (const route of estates.guarded) {
      const unknown = pathOf(route, { ...nowhere, keyId: 'none', owner: { ...estate.owner, id: 'none' } });
      const faulty =
        estates.bodyOf(route, estate) === undefined ? undefined : { name: 7, kind: [], mcpUrl: {}, nonsense: true };
      for (const authorization of [undefined, `Bearer ${generateApiKey()}`]) {
        const [known, missing] = [
          await visit(route, authorization, { body: faulty }),
          await visit(route, authorization, { path: unknown }),
        ];
        expect([...faultsOf401(known), ...faultsOf401({ ...missing, path: known.path })]).toEqual([]);
        expect(missing.response.body).toEqual(known.response.body);
      }
    }
  });
});

describe('a valid key', () => {
  verifies('auth:bearer', 'is accepted by every route', async () => {
    const own = await estates.create();
    const refused: string[] = [];
    for (const route of estates.bySafety) {
      // The key that is revoked on the way is not the one that asks.
      const made = await app.as(own.owner).post('/accounts/me/api-keys', { name: 'to be revoked' });
      const target = { ...own, keyId: made.body.id as string };
      const scheme = route.method === 'DELETE' ? 'Bearer' : 'bearer';
      const { response } = await visit(route, `${scheme} ${own.owner.key}`, {
        path: pathOf(route, target),
        body: estates.bodyOf(route, own),
      });
      const isOperators = operatorOnly.has(documented(nameOf(route)));
      const isMethodRefused = isMcp(route.path) && route.method !== 'POST';
      const allowed = isOperators ? 403 : isMethodRefused ? 405 : (unfit[nameOf(route)] ?? 299);
      if (response.status > allowed || (allowed > 299 && response.status !== allowed)) {
        refused.push(`${nameOf(route)}: ${response.status} ${response.text}`);
      }
    }
    expect(refused).toEqual([]);
    expect(await estates.stateOf(own)).toMatchObject({ namespaces: expect.any(Array), servers: [], connections: [] });
  });

  it('routes without a key are those of monitors, of people with a setup link and of our own processes, and need none', async () => {
    const open = estates.routes.filter((route) => declarationOf(route) === 'public');
    const setup = ['GET /oauth/callback', 'GET /oauth/client.json', 'GET /setup/*path', 'POST /setup/*path'];
    // Internal requests and the metrics have secrets of their own.
    const internal = [
      'GET /metrics',
      'POST /internal/hosting/:host/:epoch',
      'POST /internal/resumed-streams',
      'POST /internal/sse-streams',
      'POST /internal/pending-calls',
      'POST /internal/uplink/:connection/:tunnel',
    ];
    // They need a session or the secret of a link, or begin a session.
    const people = [
      ...['consent/:uid', 'invite', 'login'].map((page) => `GET /${page}`),
      ...['consent/:uid', 'invite', 'login', 'logout'].map((page) => `POST /${page}`),
      // What the pages of people look like.
      ...['GET /ui/mark.svg', 'GET /ui/script.js', 'GET /ui/style.css'],
    ];
    expect(open.map(nameOf).toSorted()).toEqual(
      ['GET /health', ...setup, ...people, 'GET /ready', ...internal].toSorted(),
    );
    const monitored = open.filter((route) => ![...setup, ...people, ...internal].includes(nameOf(route)));
    for (const { response } of await walk(monitored, undefined)) expect(response.status).toBe(200);
    for (const { response } of await walk(monitored, 'Bearer nonsense')) expect(response.status).toBe(200);
    for (const { response } of await walk(open, 'Bearer nonsense')) expect(response.status).not.toBe(401);
  });
});

describe('a key of another account', () => {
  /** Walks all routes with the owner's paths; returns what went wrong. */
  async function trespass(key: string, chosen: Route[]): Promise<string[]> {
    const before = await estates.stateOf(estate);
    const asked = estates.upstream.requests.length;
    const faults: string[] = [];
    for (const route of chosen) {
      const { response, name } = await visit(route, `Bearer ${key}`);
      if (openToEveryKey.has(documented(name))) continue;
      if (![403, 404].includes(response.status)) faults.push(`${name}: ${response.status} ${response.text}`);
      if (response.text.includes(CANARY)) faults.push(`${name} tells too much: ${response.text}`);
    }
    expect(estates.upstream.requests.length).toBe(asked);
    expect(await estates.stateOf(estate)).toEqual(before);
    return faults;
  }

  verifies('auth:owner:every-route', 'reads no connection and changes nothing, by any route', async () => {
    expect(await trespass(stranger.key, estates.guarded)).toEqual([]);
    const { namespace, owner } = estate;
    expect((await app.as(stranger).put(`/namespaces/${namespace}`)).status).toBe(409);
    const list = await app.as(stranger).get('/namespaces');
    expect(list.body.namespaces.map(({ name }: { name: string }) => name)).not.toContain(namespace);
    expect((await app.as(owner).get(`/connect/${namespace}`)).body.connections).toHaveLength(1);
  });

  verifies(
    'auth:owner:every-route',
    'gets the same answers for existing and missing connections of the owner',
    async () => {
      const missing = { ...estate, namespace: uniqueName('none'), connectionId: 'none' };
      for (const route of estates.guarded.filter(({ path }) => path.startsWith('/connect/'))) {
        const authorization = `Bearer ${stranger.key}`;
        const foreign = await visit(route, authorization);
        const none = await visit(route, authorization, { path: pathOf(route, missing) });
        const { namespace } = estate;
        const own = await app.as(stranger).put(`/namespaces/${uniqueName('own')}`);
        const inOwn = await visit(route, authorization, {
          path: pathOf(route, { ...estate, namespace: own.body.name as string, connectionId: 'none' }),
        });
        const told = ({ response: { status, text, headers } }: Visit) => [
          status,
          text,
          Object.keys(headers).toSorted(),
        ];
        expect([nameOf(route), ...told(foreign)]).toEqual([nameOf(route), ...told(none)]);
        // A missing connection in an own namespace differs only in the hint, except on routes that create or list.
        const withoutHint = ({ response: { text } }: Visit) => text.replace(/,"data":\{"hint":"(?:[^"\\]|\\.)*"\}/, '');
        if (inOwn.response.status === 404) expect(withoutHint(foreign)).toEqual(withoutHint(inOwn));
        expect(foreign.response.text).not.toContain(namespace);
      }
    },
  );

  verifies('operator:owns-nothing', 'the operator’s key opens nothing but accounts and its own routes', async () => {
    const rest = estates.guarded.filter(
      (route) => !route.path.startsWith('/accounts') && !operatorOnly.has(documented(nameOf(route))),
    );
    expect(rest.length).toBeGreaterThan(15);
    expect(await trespass(app.operator.key, rest)).toEqual([]);
  });
});

describe('the start', () => {
  const handler = ServersController.prototype.get as unknown as object;

  verifies('auth:declared', 'is refused when a route declares no access rule', async () => {
    const rule = Reflect.getMetadata(ACCESS, handler) as unknown;
    Reflect.deleteMetadata(ACCESS, handler);
    try {
      const start = createApp(app.env, { preview: true });
      await expect(start).rejects.toThrow('GET /servers/:qualifiedName declares neither @Access(…) nor @Public()');
    } finally {
      Reflect.defineMetadata(ACCESS, rule, handler);
    }
    await expect(createApp(app.env, { preview: true })).resolves.toBeDefined();
  });

  verifies(
    ['auth:declared', 'path:reserved-first-segment'],
    'reserves the first segment of every route, so that no namespace can shadow one',
    async () => {
      const names = RESERVED_NAMESPACES as Set<string>;
      names.delete('servers');
      await createApp(app.env, { preview: true });
      expect(names).toContain('servers');
      expect(estates.routes.map(({ path }) => path.split('/')[1] ?? '').filter((first) => !names.has(first))).toEqual(
        [],
      );
    },
  );
});
