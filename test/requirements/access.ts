import type { Requirement } from '../requirements.js';

/** Spec 5 to 9: authentication, events, errors, limits and versioning, with the promises that complete them. */
export const access = {
  // Spec 5: authentication
  'auth:bearer': {
    source: 'Spec 4, 5',
    behavior: 'Every endpoint accepts an API key in the header `Authorization: Bearer <API_KEY>`.',
  },
  'auth:missing': {
    source: 'Spec 4, 5',
    behavior: 'Every endpoint that is not declared public answers 401 without the Authorization header.',
  },
  'auth:malformed': {
    source: 'Spec 5, House',
    behavior: 'Another scheme, an empty bearer and a bearer that is not a key answer 401.',
  },
  'auth:unknown-key': { source: 'Spec 5, House', behavior: 'A well-formed key that was never issued answers 401.' },
  'auth:expired-key': { source: 'Spec 5, House', behavior: 'A key past its expiry answers 401.' },
  'auth:revoked-key': { source: 'House', behavior: 'A revoked key answers 401 on every endpoint within 5 seconds.' },
  'auth:body:registry': {
    source: 'Spec 7, House',
    behavior: 'A 401 outside connections has the body `{error: "Unauthorized"}`.',
  },
  'auth:body:connect': {
    source: 'Spec 7, House',
    behavior: 'A 401 of a REST route under connections has the body `{error: "unauthorized", message}`.',
  },
  'auth:owner:delete-connection': {
    source: 'Spec 4.4, 5',
    behavior:
      "Deleting a connection in another owner's namespace has the answer of a missing connection and deletes nothing.",
  },
  'auth:owner:every-route': {
    source: 'House',
    behavior:
      "No route lets a second tenant read or change the first one's connections or change its servers and namespaces.",
  },
  'auth:declared': {
    source: 'House',
    behavior: 'A route without an access declaration keeps the service from starting.',
  },
  'auth:matrix': {
    source: 'House',
    behavior:
      'Every route answers each kind of caller (no key, a wrong, expired or revoked one, another account, keys of each scope and of another namespace, grantees, the owner, the operator) as a table says, around a public and a private server; a route without a row fails.',
  },

  'auth:matrix-logins': {
    source: 'House',
    behavior:
      'An OAuth token opens the MCP methods of its endpoint and no other route, one of another endpoint none of them; the session of a person who is signed in opens no route that needs a key, nor does one that was signed out.',
  },

  // Accounts and keys: how keys are issued
  'account:create': {
    source: 'House',
    behavior:
      '`POST /accounts {name, kind}` by the operator creates a user or an organization and answers 201; without a name or with an unknown kind it answers 400. `GET /accounts` lists all, newest first.',
  },
  'key:create': {
    source: 'House',
    behavior:
      '`POST /accounts/{id}/api-keys` answers 201 with a key that works at once and has the prefix `slipway_`; GET lists the keys with creation, expiry and last use.',
  },
  'key:shown-once': { source: 'House', behavior: 'Only the answer that creates a key contains it.' },
  'key:stored-hashed': {
    source: 'House',
    behavior: 'The database stores a hash of the key, from which the key cannot be computed.',
  },
  'key:last-used': {
    source: 'House',
    behavior:
      'A request with a key updates its last-used time and the address of its client, which `TRUST_PROXY` lets a proxy name.',
  },
  'key:expiry-of-maker': {
    source: 'House',
    behavior:
      'A key with an expiry makes and rotates only keys that end with it or before, and without `expiresAt` with it.',
  },
  'key:rotate': {
    source: 'House',
    behavior:
      '`POST …/api-keys/{keyId}/rotate` answers a new key with the name and scopes of the old one, which works on for `overlapSeconds` and names the new one in `replacedBy`.',
  },
  'key:scopes': {
    source: 'House',
    behavior:
      'A key with scopes does what its levels include, in all namespaces or in the named one: anything else answers 403 with the missing scope, foreign things look missing, and it makes no key with more rights. Without scopes a key has all rights.',
  },
  'key:made-by': {
    source: 'House',
    behavior:
      'A key names the key that made it. `DELETE …/api-keys/{keyId}?made=true` revokes a key and all that it made, directly or by keys that are gone, of other accounts for the operator only, and answers their ids.',
  },
  'key:revoked-now': {
    source: 'House',
    behavior:
      'Calls that run at the revocation of their key are answered; with `?now=true` they are cut in each process, and logged as `canceled`.',
  },
  'key:access': {
    source: 'House',
    behavior: '`GET /accounts/me/access` says in words what the key may do, to every key.',
  },
  'key:own': {
    source: 'House',
    behavior: 'An account creates, lists and revokes its own keys and cannot see those of another account.',
  },
  'operator:owns-nothing': {
    source: 'House',
    behavior: "The operator's key has no access to a namespace, server or connection of another account.",
  },

  // Spec 6: events
  'events:release-stream': {
    source: 'Spec 6, Field',
    behavior: '`GET …/releases/{id}/stream` sends the log and status of a release as server-sent events.',
  },
  'events:triggers': {
    source: 'Spec 6, Field',
    behavior: 'The triggers of a connection are proxied to upstreams that have them; others answer an empty list.',
  },

  // Spec 7: errors
  'error:shape:registry': {
    source: 'Spec 7',
    behavior:
      'Every error of servers and namespaces, whatever its status, is `{error}` with a string and no other key.',
  },
  'error:shape:connect': {
    source: 'Spec 7',
    behavior: 'Every error of a REST route of connections, whatever its status, is `{error, message}`, both strings.',
  },
  'error:shape:skills-and-icon': {
    source: 'Spec 7',
    behavior: 'Every error of skills and icons carries a string in `error`.',
  },
  'error:not-found-text': {
    source: 'Spec 7',
    behavior: 'A `not_found` error under connections has the message `Resource not found`.',
  },
  'error:hint': {
    source: 'House',
    behavior:
      'A 404 names the missing resource and the nearest existing name for the owner in the header `Slipway-Hint`, of at most 512 bytes and percent-encoded; `error` and `message` do not change.',
  },
  'error:hint:stranger': {
    source: 'House',
    behavior:
      'A 404 to a caller who is not the owner has the same body and hint whether the resource exists or not; of a server, the hint says that the route is for its owner only.',
  },
  'error:method': {
    source: 'House',
    behavior:
      'A method that a path does not have answers 405 with `Allow`, with and without a key; OPTIONS answers 204 with `Allow`, and 404 for an unknown path.',
  },
  'auth:explained': {
    source: 'House',
    behavior:
      'A 401 states its reason in the body or in `Slipway-Hint`, and in `error_description` of `WWW-Authenticate`, on every route.',
  },
  'query:unknown': {
    source: 'House',
    behavior:
      'An undeclared query parameter of a REST route answers 400 with the nearest declared one, other spellings of a metadata filter with `metadata.{key}`.',
  },
  'query:published-clients': {
    source: 'Field',
    behavior: 'Every query parameter in the types of `@smithery/api` 0.50 and 0.68 is accepted.',
  },
  'error:unknown-path': {
    source: 'House',
    behavior: 'A path that no route serves answers 404 in the shape of its prefix.',
  },
  'error:bad-json': {
    source: 'House',
    behavior: 'A body that is not valid JSON, or has another content type, answers 400 in the shape of its prefix.',
  },
  'error:body-too-large': {
    source: 'Spec 8, House',
    behavior: 'A body over 1 MB (16 MB for a tool call) answers 413 in the shape of its prefix.',
  },
  'error:internal': {
    source: 'House',
    behavior:
      'An unexpected failure answers 500 without internal details, and the log records the error with the request id.',
  },
  'error:no-retry-409': { source: 'Field', behavior: 'Every 409 carries `x-should-retry: false`.' },

  // Spec 9: versioning and the API document
  'openapi:deprecated': {
    source: 'Spec 4.1, 9',
    behavior:
      'The API document marks `PUT /namespaces/{namespace}/servers/{server}` deprecated and `PUT /servers/{qualifiedName}` not.',
  },
  'openapi:experimental': {
    source: 'Spec 4.8, 9',
    behavior: 'Output schema inference is served under an `experimental` path segment and under no other path.',
  },
  'openapi:no-version': {
    source: 'Spec 9, Field',
    behavior: 'No path in the API document carries a version and no header asks for one.',
  },
  'openapi:complete': {
    source: 'House',
    behavior:
      'Every operation has a summary, an example and its statuses with their error bodies, and every member with a closed list of values names them.',
  },
  'openapi:bodies': {
    source: 'House',
    behavior:
      'Answers are valid by the API document, and have no member that it does not list. So are bodies that succeed, which ' +
      'fail without a required member, and with one more where the document refuses others.',
  },
  'openapi:security': {
    source: 'Spec 5, House',
    behavior: 'Every operation of the contract declares the bearer key in the API document.',
  },

  // Grants
  'grants:connection': {
    source: 'House',
    behavior:
      'A grant `call` opens what finds and calls a connection, `manage` all of its routes but its deletion and its grants; a ' +
      'grantee is told 403 by the rest, and for everybody else the connection looks missing.',
  },
  'grants:server': {
    source: 'House',
    behavior:
      'A grant `manage` of a server opens its releases, logs and settings; creation, transfer, deletion and grants stay with ' +
      'the owner.',
  },
  'grants:keys': { source: 'House', behavior: 'A grantee’s key needs the scope for the namespace of the owner.' },
  'grants:owner': {
    source: 'House',
    behavior:
      'Only the owner grants a server or a connection, to an existing other account and 100 at most, lists the grants, ' +
      'changes their level by granting again, and withdraws them.',
  },
  'grants:gone': { source: 'House', behavior: 'A grant goes with its account, its server or its connection.' },
  'grants:withdrawn-now': {
    source: 'House',
    behavior:
      'Calls that run at the withdrawal of their grant are answered; with `?now=true` they are cut in each process, and logged as `canceled`.',
  },
  'grants:setup': {
    source: 'House',
    behavior:
      'Setup links go to the owner and who manages a connection, and others read who has to log in; a link for an account, its ' +
      'form and the authorization that began with it end with its right, its logins and a change of grants.',
  },
  'grants:withdrawn': {
    source: 'House',
    behavior:
      'A withdrawn grant opens nothing after 5 s in any process, and its streams, sessions and tunnels have ended by then.',
  },

  // Paths that published clients use
  'path:unencoded-slash': {
    source: 'Field',
    behavior: '`/servers/ns/server` reaches the same server as `/servers/ns%2Fserver`.',
  },
  'path:trailing-slash': { source: 'Field', behavior: '`/servers/ns%2F` reaches the namespace-only server `ns`.' },
  'path:leading-at': { source: 'Field', behavior: 'A leading `@` of a qualified name is dropped.' },
  'path:connect-root': {
    source: 'Field',
    behavior: '`/{namespace}…` serves everything that `/connect/{namespace}…` serves.',
  },
  'path:reserved-first-segment': {
    source: 'House',
    behavior: 'The first segment of every route of the service is a reserved namespace name.',
  },
  'path:no-bypass': {
    source: 'House',
    behavior:
      'No spelling of a path (double encoding, dot segments, doubled slashes, backslashes, NUL, letter case) reaches a target under another access rule or owner.',
  },
} as const satisfies Record<string, Requirement>;
