/**
 * The access matrix: the row of each route, written down after each was judged. A route without a row fails the test. A
 * module that is not named here declares its own routes by kind: `test/e2e/<module>/access.ts`.
 */
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { TestApp } from '../app.js';
import { always, kinds, type Kind } from './access-kinds.js';
import type { Estate } from './estates.js';

/** A file `test/e2e/<module>/access.ts`. */
export interface ModuleAccess {
  /** The kind of each route of the module, by its documented name: `PUT /notes/{namespace}/{name}`. */
  access: Record<string, Kind>;
  /** The rows of its pages, in the form of `pages`. */
  pages?: Record<string, string>;
  /**
   * Makes in a new estate what the routes read.
   *
   * @returns values for the parameters of the module's paths; those that an estate has anyway may be left out
   */
  fill?: (app: TestApp, estate: Estate) => Promise<Record<string, string>>;
}

/* The callers: n w e r s r c p m e g f o o
                o r x e t e a u a l u r w p
                n o p v r a l b n s e i n e
                e n i o a d l l a e s e e r   */
const rows: [kind: Kind, routes: string[]][] = [
  // Revoking a key, and ending logins.
  [
    kinds.ownAccountWrites,
    [
      'DELETE /accounts/{accountId}',
      'POST /accounts/{accountId}/transfer',
      'DELETE /accounts/{accountId}/api-keys/{keyId}',
      'DELETE /accounts/{accountId}/logins',
      'GET /accounts/{accountId}/changes',
    ],
  ],
  // Members of an organization; the account of the estate is none.
  [
    kinds.ownAccountWrites,
    [
      'GET /accounts/{organizationId}/members',
      'POST /accounts/{organizationId}/members/invitations',
      'PUT /accounts/{organizationId}/members/{accountId}',
      'DELETE /accounts/{organizationId}/members/{accountId}',
    ],
  ],
  // Its account has no password, and no invitation waits for it.
  [
    always('----xfffxfxxxx'),
    [
      'DELETE /accounts/{accountId}/logins/{loginId}',
      'POST /accounts/{accountId}/invitations/{invitationId}',
      'DELETE /accounts/{accountId}/invitations/{invitationId}',
    ],
  ],
  // Calling through a namespace, which is not granted.
  [
    always('----xfyfyfxxyx'),
    ['DELETE /connect/{namespace}/.mcp', 'GET /connect/{namespace}/.mcp', 'POST /connect/{namespace}/.mcp'],
  ],
  // Grants of a namespace. Its grant in the estate is one of a connection.
  [always('----xfffyfxxyx'), ['GET /namespaces/{name}/grants', 'POST /namespaces/{name}/grants']],
  [always('----xfffxfxxxx'), ['DELETE /namespaces/{name}/grants/{grantId}']],
  // What stays with the owner: deletion and grants.
  [
    kinds.ownerOnly,
    [
      'DELETE /connect/{namespace}/{connectionId}',
      'DELETE /connect/{namespace}/{connectionId}/grants/{grantId}',
      'DELETE /servers/{qualifiedName}',
      'DELETE /servers/{qualifiedName}/grants/{grantId}',
      'GET /connect/{namespace}/{connectionId}/grants',
      'GET /connect/{namespace}/{connectionId}/recording/calls',
      'GET /connect/{namespace}/{connectionId}/recording/fixture',
      'GET /servers/{qualifiedName}/grants',
      'POST /connect/{namespace}/{connectionId}/grants',
      'POST /servers/{qualifiedName}/grants',
    ],
  ],
  // Calling through a connection.
  [
    always('----xfyfyfyyyx'),
    [
      'DELETE /connect/{namespace}/{connectionId}/.triggers/{triggerName}',
      'DELETE /connect/{namespace}/{connectionId}/mcp',
      'GET /connect/{namespace}/{connectionId}/mcp',
      'POST /connect/{namespace}/{connectionId}/.tools/{toolPath}',
      'POST /connect/{namespace}/{connectionId}/.triggers/{triggerName}',
      'POST /connect/{namespace}/{connectionId}/mcp',
    ],
  ],
  // Changing what belongs to the owner.
  [
    kinds.ownerWrites,
    [
      'DELETE /connect/{namespace}/{connectionId}/recording',
      'DELETE /servers/{qualifiedName}/secrets/{secretName}',
      'PATCH /servers/{qualifiedName}/domains/{domainId}',
      'PATCH /servers/{qualifiedName}/runtime',
      'PUT /connect/{namespace}/{connectionId}',
      'PUT /connect/{namespace}/{connectionId}/recording',
      'PUT /servers/{qualifiedName}/secrets',
      'WS /connect/{namespace}/{connectionId}/uplink',
    ],
  ],
  // Changes of public records that stay with the owner: 403, since their existence is public.
  [
    always('----ffffyfffyf'),
    [
      'DELETE /namespaces/{name}',
      'PATCH /namespaces/{name}',
      'DELETE /skills/{namespace}/{slug}',
      'POST /servers/{qualifiedName}/transfer',
      'POST /skills',
      'PUT /namespaces/{namespace}/servers/{server}',
      'PUT /servers/{qualifiedName}',
    ],
  ],
  // Calling a public server.
  [
    { public: '----yfyfyfyyyy', private: '----xfyfyfyyyx' },
    [
      'DELETE /run/{slug}',
      'DELETE /run/{slug}/{path}',
      'GET /run/{slug}',
      'GET /run/{slug}/{path}',
      'OPTIONS /run/{slug}/{path}',
      'PATCH /run/{slug}/{path}',
      'POST /run/{slug}',
      'POST /run/{slug}/{path}',
      'PUT /run/{slug}/{path}',
    ],
  ],
  // Changes of public records.
  [
    always('----ffffyffyyf'),
    ['DELETE /servers/{qualifiedName}/icon', 'PATCH /servers/{qualifiedName}', 'PUT /servers/{qualifiedName}/icon'],
  ],
  // The operator alone.
  [
    kinds.operatorOnly,
    [
      'GET /accounts',
      'PATCH /accounts/{accountId}',
      'PATCH /accounts/{accountId}/limits',
      'PUT /connect/{namespace}/{connectionId}/suspension',
      'PUT /namespaces/{name}/suspension',
      'PUT /servers/{qualifiedName}/suspension',
      'POST /accounts',
      'POST /accounts/{accountId}/invitations',
    ],
  ],
  // The caller's own account.
  [always('----yfffyyyyyy'), ['PUT /accounts/me/time-zone']],
  // Public records, and what every caller has.
  [
    kinds.everyKeyReads,
    [
      'GET /accounts/me',
      'GET /accounts/me/access',
      'GET /accounts/me/usable',
      'GET /namespaces',
      'GET /servers',
      'GET /skills',
      'GET /skills/{namespace}/{slug}',
      'GET /.well-known/agent-skills/index.json',
      'GET /.well-known/skills/index.json',
      'GET /.well-known/skills/{name}/{path}',
      'GET /skills/{namespace}/.well-known/agent-skills/index.json',
      'GET /skills/{namespace}/.well-known/skills/index.json',
      'GET /skills/{namespace}/.well-known/skills/{name}/{path}',
      'GET /skills/{namespace}/{slug}/.well-known/agent-skills/index.json',
      'GET /skills/{namespace}/{slug}/.well-known/skills/index.json',
      'GET /skills/{namespace}/{slug}/.well-known/skills/{path}',
      'GET /skills/{namespace}/{slug}/download',
    ],
  ],
  // The record of a server, which looks missing while it is private.
  [
    kinds.everyKeyReadsOfServer,
    ['GET /servers/{qualifiedName}', 'GET /servers/{qualifiedName}/changes', 'GET /servers/{qualifiedName}/icon'],
  ],
  // The operator finds no private server of others.
  [{ public: '----fffffffffy', private: '----fffffffffx' }, ['PUT /servers/{qualifiedName}/verified']],
  // Reading of an account, its own or the operator.
  [
    kinds.ownAccountReads,
    [
      'GET /accounts/{accountId}/api-keys',
      'GET /accounts/{accountId}/grants',
      'GET /accounts/{accountId}/grants/given',
      'GET /accounts/{accountId}/invitations',
      'GET /accounts/{accountId}/logins',
      'GET /accounts/{accountId}/memberships',
      'GET /accounts/{accountId}/usage',
    ],
  ],
  // Lists of a namespace, which is not granted.
  [kinds.ownNamespaceReads, ['GET /connect/{namespace}', 'GET /connect/{namespace}/.tools']],
  // What a grant of calls shows.
  [
    always('----xyyyyfyyyx'),
    [
      'GET /connect/{namespace}/{connectionId}',
      'GET /connect/{namespace}/{connectionId}/.tools',
      'GET /connect/{namespace}/{connectionId}/.tools/{toolPath}',
      'GET /connect/{namespace}/{connectionId}/.triggers',
      'GET /connect/{namespace}/{connectionId}/logs',
    ],
  ],
  // Reading what belongs to the owner.
  [
    kinds.ownerReads,
    [
      'GET /connect/{namespace}/{connectionId}/diagnosis',
      'GET /connect/{namespace}/{connectionId}/recording',
      'GET /servers/{qualifiedName}/domains',
      'GET /servers/{qualifiedName}/experimental/tools/{toolName}/output-schema',
      'GET /servers/{qualifiedName}/logs',
      'GET /servers/{qualifiedName}/logs/stream',
      'GET /servers/{qualifiedName}/releases',
      'GET /servers/{qualifiedName}/releases/{id}',
      'GET /servers/{qualifiedName}/releases/{id}/stream',
      'GET /servers/{qualifiedName}/runtime',
      'GET /servers/{qualifiedName}/secrets',
    ],
  ],
  // The server of the estate has no triggers.
  [always('----xxxxxfxxxx'), ['GET /connect/{namespace}/{connectionId}/.triggers/{triggerName}']],
  // The connection of the estate is no uplink.
  [always('----xfffxffxxx'), ['GET /connect/{namespace}/{connectionId}/uplink']],
  // Open to everybody. The page of an invitation is 410 without its secret.
  [
    kinds.everybody,
    ['GET /consent/{uid}', 'GET /health', 'GET /invite', 'GET /login', 'GET /oauth/callback', 'GET /ready'],
  ],
  // Forms of pages, which need the cookie of their browser.
  [always('ffffffffffffff'), ['POST /consent/{uid}', 'POST /invite', 'POST /login', 'POST /logout']],
  // Requests of other processes, pages of links and what is turned off: without their own secret there is nothing.
  [
    always('xxxxxxxxxxxxxx'),
    [
      'GET /metrics',
      'GET /oauth/client.json',
      'GET /setup/{path}',
      'POST /internal/hosting/{host}/{epoch}',
      'POST /internal/pending-calls',
      'POST /internal/resumed-streams',
      'POST /internal/sse-streams',
      'POST /internal/uplink/{connection}/{tunnel}',
      'POST /setup/{path}',
    ],
  ],
  // The server of the estate is no bundle.
  [{ public: '----xxxxxxxxxx', private: '----xxxxxfxxxx' }, ['GET /servers/{qualifiedName}/download']],
  // Making a key with all rights, which no key with scopes may.
  [
    always('----xfffffxxyy'),
    ['POST /accounts/{accountId}/api-keys', 'POST /accounts/{accountId}/api-keys/{keyId}/rotate'],
  ],
  // Making a connection.
  [kinds.ownNamespaceWrites, ['POST /connect/{namespace}']],
  // Probing a server, with the header of the caller's choice.
  [kinds.everyKeyWrites, ['POST /accounts/me/probe']],
  // Making a namespace.
  [always('----yfffyfyyyy'), ['POST /namespaces']],
  // Publishing a server.
  [
    kinds.ownerPublishes,
    [
      'POST /servers/{qualifiedName}/logs',
      'POST /servers/{qualifiedName}/releases/{id}/promote',
      'POST /servers/{qualifiedName}/releases/{id}/rescan',
      'POST /servers/{qualifiedName}/releases/{id}/resume',
      'PUT /servers/{qualifiedName}/releases',
    ],
  ],
  // Publishing a skill.
  [
    always('----fffyyfffyf'),
    ['POST /skills/{namespace}/{slug}/sync', 'PUT /skills/{namespace}/{slug}', 'PUT /skills/{namespace}/{slug}/upload'],
  ],
  // Claiming a name that another account has: 409 (Spec 4.13).
  [always('----!fffyf!!y!'), ['PUT /namespaces/{name}']],
];

