/**
 * Estates: the things of one owner that fill the parameters of every route, and requests to each route, for tests of access.
 */
import { randomUUID } from 'node:crypto';
import { ModulesContainer } from '@nestjs/core';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import supertest from 'supertest';
import { createApp } from '../../../src/app.setup.js';
import { declarationOf } from '../../../src/modules/auth/access.service.js';
import { generateApiKey, hashApiKey, prefixOf } from '../../../src/modules/auth/api-key.js';
import { ToolOutputsService } from '../../../src/modules/tool-schemas/tool-outputs.service.js';
import { routeTable, type Route } from '../../../src/platform/http/route-table.js';
import { uniqueName, type TestAccount, type TestApp } from '../app.js';
import { pathOf as pathTo } from '../database/server-rows.js';
import { loadWalks } from '../documentation/api-walk.js';
import { createConnection, createServer } from '../factories.js';
import { images, uploadIcon } from '../releases/icons.js';
import { published as publishedRelease, releaseIn, serverRow } from '../releases/releases.js';
import { startRepositoryHost, type RepositoryHost } from '../releases/repository-host.js';
import { skillMd } from '../releases/skills.js';
import { startUpstream, type Upstream } from '../upstream/upstream.js';
import { zipOf } from '../zips.js';
import { modulesWithAccess } from './access-matrix.js';

/** Things of one owner that fill the parameters of every route. */
export interface Estate {
  owner: TestAccount;
  keyId: string;
  namespace: string;
  /** `namespace/server` */
  server: string;
  releaseId: string;
  connectionId: string;
  /** What the server and the connection are granted to: `manage`, and `call`. */
  friend: TestAccount;
  guest: TestAccount;
  /** The grants of the server and the connection to the friend. */
  serverGrant: string;
  connectionGrant: string;
  /** Values for the parameters of routes that modules filled, by the documented name of the route. */
  params: Record<string, Record<string, string>>;
}

/** One request of a walk through all routes. */
export interface Visit {
  /** `GET /servers/:qualifiedName` */
  name: string;
  path: string;
  response: supertest.Response;
}

type Method = 'get' | 'put' | 'post' | 'delete' | 'patch' | 'head';

/** In what a stranger must not see: stored with the estate, and to be looked for in answers. */
export const CANARY = 'canary-of-the-owner';

const bodiesOfWalks: Record<string, object> = Object.assign({}, ...(await loadWalks()).map(([, file]) => file.bodies));

/** True for the MCP address of a connection or a server. */
export const isMcp = (path: string): boolean => /^\/connect\/.*[./]mcp$|^\/run\//.test(path);

/** True for a route that publishes a skill: its errors have a code. */
export const isPublishing = (name: string): boolean => /^(PUT|POST) \/skills(\/|$)/.test(name);

export const nameOf = ({ method, path }: Route): string => `${method} ${path}`;

/** The name of a route as the API document writes it. */
export const documented = (name: string): string => name.replace(/[:*](\w+)/g, '{$1}');

/** Status of the routes for which the estate has nothing, with the right key. */
export const unfit: Record<string, number> = {
  'POST /servers/:qualifiedName/releases/:id/resume': 400,
  'GET /servers/:qualifiedName/download': 404,
  // The connection of the estate leads to a URL.
  'GET /connect/:namespace/:connectionId/uplink': 404,
  // Its server has no triggers.
  'GET /connect/:namespace/:connectionId/.triggers/:triggerName': 404,
  'POST /connect/:namespace/:connectionId/.triggers/:triggerName': 400,
  'DELETE /connect/:namespace/:connectionId/.triggers/:triggerName': 400,
  // Its account has no password.
  'DELETE /accounts/:accountId/logins/:loginId': 404,
  // No invitation waits for it.
  'POST /accounts/:accountId/invitations/:invitationId': 404,
  'DELETE /accounts/:accountId/invitations/:invitationId': 404,
  // It is no organization.
  'POST /accounts/:organizationId/members/invitations': 409,
  'PUT /accounts/:organizationId/members/:accountId': 409,
  'DELETE /accounts/:organizationId/members/:accountId': 409,
  // The server is its own; whom to give something, and what to ask about, is not said.
  'POST /servers/:qualifiedName/access-requests': 409,
  'POST /accounts/:accountId/transfer': 400,
  'PATCH /namespaces/:name': 400,
  'POST /namespaces/:name/grants': 400,
  'DELETE /namespaces/:name/grants/:grantId': 404,
  'GET /access/check': 400,
  // The target is not said.
  'POST /accounts/me/probe': 400,
  // It owns namespaces.
  'DELETE /accounts/:accountId': 409,
  // The skill was uploaded.
  'POST /skills/:namespace/:slug/sync': 422,
};

