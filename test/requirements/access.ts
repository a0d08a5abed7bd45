/** Spec 5 to 9: authentication, events, errors, limits and versioning, with the promises that complete them. */
export const access = [
  // Spec 5: authentication
  'auth:bearer | Spec 4, 5 | Every endpoint accepts an API key in the header `Authorization: Bearer <API_KEY>`.',
  'auth:missing | Spec 4, 5 | Every endpoint that is not declared public answers 401 without the Authorization header.',
  'auth:malformed | Spec 5, House | Another scheme, an empty bearer and a bearer that is not a key answer 401.',
  'auth:unknown-key | Spec 5, House | A well-formed key that was never issued answers 401.',
  'auth:expired-key | Spec 5, House | A key past its expiry answers 401.',
  'auth:body:registry | Spec 7, House | A 401 outside connections has the body `{error: "Unauthorized"}`.',
  'auth:body:connect | Spec 7, House | A 401 of a REST route under connections has the body `{error: "unauthorized", message}`.',
  "auth:owner:delete-connection | Spec 4.4, 5 | Deleting a connection in another owner's namespace has the answer of a missing connection and deletes nothing.",

  // Spec 6: events
  'events:release-stream | Spec 6, Field | `GET …/releases/{id}/stream` sends the log and status of a release as server-sent events.',
  'events:triggers | Spec 6, Field | The triggers of a connection are proxied to upstreams that have them; others answer an empty list.',

  // Spec 7: errors
  'error:shape:registry | Spec 7 | Every error of servers and namespaces, whatever its status, is `{error}` with a string and no other key.',
  'error:shape:connect | Spec 7 | Every error of a REST route of connections, whatever its status, is `{error, message}`, both strings.',
  'error:shape:skills-and-icon | Spec 7 | Every error of skills and icons carries a string in `error`.',
  'error:not-found-text | Spec 7 | A `not_found` error under connections has the message `Resource not found`.',
  'query:published-clients | Field | Every query parameter in the types of `@smithery/api` 0.50 and 0.68 is accepted.',
  'error:body-too-large | Spec 8, House | A body over 1 MB (16 MB for a tool call) answers 413 in the shape of its prefix.',
  'error:no-retry-409 | Field | Every 409 carries `x-should-retry: false`.',

  // Spec 9: versioning and the API document
  'openapi:deprecated | Spec 4.1, 9 | The API document marks `PUT /namespaces/{namespace}/servers/{server}` deprecated and `PUT /servers/{qualifiedName}` not.',
  'openapi:experimental | Spec 4.8, 9 | Output schema inference is served under an `experimental` path segment and under no other path.',
  'openapi:no-version | Spec 9, Field | No path in the API document carries a version and no header asks for one.',
  'openapi:security | Spec 5, House | Every operation of the contract declares the bearer key in the API document.',

  // Paths that published clients use
  'path:unencoded-slash | Field | `/servers/ns/server` reaches the same server as `/servers/ns%2Fserver`.',
  'path:trailing-slash | Field | `/servers/ns%2F` reaches the namespace-only server `ns`.',
  'path:leading-at | Field | A leading `@` of a qualified name is dropped.',
  'path:connect-root | Field | `/{namespace}…` serves everything that `/connect/{namespace}…` serves.',
];