/** The files of modules. One after another: Jest's loader fails when files that are loaded at once import the same one. */
export const modulesWithAccess: ModuleAccess[] = [];
const tests = path.join(import.meta.dirname, '../../e2e');
for (const name of readdirSync(tests)) {
  const file = path.join(tests, name, 'access.ts');
  if (existsSync(file)) modulesWithAccess.push((await import(pathToFileURL(file).href)) as ModuleAccess);
}

/** Whose browser asks for a page. The server and the connection of the estate are granted to the guest, for calls. */
export const sessions = ['signedOut', 'stranger', 'guest', 'owner', 'operator'] as const;

/**
 * The pages (`@Page`), with one character for each of {@link sessions}; `l`: led to the sign-in, the others as in the kinds of access.
 * A form is sent with its token.
 */
export const pages: Record<string, string> = Object.assign(
  {
    'GET /me': 'lyyyy',
    'POST /me': 'lffff',
    'GET /me/access': 'lyyyy',
    'POST /me/access': 'lyyyy',
    'POST /me/keys/create': 'lyyyy',
    'POST /me/keys/rotate': 'lxxxx',
    'POST /me/keys/revoke': 'lxxxx',
    'POST /me/browsers': 'lyyyy',
    'POST /me/zone': 'lyyyy',
  },
  ...modulesWithAccess.map((module) => module.pages),
);