export function pathOf(route: Route, target: Estate): string {
  const { owner, keyId, namespace, server, releaseId, connectionId, serverGrant, connectionGrant } = target;
  const isSkill = route.path.includes('/skills/');
  const values: Record<string, string> = {
    name: route.path.includes('.well-known/skills/:name') ? 'code-review' : namespace,
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
    organizationId: owner.id,
    keyId,
    grantId: route.path.startsWith('/servers/') ? serverGrant : connectionGrant,
    secretName: 'SECRET',
    domainId: 'managed',
    id: releaseId,
    triggerName: 'page.updated',
    epoch: '1',
    uid: 'none',
    loginId: 'password',
    invitationId: randomUUID(),
  };
  return route.path.replace(/[:*](\w+)/g, (_, param: string) => {
    const value = target.params[documented(nameOf(route))]?.[param] ?? values[param];
    if (value === undefined) throw new Error(`"fill" of the module's access.ts lacks "${param}" of ${route.path}`);
    return value;
  });
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
      const isJson = response.headers['content-type']?.startsWith('application/json');
      done(null, isJson ? JSON.parse(read) : {});
    },
    (error: Error) => done(error, null),
  );
}

function isPage(route: Route): boolean {
  const declared = declarationOf(route);
  return declared !== 'public' && declared?.page === true;
}

/** Makes estates in an app, and asks its routes for them. */
export class Estates {
  /** Bodies of the routes that accept a form. */
  private readonly forms: Record<string, (request: supertest.Test) => supertest.Test> = {
    'PUT /servers/:qualifiedName/icon': (request) => request.attach('file', images['image/png'], 'icon.png'),
    'PUT /servers/:qualifiedName/releases': (request) =>
      request.field('payload', JSON.stringify({ type: 'external', upstreamUrl: this.published.url })),
    'PUT /skills/:namespace/:slug/upload': (request) => request.attach('archive', this.archive, 'archive.zip'),
  };

  private constructor(
    readonly app: TestApp,
    readonly routes: Route[],
    /** Behind the connections. */
    readonly upstream: Upstream,
    /** Behind the servers, which anybody with a key may call. */
    readonly published: Upstream,
    /** Host of the Git repositories of skills, one for each estate. */
    private readonly repositories: RepositoryHost,
    /** A skill. */
    private readonly archive: Buffer,
  ) {}

  static async in(app: TestApp): Promise<Estates> {
    const parts = await Promise.all([startUpstream(), startUpstream(), startRepositoryHost()]);
    const routes = routeTable((await createApp(app.env, { preview: true })).get(ModulesContainer));
    return new Estates(app, routes, ...parts, await zipOf({ 'SKILL.md': skillMd() }));
  }

  async close(): Promise<void> {
    await Promise.all([this.upstream.close(), this.published.close(), this.repositories.close()]);
  }

  /** @param visibility of its server */
  async create(): Promise<Estate> {
    const { app, published, upstream, repositories, archive } = this;
    const owner = await app.account();
    const server = await createServer(app, owner, { description: CANARY });
    const releaseId = await publishedRelease(app, owner, server, { type: 'external', upstreamUrl: published.url });
    await releaseIn(app, owner, server, releaseId, 'SUCCESS');
    const [namespace = ''] = server.split('/');
    const made = { mcpUrl: upstream.url, metadata: { note: CANARY }, headers: { 'x-note': CANARY } };
    await uploadIcon(app, owner, server, images['image/png']);
    await app.as(owner).put(pathTo(server, '/secrets'), { name: 'SECRET', value: CANARY });
    repositories.serve(`/${namespace}/skills/archive/HEAD.zip`, archive);
    await app.as(owner).put(`/skills/${namespace}/review`, { gitUrl: this.repositoryOf(namespace) });
    const { connectionId } = await createConnection(app, owner, made, { namespace });
    const outputs = app.get(ToolOutputsService);
    outputs.observe((await serverRow(app, server)).id, 'echo', JSON.stringify({ structuredContent: { a: 1 } }));
    await outputs.settle();
    const keys = await app.as(owner).get('/accounts/me/api-keys');
    const [friend, guest] = await Promise.all([app.account(), app.account()]);
    const grant = async (path: string, { id }: TestAccount, level: string) => {
      const { body } = await app.as(owner).post(`${path}/grants`, { account: id, level });
      return body.id as string;
    };
    const connection = `/connect/${namespace}/${connectionId}`;
    const serverGrant = await grant(pathTo(server), friend, 'manage');
    const connectionGrant = await grant(connection, friend, 'manage');
    for (const path of [pathTo(server), connection]) await grant(path, guest, 'call');
    const grants = { friend, guest, serverGrant, connectionGrant };
    const keyId = keys.body.apiKeys[0].id as string;
    const estate: Estate = { owner, server, releaseId, namespace, connectionId, keyId, ...grants, params: {} };
    for (const { access, pages, fill } of modulesWithAccess) {
      const params = await fill?.(app, estate);
      for (const route of Object.keys({ ...access, ...pages })) estate.params[route] = params ?? {};
    }
    return estate;
  }

