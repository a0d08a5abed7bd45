import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import supertest from 'supertest';
import { createApp } from '../../../src/app.setup.js';
import { declarationOf } from '../../../src/modules/auth/access.service.js';
import { generateApiKey, hashApiKey, prefixOf } from '../../../src/modules/auth/api-key.js';
import { ServersController } from '../../../src/modules/servers/servers.controller.js';
import { ToolOutputsService } from '../../../src/modules/tool-schemas/tool-outputs.service.js';
import { RESERVED_NAMESPACES } from '../../../src/platform/http/resource-names.js';
import { ACCESS } from '../../../src/platform/http/public.decorator.js';
import { routeTable, type Route } from '../../../src/platform/http/route-table.js';
import { startApp, uniqueName, type TestAccount, type TestApp } from '../../support/app.js';
import { loadWalks } from '../../support/documentation/api-walk.js';
import { createConnection, createServer } from '../../support/factories.js';
import { images, uploadIcon } from '../../support/releases/icons.js';
import { published as publishedRelease, releaseIn, serverRow } from '../../support/releases/releases.js';
import { startRepositoryHost, type RepositoryHost } from '../../support/releases/repository-host.js';
import { pathOf as pathTo } from '../../support/database/server-rows.js';
import { skillMd } from '../../support/releases/skills.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { verifies } from '../../support/verifies.js';
import { zipOf } from '../../support/zips.js';

/** Things of one owner that fill the parameters of every route. */
interface Estate {
  owner: TestAccount;
  keyId: string;
  namespace: string;
  /** `namespace/server` */
  server: string;
  releaseId: string;
  connectionId: string;
  /** What the server and the connection are granted to. */
  friend: TestAccount;
  /** The grants of the server and the connection. */
  serverGrant: string;
  connectionGrant: string;
}

/** One request of a walk through all routes. */
interface Visit {
  /** `GET /servers/:qualifiedName` */
  name: string;
  path: string;
  response: supertest.Response;
}

type Method = 'get' | 'put' | 'post' | 'delete' | 'patch' | 'head';

/** In what a stranger must not see: stored with the estate, and to be looked for in answers. */
const CANARY = 'canary-of-the-owner';

const walks = (await loadWalks()).map(([, file]) => file);
const openToEveryKey = new Set(walks.flatMap((file) => file.openToEveryKey ?? []));
const bodiesOfWalks: Record<string, object> = Object.assign({}, ...walks.map((file) => file.bodies));

let app: TestApp;
let upstream: Upstream;
/** Behind the servers, which anybody with a key may call. */
let published: Upstream;
/** Host of the Git repositories of skills, one for each estate. */
let repositories: RepositoryHost;
/** A skill. */
let archive: Buffer;
let routes: Route[];
let estate: Estate;
let stranger: TestAccount;

beforeAll(async () => {
  [upstream, published, repositories] = await Promise.all([startUpstream(), startUpstream(), startRepositoryHost()]);
  archive = await zipOf({ 'SKILL.md': skillMd() });
  app = await startApp();
  routes = routeTable(await createApp(app.env, { preview: true }));
  estate = await createEstate();
  stranger = await app.account();
});
afterAll(async () => {
  await app.close();
  await Promise.all([upstream.close(), published.close(), repositories.close()]);
});

async function createEstate(): Promise<Estate> {
  const owner = await app.account();
  const server = await createServer(app, owner, { description: CANARY });
  const releaseId = await publishedRelease(app, owner, server, { type: 'external', upstreamUrl: published.url });
  await releaseIn(app, owner, server, releaseId, 'SUCCESS');
  const [namespace = ''] = server.split('/');
  const made = { mcpUrl: upstream.url, metadata: { note: CANARY }, headers: { 'x-note': CANARY } };
  await uploadIcon(app, owner, server, images['image/png']);
  await app.as(owner).put(pathTo(server, '/secrets'), { name: 'SECRET', value: CANARY });
  repositories.serve(`/${namespace}/skills/archive/HEAD.zip`, archive);
  await app.as(owner).put(`/skills/${namespace}/review`, { gitUrl: repositoryOf(namespace) });
  const { connectionId } = await createConnection(app, owner, made, { namespace });
  const outputs = app.get(ToolOutputsService);
  outputs.observe((await serverRow(app, server)).id, 'echo', JSON.stringify({ structuredContent: { a: 1 } }));
  await outputs.settle();
  const keys = await app.as(owner).get('/accounts/me/api-keys');
  const friend = await app.account();
  const grant = async (path: string) => {
    const { body } = await app.as(owner).post(`${path}/grants`, { account: friend.id, level: 'manage' });
    return body.id as string;
  };
  const serverGrant = await grant(pathTo(server));
  const connectionGrant = await grant(`/connect/${namespace}/${connectionId}`);
  const grants = { friend, serverGrant, connectionGrant };
  return { owner, server, releaseId, namespace, connectionId, keyId: keys.body.apiKeys[0].id, ...grants };
}

