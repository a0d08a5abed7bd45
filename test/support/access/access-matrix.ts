/** Who asks. `read` to `manage`: keys of the owner with this scope; `elsewhere`: one for another namespace of the owner. */
export const callers = [
  'none',
  'wrong',
  'expired',
  'revoked',
  'stranger',
  'read',
  'call',
  'publish',
  'manage',
  'elsewhere',
  'guest',
  'friend',
  'owner',
  'operator',
] as const;
export type CallerName = (typeof callers)[number];

/**
 * A row has one character for each caller. `y`: as the owner; `-`: 401; `f`: 403; `x`: 404, as for what does not exist; `!`:
 * another refusal. Written down after each was judged: a route without a row fails the test.
 */
type Rows = [row: string, routes: string[]][];

/* The callers: n w e r s r c p m e g f o o
                o r x e t e a u a l u r w p
                n o p v r a l b n s e i n e
                e n i o a d l l a e s e e r   */
const publicServer: Rows = [
  // Revoking a key, and ending logins.
  ['----xfffyfxxyy', ['DELETE /accounts/{accountId}/api-keys/{keyId}', 'DELETE /accounts/{accountId}/logins']],
  // Its account has no password.
  ['----xfffxfxxxx', ['DELETE /accounts/{accountId}/logins/{loginId}']],
  // Calling through a namespace, which is not granted.
  [
    '----xfyfyfxxyx',
    ['DELETE /connect/{namespace}/.mcp', 'GET /connect/{namespace}/.mcp', 'POST /connect/{namespace}/.mcp'],
  ],
  // Paths of older tools, which have nothing here.
  [
    '----xfxfxfxxxx',
    [
      'DELETE /connect/{namespace}/.subscriptions/{id}',
      'DELETE /connect/{namespace}/{connectionId}/.subscriptions/{id}',
      'POST /connect/{namespace}/.subscriptions',
      'POST /connect/{namespace}/{connectionId}/.subscriptions',
    ],
  ],
  // What stays with the owner: deletion and grants.
  [
    '----xfffyfffyx',
    [
      'DELETE /connect/{namespace}/{connectionId}',
      'DELETE /connect/{namespace}/{connectionId}/grants/{grantId}',
      'DELETE /servers/{qualifiedName}',
      'DELETE /servers/{qualifiedName}/grants/{grantId}',
      'GET /connect/{namespace}/{connectionId}/grants',
      'GET /servers/{qualifiedName}/grants',
      'POST /connect/{namespace}/{connectionId}/grants',
      'POST /servers/{qualifiedName}/grants',
    ],
  ],
  // Calling through a connection.
  [
    '----xfyfyfyyyx',
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
    '----xfffyffyyx',
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
    '----ffffyfffyf',
    [
      'DELETE /namespaces/{name}',
      'DELETE /skills/{namespace}/{slug}',
      'POST /servers/{qualifiedName}/transfer',
      'POST /skills',
      'PUT /namespaces/{namespace}/servers/{server}',
      'PUT /servers/{qualifiedName}',
    ],
  ],
  // Calling a public server.
  [
    '----yfyfyfyyyy',
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
    '----ffffyffyyf',
    ['DELETE /servers/{qualifiedName}/icon', 'PATCH /servers/{qualifiedName}', 'PUT /servers/{qualifiedName}/icon'],
  ],
  // The operator alone.
  [
    '----fffffffffy',
    [
      'GET /accounts',
      'PATCH /accounts/{accountId}',
      'PATCH /accounts/{accountId}/limits',
      'POST /accounts',
      'POST /accounts/{accountId}/invitations',
      'PUT /servers/{qualifiedName}/verified',
    ],
  ],
  // Public records, and what every caller has.
  [
    '----yyyyyyyyyy',
    [
      'GET /accounts/me',
      'GET /accounts/me/access',
      'GET /namespaces',
      'GET /servers',
      'GET /servers/{qualifiedName}',
      'GET /servers/{qualifiedName}/changes',
      'GET /servers/{qualifiedName}/icon',
      'GET /skills',
      'GET /skills/{namespace}/{slug}',
      'GET /skills/{namespace}/{slug}/.well-known/skills/index.json',
      'GET /skills/{namespace}/{slug}/.well-known/skills/{path}',
      'GET /skills/{namespace}/{slug}/download',
    ],
  ],
  // Reading of an account, its own or the operator.
  [
    '----xyyyyfxxyy',
    [
      'GET /accounts/{accountId}/api-keys',
      'GET /accounts/{accountId}/grants',
      'GET /accounts/{accountId}/logins',
      'GET /accounts/{accountId}/usage',
    ],
  ],
  // Lists of a namespace, which is not granted.
  [
    '----xyyyyfxxyx',
    ['GET /connect/{namespace}', 'GET /connect/{namespace}/.subscriptions', 'GET /connect/{namespace}/.tools'],
  ],
  // What a grant of calls shows.
  [
    '----xyyyyfyyyx',
    [
      'GET /connect/{namespace}/{connectionId}',
      'GET /connect/{namespace}/{connectionId}/.tools',
      'GET /connect/{namespace}/{connectionId}/.tools/{toolPath}',
      'GET /connect/{namespace}/{connectionId}/.triggers',
    ],
  ],
  // Reading what belongs to the owner.
  [
    '----xyyyyffyyx',
    [
      'GET /connect/{namespace}/{connectionId}/.subscriptions',
      'GET /connect/{namespace}/{connectionId}/diagnosis',
      'GET /connect/{namespace}/{connectionId}/logs',
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
  ['----xxxxxfxxxx', ['GET /connect/{namespace}/{connectionId}/.triggers/{triggerName}']],
  // The connection of the estate is no uplink.
  ['----xfffxffxxx', ['GET /connect/{namespace}/{connectionId}/uplink']],
  // Open to everybody. The page of an invitation is 410 without its secret.
  [
    'yyyyyyyyyyyyyy',
    [
      'GET /consent/{uid}',
      'GET /me/access',
      'GET /health',
      'GET /invite',
      'GET /login',
      'GET /me',
      'GET /oauth/callback',
      'GET /ready',
    ],
  ],
  // Forms of pages, which need the cookie of their browser.
  [
    'ffffffffffffff',
    ['POST /consent/{uid}', 'POST /me/access', 'POST /invite', 'POST /login', 'POST /logout', 'POST /me'],
  ],
  // Requests of other processes, pages of links and what is turned off: without their own secret there is nothing.
  [
    'xxxxxxxxxxxxxx',
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
  ['----xxxxxxxxxx', ['GET /servers/{qualifiedName}/download']],
  // Making a key with all rights, which no key with scopes may.
  ['----xfffffxxyy', ['POST /accounts/{accountId}/api-keys', 'POST /accounts/{accountId}/api-keys/{keyId}/rotate']],
  // Making a connection.
  ['----xfffyfxxyx', ['POST /connect/{namespace}']],
  // Making a namespace.
  ['----yfffyfyyyy', ['POST /namespaces']],
  // Publishing a server.
  [
    '----xffyyffyyx',
    [
      'POST /servers/{qualifiedName}/logs',
      'POST /servers/{qualifiedName}/otlp/v1/logs',
      'POST /servers/{qualifiedName}/releases/{id}/promote',
      'POST /servers/{qualifiedName}/releases/{id}/rescan',
      'POST /servers/{qualifiedName}/releases/{id}/resume',
      'PUT /servers/{qualifiedName}/releases',
    ],
  ],
  // Publishing a skill.
  [
    '----fffyyfffyf',
    ['POST /skills/{namespace}/{slug}/sync', 'PUT /skills/{namespace}/{slug}', 'PUT /skills/{namespace}/{slug}/upload'],
  ],
  // Claiming a name that another account has: 409 (Spec 4.13).
  ['----!fffyf!!y!', ['PUT /namespaces/{name}']],
];

/** Where a private server differs from a public one. */
const privateServer: Rows = [
  // Calling through a connection.
  [
    '----xfyfyfyyyx',
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
  // What a grant of calls shows.
  [
    '----xyyyyfyyyx',
    ['GET /servers/{qualifiedName}', 'GET /servers/{qualifiedName}/changes', 'GET /servers/{qualifiedName}/icon'],
  ],
  // The server of the estate has no triggers.
  ['----xxxxxfxxxx', ['GET /servers/{qualifiedName}/download']],
  ['----fffffffffx', ['PUT /servers/{qualifiedName}/verified']],
];

const byRoute = (rows: Rows): Record<string, string> =>
  Object.fromEntries(rows.flatMap(([row, names]) => names.map((name) => [name, row])));

/** The row of each route, by its documented name. */
export const matrix: Record<'public' | 'private', Record<string, string>> = {
  public: byRoute(publicServer),
  private: { ...byRoute(publicServer), ...byRoute(privateServer) },
};