  /** Routes that take a key. Those of HEAD answer without a body, so the walks leave them to the test of HEAD. */
  get guarded(): Route[] {
    const isOpen = (route: Route) => declarationOf(route) === 'public' || isPage(route);
    return this.routes.filter((route) => !isOpen(route) && route.method !== 'HEAD');
  }

  /** Routes that take the session of a browser. */
  get pages(): Route[] {
    return this.routes.filter(isPage);
  }

  /** The guarded routes, deletions last, and a container after its contents. */
  get bySafety(): Route[] {
    const order = ['/accounts', '/connect', '/skills', '/servers', '/namespaces'];
    const rank = ({ method, path }: Route) =>
      method === 'DELETE' ? 1 + order.findIndex((prefix) => path.startsWith(prefix)) : -1;
    return this.guarded.toSorted((a, b) => rank(a) - rank(b) || b.path.length - a.path.length);
  }

  /** A body the route accepts. */
  bodyOf({ method, path }: Route, { namespace, server, friend }: Estate): object | undefined {
    const { upstream } = this;
    const bodies: Record<string, object> = {
      'POST /accounts': { name: uniqueName('account'), kind: 'user' },
      'POST /accounts/:accountId/api-keys': { name: 'another' },
      'PATCH /accounts/:accountId/limits': { limits: {} },
      'PUT /accounts/me/time-zone': { timeZone: 'Europe/Berlin' },
      'POST /accounts/:organizationId/members/invitations': { role: 'member' },
      'PUT /accounts/:organizationId/members/:accountId': { role: 'member' },
      'POST /accounts/:accountId/api-keys/:keyId/rotate': {},
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
      'POST /skills': { namespace, slug: 'review', gitUrl: this.repositoryOf(namespace) },
      'PUT /skills/:namespace/:slug': { gitUrl: this.repositoryOf(namespace) },
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

  async visit(
    route: Route,
    estate: Estate,
    authorization: string | undefined,
    {
      path = pathOf(route, estate),
      method = route.method,
      body = this.bodyOf(route, estate),
      cookie = undefined as string | undefined,
    } = {},
  ): Promise<Visit> {
    const request = supertest(this.app.url)[method.toLowerCase() as Method](path);
    if (authorization !== undefined) void request.set('authorization', authorization);
    if (cookie !== undefined) void request.set('cookie', cookie);
    if (route.path.endsWith('/logs/stream')) void request.buffer(true).parse(headOf);
    const form = body === undefined ? undefined : this.forms[`${method} ${route.path}`];
    const response = await (form ? form(request) : body === undefined ? request : request.send(body));
    return { name: `${method} ${route.path}`, path, response };
  }

  /** Everything the owner has, as the database holds it, without what mere use changes. */
  async stateOf({ owner, namespace }: Estate): Promise<unknown> {
    const rows = (sql: string, value: string) => this.app.database.query(sql, [value]);
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

  /** A key of the estate's owner that has expired. */
  async expiredKey({ owner }: Estate): Promise<string> {
    const key = generateApiKey();
    await this.app.database.query(
      `INSERT INTO api_keys (account_id, name, prefix, hash, expires_at) VALUES ($1, 'old', $2, $3, now() - interval '1 s')`,
      [owner.id, prefixOf(key), hashApiKey(key)],
    );
    return key;
  }

  private repositoryOf(namespace: string): string {
    return `${this.repositories.url}/${namespace}/skills`;
  }
}