const repositoryOf = (namespace: string): string => `${repositories.url}/${namespace}/skills`;

function pathOf(route: Route, target: Estate): string {
  const { owner, keyId, namespace, server, releaseId, connectionId, serverGrant, connectionGrant } = target;
  const isSkill = route.path.startsWith('/skills/');
  const values: Record<string, string> = {
    name: namespace,
    namespace,
    qualifiedName: encodeURIComponent(server),
    server: server.split('/')[1] ?? '',
    connectionId,
    connection: releaseId,
    tunnel: '1',
    host: releaseId,
    toolPath: 'echo',
    toolName: 'echo',
    slug: isSkill ? 'review' : server.replace('/', '--'),
    path: isSkill ? 'SKILL.md' : 'mcp',
    accountId: owner.id,
    keyId,
    grantId: route.path.startsWith('/servers/') ? serverGrant : connectionGrant,
    secretName: 'SECRET',
    domainId: 'managed',
    id: releaseId,
    triggerName: 'page.updated',
    epoch: '1',
  };
  return route.path.replace(/[:*](\w+)/g, (_, param: string) => {
    const value = values[param];
    if (value === undefined) throw new Error(`Teach this test the parameter "${param}" of ${route.path}`);
    return value;
  });
}

/** A body the route accepts. */
function bodyOf({ method, path }: Route, { namespace, server, friend } = estate): object | undefined {
  const bodies: Record<string, object> = {
    'POST /accounts': { name: uniqueName('account'), kind: 'user' },
    'POST /accounts/:accountId/api-keys': { name: 'another' },
    'POST /servers/:qualifiedName/transfer': {
      targetOrganizationId: 'me',
      targetNamespace: namespace,
      targetSlug: server.split('/')[1],
    },
    'PUT /servers/:qualifiedName/verified': { verified: true },
    'POST /servers/:qualifiedName/logs': [{ logs: [{ message: CANARY }] }],
    'PUT /servers/:qualifiedName/secrets': { name: 'SECRET', value: CANARY },
    'PATCH /servers/:qualifiedName': { license: 'MIT' },
    'PATCH /servers/:qualifiedName/runtime': { logPayloads: true, egressAllow: [CANARY] },
    'PATCH /servers/:qualifiedName/domains/:domainId': { subdomain: server.replace('/', '--') },
    'POST /skills': { namespace, slug: 'review', gitUrl: repositoryOf(namespace) },
    'PUT /skills/:namespace/:slug': { gitUrl: repositoryOf(namespace) },
    'PUT /connect/:namespace/:connectionId': { mcpUrl: upstream.url },
    'POST /connect/:namespace': { mcpUrl: upstream.url },
    'POST /connect/:namespace/.mcp': { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    'POST /servers/:qualifiedName/grants': { account: friend.id, level: 'manage' },
    'POST /connect/:namespace/:connectionId/grants': { account: friend.id, level: 'manage' },
    'PUT /connect/:namespace/:connectionId/recording': { enabled: true },
    'POST /connect/:namespace/:connectionId/mcp': { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    'POST /connect/:namespace/:connectionId/.tools/*toolPath': { message: 'hello' },
    'POST /run/:slug': { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    'POST /run/:slug/*path': { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  };
  const name = `${method} ${path}`;
  return bodies[name] ?? bodiesOfWalks[documented(name)] ?? (method === 'PUT' || method === 'POST' ? {} : undefined);
}

/** True for the MCP address of a connection or a server. */
const isMcp = (path: string): boolean => /^\/connect\/.*[./]mcp$|^\/run\//.test(path);

/** True for a route that publishes a skill: its errors have a code. */
const isPublishing = (name: string): boolean => /^(PUT|POST) \/skills(\/|$)/.test(name);

const nameOf = ({ method, path }: Route): string => `${method} ${path}`;

/** The name of a route as the API document writes it. */
const documented = (name: string): string => name.replace(/[:*](\w+)/g, '{$1}');

/** Routes for the operator alone. */
const operatorOnly = new Set([
  'GET /accounts',
  'POST /accounts',
  'PATCH /accounts/:accountId/limits',
  'PUT /servers/:qualifiedName/verified',
]);

/** Routes of HEAD answer without a body, so the walks leave them to the test of HEAD. */
function guarded(): Route[] {
  return routes.filter((route) => declarationOf(route) !== 'public' && route.method !== 'HEAD');
}

/** Bodies of the routes that accept a form. */
const forms: Record<string, (request: supertest.Test) => supertest.Test> = {
  'PUT /servers/:qualifiedName/icon': (request) => request.attach('file', images['image/png'], 'icon.png'),
  'PUT /servers/:qualifiedName/releases': (request) =>
    request.field('payload', JSON.stringify({ type: 'external', upstreamUrl: published.url })),
  'PUT /skills/:namespace/:slug/upload': (request) => request.attach('archive', archive, 'archive.zip'),
};

async function visit(
  route: Route,
  authorization: string | undefined,
  { path = pathOf(route, estate), method = route.method, body = bodyOf(route) } = {},
): Promise<Visit> {
  const request = supertest(app.url)[method.toLowerCase() as Method](path);
  if (authorization !== undefined) void request.set('authorization', authorization);
  if (route.path.endsWith('/logs/stream')) void request.buffer(true).parse(headOf);
  const form = body === undefined ? undefined : forms[`${method} ${route.path}`];
  const response = await (form ? form(request) : body === undefined ? request : request.send(body));
  return { name: `${method} ${route.path}`, path, response };
}

/** Leaves an event stream that does not end by itself, and reads everything else. */
function headOf(given: supertest.Response, done: (error: Error | null, body: unknown) => void): void {
  const response = given as unknown as IncomingMessage;
  if (response.statusCode === 200) {
    response.destroy();
    given.text = '';
    done(null, {});
    return;
  }
  text(response).then(
    (read) => {
      given.text = read;
      done(null, read === '' ? {} : JSON.parse(read));
    },
    (error: Error) => done(error, null),
  );
}

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

/** Everything the owner has, as the database holds it, without what mere use changes. */
async function stateOf({ owner, namespace }: Estate): Promise<unknown> {
  const rows = (sql: string, value: string) => app.database.query(sql, [value]);
  return {
    keys: await rows(`SELECT id, name, hash, expires_at FROM api_keys WHERE account_id = $1 ORDER BY id`, owner.id),
    namespaces: await rows('SELECT * FROM namespaces WHERE account_id = $1 ORDER BY id', owner.id),
    servers: await rows(
      `SELECT to_jsonb(s) - '{use_count,popularity}'::text[] AS server FROM servers s
         JOIN namespaces n ON n.id = s.namespace_id WHERE n.name = $1 ORDER BY s.id`,
      namespace,
    ),
    secrets: await rows(
      `SELECT x.* FROM server_secrets x JOIN servers s ON s.id = x.server_id
         JOIN namespaces n ON n.id = s.namespace_id WHERE n.name = $1 ORDER BY x.id`,
      namespace,
    ),
    runtimes: await rows(
      `SELECT x.* FROM server_runtime x JOIN servers s ON s.id = x.server_id
         JOIN namespaces n ON n.id = s.namespace_id WHERE n.name = $1 ORDER BY x.server_id`,
      namespace,
    ),
    icons: await rows(
      `SELECT x.* FROM server_icons x JOIN servers s ON s.id = x.server_id
         JOIN namespaces n ON n.id = s.namespace_id WHERE n.name = $1 ORDER BY x.server_id`,
      namespace,
    ),
    releases: await rows(
      `SELECT x.* FROM releases x JOIN servers s ON s.id = x.server_id
         JOIN namespaces n ON n.id = s.namespace_id WHERE n.name = $1 ORDER BY x.id`,
      namespace,
    ),
    skills: await rows(
      `SELECT to_jsonb(x) - 'total_activations' AS skill FROM skills x
         JOIN namespaces n ON n.id = x.namespace_id WHERE n.name = $1 ORDER BY x.id`,
      namespace,
    ),
    grants: await rows(
      `SELECT g.* FROM grants g LEFT JOIN servers s ON s.id = g.server_id LEFT JOIN connections c ON c.id = g.connection_id
         JOIN namespaces n ON n.id = coalesce(s.namespace_id, c.namespace_id) WHERE n.name = $1 ORDER BY g.id`,
      namespace,
    ),
    connections: await rows(
      `SELECT c.id, c.connection_id, c.name, c.mcp_url, c.metadata, c.sealed_headers, c.revision FROM connections c
         JOIN namespaces n ON n.id = c.namespace_id WHERE n.name = $1 ORDER BY c.id`,
      namespace,
    ),
  };
}

async function expiredKey(): Promise<string> {
  const key = generateApiKey();
  await app.database.query(
    `INSERT INTO api_keys (account_id, name, prefix, hash, expires_at) VALUES ($1, 'old', $2, $3, now() - interval '1 s')`,
    [estate.owner.id, prefixOf(key), hashApiKey(key)],
  );
  return key;
}

describe('a request without a valid key', () => {
  it('the walk covers the whole API document', async () => {
    const document = await app.as().get('/openapi.json');
    const operations = Object.entries(document.body.paths as Record<string, object>).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const walked = routes.map(nameOf).map(documented);
    expect(operations.filter((name) => !walked.includes(name))).toEqual([]);
    expect(guarded().length).toBeGreaterThan(20);
  });

  it('the tables of open and operator routes name only guarded routes', () => {
    const names = guarded().map(nameOf).map(documented);
    expect([...openToEveryKey, ...[...operatorOnly].map(documented)].filter((name) => !names.includes(name))).toEqual(
      [],
    );
  });

  verifies(['auth:missing', 'auth:challenge'], 'is refused by every route, in the shape of its prefix', async () => {
    const visits = await walk(guarded(), undefined);
    expect(visits.flatMap(faultsOf401)).toEqual([]);
  });

  verifies('auth:missing', 'is refused with HEAD and in the short form of connections too', async () => {
    for (const route of guarded()) {
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

  verifies(['auth:malformed', 'auth:challenge'], 'is refused whatever is wrong with the header', async () => {
    const { key } = estate.owner;
    const headers = [
      'Bearer',
      'Bearer ',
      'Bearer undefined',
      'Bearer not-a-key',
      `Bearer ${key.slice(0, -1)}`,
      `Bearer ${key}A`,
      `Bearer ${key} ${key}`,
      `Bearer ${key},`,
      `Bearer "${key}"`,
      `Bearer${key}`,
      `Bearer ${key.toUpperCase()}`,
      `Bearer Bearer ${key}`,
      `Basic ${Buffer.from(`me:${key}`).toString('base64')}`,
      `Token ${key}`,
      key,
    ];
    for (const header of headers) {
      const faults = (await walk(guarded(), header)).flatMap(faultsOf401);
      expect([header.replace(key, 'KEY'), faults]).toEqual([header.replace(key, 'KEY'), []]);
    }
  });

  verifies(['auth:unknown-key', 'auth:challenge'], 'is refused with a key that was never issued', async () => {
    expect((await walk(guarded(), `Bearer ${generateApiKey()}`)).flatMap(faultsOf401)).toEqual([]);
  });

  verifies(['auth:expired-key', 'auth:challenge'], 'is refused with a key past its expiry', async () => {
    expect((await walk(guarded(), `Bearer ${await expiredKey()}`)).flatMap(faultsOf401)).toEqual([]);
  });

  verifies('auth:body:registry', 'gets {error: "Unauthorized"} outside connections', async () => {
    const outside = guarded().filter(
      (route) => !route.path.startsWith('/connect') && !isMcp(route.path) && !isPublishing(nameOf(route)),
    );
    expect(outside.length).toBeGreaterThan(8);
    for (const { response } of await walk(outside, undefined))
      expect(response.body).toEqual(expect.objectContaining({ error: 'Unauthorized' }));
  });

  verifies('auth:body:connect', 'gets {error: "unauthorized", message} under connections', async () => {
    const inside = guarded().filter(({ path }) => path.startsWith('/connect') && !isMcp(path));
    expect(inside.length).toBeGreaterThan(8);
    for (const { response } of await walk(inside, undefined)) {
      expect(response.body).toEqual({ error: 'unauthorized', message: expect.stringContaining('API key') });
    }
  });

  verifies('auth:before-validation', 'receives neither validation errors nor the existence of the target', async () => {
    const nowhere = { ...estate, namespace: 'no-such-ns', server: 'no-such-ns/none', connectionId: 'none' };
    for (const route of guarded()) {
      const unknown = pathOf(route, { ...nowhere, keyId: 'none', owner: { ...estate.owner, id: 'none' } });
      const faulty = bodyOf(route) === undefined ? undefined : { name: 7, kind: [], mcpUrl: {}, nonsense: true };
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

/** Status of the routes for which the estate has nothing, with the right key. */
const unfit: Record<string, number> = {
  'POST /servers/:qualifiedName/releases/:id/resume': 400,
  'GET /servers/:qualifiedName/download': 404,
  // The connection of the estate leads to a URL.
  'GET /connect/:namespace/:connectionId/uplink': 404,
  // Its server has no triggers.
  'GET /connect/:namespace/:connectionId/.triggers/:triggerName': 404,
  'POST /connect/:namespace/:connectionId/.triggers/:triggerName': 400,
  'DELETE /connect/:namespace/:connectionId/.triggers/:triggerName': 400,
  // Paths of older tools.
  'POST /connect/:namespace/.subscriptions': 404,
  'DELETE /connect/:namespace/.subscriptions/:id': 404,
  'POST /connect/:namespace/:connectionId/.subscriptions': 404,
  'DELETE /connect/:namespace/:connectionId/.subscriptions/:id': 404,
  // The skill was uploaded.
  'POST /skills/:namespace/:slug/sync': 422,
};

describe('a valid key', () => {
  verifies('auth:bearer', 'is accepted by every route', async () => {
    const own = await createEstate();
    // Deletions come last, and a container after its contents.
    const order = ['/accounts', '/connect', '/skills', '/servers', '/namespaces'];
    const rank = ({ method, path }: Route) =>
      method === 'DELETE' ? order.findIndex((prefix) => path.startsWith(prefix)) : -1;
    const bySafety = guarded().toSorted((a, b) => rank(a) - rank(b) || b.path.length - a.path.length);
    const refused: string[] = [];
    for (const route of bySafety) {
      // The key that is revoked on the way is not the one that asks.
      const made = await app.as(own.owner).post('/accounts/me/api-keys', { name: 'to be revoked' });
      const target = { ...own, keyId: made.body.id as string };
      const scheme = rank(route) < 0 ? 'bearer' : 'Bearer';
      const { response } = await visit(route, `${scheme} ${own.owner.key}`, {
        path: pathOf(route, target),
        body: bodyOf(route, own),
      });
      const isOperators = operatorOnly.has(nameOf(route));
      const isMethodRefused = isMcp(route.path) && route.method !== 'POST';
      const allowed = isOperators ? 403 : isMethodRefused ? 405 : (unfit[nameOf(route)] ?? 299);
      if (response.status > allowed || (allowed > 299 && response.status !== allowed)) {
        refused.push(`${nameOf(route)}: ${response.status} ${response.text}`);
      }
    }
    expect(refused).toEqual([]);
    expect(await stateOf(own)).toMatchObject({ namespaces: expect.any(Array), servers: [], connections: [] });
  });

  it('routes without a key are those of monitors, of people with a setup link and of our own processes, and need none', async () => {
    const open = routes.filter((route) => declarationOf(route) === 'public');
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
    expect(open.map(nameOf).toSorted()).toEqual(['GET /health', ...setup, 'GET /ready', ...internal].toSorted());
    const monitored = open.filter((route) => ![...setup, ...internal].includes(nameOf(route)));
    for (const { response } of await walk(monitored, undefined)) expect(response.status).toBe(200);
    for (const { response } of await walk(monitored, 'Bearer nonsense')) expect(response.status).toBe(200);
    for (const { response } of await walk(open, 'Bearer nonsense')) expect(response.status).not.toBe(401);
  });
});

describe('a key of another account', () => {
  /** Walks all routes with the owner's paths; returns what went wrong. */
  async function trespass(key: string, chosen: Route[]): Promise<string[]> {
    const before = await stateOf(estate);
    const asked = upstream.requests.length;
    const faults: string[] = [];
    for (const route of chosen) {
      const { response, name } = await visit(route, `Bearer ${key}`);
      if (openToEveryKey.has(documented(name))) continue;
      if (![403, 404].includes(response.status)) faults.push(`${name}: ${response.status} ${response.text}`);
      if (response.text.includes(CANARY)) faults.push(`${name} tells too much: ${response.text}`);
    }
    expect(upstream.requests.length).toBe(asked);
    expect(await stateOf(estate)).toEqual(before);
    return faults;
  }

  verifies('auth:owner:every-route', 'reads no connection and changes nothing, by any route', async () => {
    expect(await trespass(stranger.key, guarded())).toEqual([]);
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
      for (const route of guarded().filter(({ path }) => path.startsWith('/connect/'))) {
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
    const rest = guarded().filter((route) => !route.path.startsWith('/accounts') && !operatorOnly.has(nameOf(route)));
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
      expect(routes.map(({ path }) => path.split('/')[1] ?? '').filter((first) => !names.has(first))).toEqual([]);
    },
  );
});