/** A page leads everybody without a session to the sign-in, whatever the key, and takes no form without its token. */
const kindOfPage = (name: string) => (name.startsWith('GET ') ? kinds.everybody : always('ffffffffffffff'));

const declared: [route: string, kind: Kind][] = [
  ...Object.keys(pages).map((name): [string, Kind] => [name, kindOfPage(name)]),
  ...rows.flatMap(([kind, routes]) => routes.map((route): [string, Kind] => [route, kind])),
  ...modulesWithAccess.flatMap(({ access }) => Object.entries(access)),
];

const matrixFor = (visibility: keyof Kind): Record<string, string> =>
  Object.fromEntries(declared.map(([route, kind]) => [route, kind[visibility]]));

/** The row of each route, by its documented name. */
export const matrix: Record<keyof Kind, Record<string, string>> = {
  public: matrixFor('public'),
  private: matrixFor('private'),
};

/** Routes that answer every key: public reads, what a caller has or makes for itself, and calls of published servers. */
export const openToEveryKey = new Set(routesWhere((row) => /^-...[y!]/.test(row)));

/** Routes for the operator alone. */
export const operatorOnly = new Set(routesWhere((row) => row === kinds.operatorOnly.public));

function routesWhere(matches: (row: string) => boolean): string[] {
  return Object.entries(matrix.public)
    .filter(([, row]) => matches(row))
    .map(([route]) => route);
}
