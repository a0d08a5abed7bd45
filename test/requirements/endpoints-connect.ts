import type { Requirement } from '../requirements.js';

/** Spec 4.2 to 4.5: connections and their tools. */
export const connectEndpoints = {
  // Spec 4.2: list connections
  'connection:list:shape': {
    source: 'Spec 4.2',
    behavior:
      '`GET /connect/{namespace}` answers 200 `{connections, nextCursor}` with connections of that namespace only.',
  },
  'connection:list:empty': { source: 'Spec 4.2', behavior: 'A namespace without connections lists an empty array.' },
  'connection:list:filter-name': {
    source: 'Spec 4.2',
    behavior: '`name` returns only the connections with exactly that name.',
  },
  'connection:list:filter-url': {
    source: 'Spec 4.2',
    behavior: '`mcpUrl` returns only the connections with exactly that URL.',
  },
  'connection:list:filter-state': {
    source: 'House',
    behavior: '`state` lists the connections in one state, and another word answers 400.',
  },
  'connection:list:filter-server': {
    source: 'House',
    behavior: '`server` lists the connections to a registry server by its qualified name; none for an unknown one.',
  },
  'connection:list:filter-metadata': {
    source: 'Spec 4.2',
    behavior: '`metadata.{key}={value}` returns only the connections with that value under that key.',
  },
  'connection:list:filter-metadata-and': { source: 'Spec 4.2, Field', behavior: 'Several filters must all match.' },
  'connection:list:filter-metadata-json': {
    source: 'Spec 4.2, Field',
    behavior:
      'A metadata filter matches numbers, booleans, null and objects by their JSON form and strings by their text.',
  },
  'connection:list:filter-metadata-max': {
    source: 'House',
    behavior: 'A list takes 16 metadata filters; more answer 400 `validation_error`, which names the limit.',
  },
  'connection:list:limit': {
    source: 'Spec 4.2, 8',
    behavior: '`limit` accepts the integers 1 to 100 and returns at most that many connections.',
  },
  'connection:list:limit-default': {
    source: 'Spec 4.2, 8',
    behavior: 'Without `limit` a page holds at most 100 connections.',
  },
  'connection:list:limit-invalid': {
    source: 'Spec 4.2, 8',
    behavior: 'A `limit` of 0, 101, a fraction or a word answers 400 `validation_error`.',
  },
  'connection:list:cursor': {
    source: 'Spec 4.2',
    behavior: '`nextCursor` of a page as `cursor` continues after it: all pages together contain each connection once.',
  },
  'connection:list:cursor-filtered': { source: 'Spec 4.2', behavior: 'Filters hold on every page reached by cursor.' },
  'connection:list:cursor-stable': {
    source: 'House',
    behavior: 'Connections created or deleted between two pages make no other connection appear twice or not at all.',
  },
  'connection:list:next-cursor-null': {
    source: 'Spec 4.2, Field',
    behavior: '`nextCursor` is a string while more follow and null, never absent, on the last page.',
  },
  'connection:list:cursor-invalid': {
    source: 'Spec 4.2, House',
    behavior: 'A cursor that the service did not issue answers 400 `validation_error`.',
  },
  'connection:list:order': { source: 'Spec 4.2, House', behavior: 'Connections are listed newest first.' },
  'connection:list:unknown-query': {
    source: 'House',
    behavior: 'An unknown query parameter answers 400 instead of all connections.',
  },
  'connection:list:not-found': {
    source: 'Spec 4.2, 7',
    behavior: 'Listing an unknown namespace answers 404 `{error: "not_found", message: "Resource not found"}`.',
  },
  'connection:list:foreign': {
    source: 'Spec 4.2, House',
    behavior: "Listing another owner's namespace has exactly the answer of a missing one.",
  },

  // Spec 4.3: create connection
  'connection:create:created': {
    source: 'Spec 4.3, Field',
    behavior:
      '`POST /connect/{namespace}` answers 201 with the connection and its address in `Location`; get and list find it then.',
  },
  'connection:create:transport-default': { source: 'Spec 4.3, Field', behavior: '`transport` defaults to `http`.' },
  'connection:create:transport-invalid': {
    source: 'Spec 4.3',
    behavior: 'A `transport` other than `http` and `uplink` answers 400 `validation_error`.',
  },
  'connection:create:uplink': {
    source: 'Spec 4.3',
    behavior: '`transport: "uplink"` creates a connection that waits for a local server.',
  },
  'connection:create:uplink-target': {
    source: 'Spec 4.3, House',
    behavior: 'An uplink with a target or with headers answers 400 `validation_error`.',
  },
  'connection:create:mcp-url-invalid': {
    source: 'Spec 4.3',
    behavior: 'An `mcpUrl` that is not an absolute http or https URI answers 400 `validation_error`.',
  },
  'connection:create:server': {
    source: 'Spec 4.3',
    behavior: '`server` names a registry server by its qualified name, with or without a leading `@`.',
  },
  'connection:create:server-length': {
    source: 'Spec 4.3, 8',
    behavior: 'A `server` shorter than 1 or longer than 255 characters answers 400 `validation_error`.',
  },
  'connection:create:server-pattern': {
    source: 'Spec 4.3',
    behavior:
      'A `server` outside the pattern (optional `@`, one or two alphanumeric-led segments of letters, digits, `_`, `-`) answers 400 `validation_error`.',
  },
  'connection:create:server-unknown': {
    source: 'Spec 4.3, House',
    behavior: 'A `server` that does not exist is refused and creates nothing.',
  },
  'connection:create:source': {
    source: 'Spec 4.3, Field',
    behavior:
      '`source` is `{kind: "module", entrypoint, sourceFiles: [{path, contents}]}` and any other shape answers 400.',
  },
  'connection:create:source-runs': {
    source: 'Spec 4.3, Field',
    behavior: 'A connection with a valid `source` runs that module and serves its tools.',
  },
  'connection:create:source-invalid': {
    source: 'Field',
    behavior:
      'A `source` that does not compile, or throws while it is loaded, answers 400 `{error: {code: "invalid_module", message, diagnostics}}` and creates no connection.',
  },
  'connection:source:logs': {
    source: 'House',
    behavior: 'The output of the module of a connection is in the log of the connection, with the call that caused it.',
  },
  'connection:source:sandbox': {
    source: 'House',
    behavior:
      'The module of a connection imports Node built-ins, zod and the MCP SDK, and is compiled in the sandbox: without network, and without account and files of the service.',
  },
  'connection:server:no-loop': {
    source: 'House',
    behavior:
      'Calls of a connection to a registry server reach its release directly, without an API key of this service.',
  },
  'connection:server:no-circle': {
    source: 'House',
    behavior: 'A connection to another address of this service itself answers 400 `validation_error`.',
  },
  'connection:server:aliases': {
    source: 'House',
    behavior:
      'The addresses that published tools use for registry servers (hosts of `REGISTRY_HOSTS`) and the run addresses of this service resolve to that server, in bodies and in the `mcpUrl` filter; with `none`, such an address is a custom URL.',
  },
  'connection:server:follows': {
    source: 'House',
    behavior: 'A connection to a registry server uses its later releases and its new slug.',
  },
  'connection:server:bound-to-id': {
    source: 'House',
    behavior:
      'A server that is registered under the name of a deleted one receives no request of the connections to the deleted one.',
  },
  'connection:status:not-runnable': {
    source: 'House',
    behavior:
      'The status of a connection to a server without a runnable release states that, and the connection works once there is one.',
  },
  'connection:create:name-length': {
    source: 'Spec 2.1, 4.3, 8',
    behavior:
      'A `name` has 1 to 255 characters: both bounds are accepted, an empty one and one of 256 answer 400 `validation_error`.',
  },
  'connection:create:name-default': { source: 'Spec 2.1, 4.3', behavior: '`name` defaults to the connection id.' },
  'connection:create:metadata-invalid': {
    source: 'Spec 4.3',
    behavior: 'A `metadata` that is not an object answers 400 `validation_error`.',
  },
  'connection:create:headers-sent': {
    source: 'Spec 4.3',
    behavior: 'The custom headers are sent with every MCP request of the connection.',
  },
  'connection:create:headers-invalid': {
    source: 'Spec 4.3',
    behavior:
      '`headers` with a value that is not a string, or a name or value HTTP forbids, answers 400 `validation_error`.',
  },
  'connection:create:mock': {
    source: 'Spec 4.3',
    behavior: '`mock: {enabled: true, scenario?}` on a registry server creates a simulated connection.',
  },
  'connection:create:mock-invalid': {
    source: 'Spec 4.3',
    behavior:
      'A `mock` without a boolean `enabled` or with a `scenario` that is not text answers 400 `validation_error`.',
  },
  'connection:create:mock-registry-only': {
    source: 'Spec 4.3',
    behavior: 'An enabled `mock` on a custom `mcpUrl` answers 400 `validation_error`.',
  },
  'connection:mock:frozen': {
    source: 'Spec 4.3',
    behavior: 'PUT can neither switch mock mode on or off nor change its scenario.',
  },
  'connection:recording:on': {
    source: 'Field',
    behavior: '`PUT …/recording {enabled}` starts and stops recording the tool calls of a connection.',
  },
  'connection:recording:shown': {
    source: 'House',
    behavior:
      '`GET …/recording` shows the number of recorded calls of each tool, through every process, never their contents; `DELETE` removes them.',
  },
  'connection:recording:sealed': {
    source: 'House',
    behavior: 'Recorded arguments and results are encrypted at rest, in recordings and in mocks made from them.',
  },
  'connection:recording:bounded': {
    source: 'House',
    behavior: 'A recording contains at most 1,000 calls and 16 MB, no call over 1 MB, and none older than 7 days.',
  },
  'connection:recording:replayed': {
    source: 'Field',
    behavior:
      'A mock with the scenario `replay:{connectionId}` answers equal calls with the recorded results, in their order; other results are marked.',
  },
  'connection:recording:owner': {
    source: 'House',
    behavior:
      'Only the owner of the namespace can use a recording: foreign and missing ones answer the same 404; a mock cannot be recorded, and a replay without recorded calls answers 400 `validation_error`.',
  },
  'connection:create:one-target': {
    source: 'Spec 4.3, Field',
    behavior: 'An http connection with no target or with more than one answers 400 `validation_error`.',
  },
  'connection:create:unknown-key': {
    source: 'Field',
    behavior: 'An unknown key in a connection body answers 400 `validation_error`, with the known key that is near.',
  },
  'connection:create:empty-body': {
    source: 'Field',
    behavior: 'An absent or zero-length JSON body is read as no fields, not as malformed JSON.',
  },
  'connection:create:duplicates': {
    source: 'Field',
    behavior: 'Each POST creates a new connection, also for a URL that is already connected.',
  },
  'connection:create:not-found': {
    source: 'Spec 4.3, Field',
    behavior: 'Creating in an unknown namespace answers 404 `not_found` and creates nothing.',
  },
  'connection:create:foreign': {
    source: 'Spec 4.3, Field',
    behavior: "Creating in another owner's namespace has exactly the answer of a missing one and creates nothing.",
  },

  // Upsert and get: used by every published client beside the contract's four operations
  'connection:put:created': {
    source: 'Spec 4.3, Field',
    behavior: '`PUT /connect/{namespace}/{connectionId}` answers 201 with a new connection when the id is free.',
  },
  'connection:put:updated': {
    source: 'Spec 4.3, Field',
    behavior: '`PUT` of an existing connection answers 200, needs no target and keeps what the body omits.',
  },
  'connection:put:replaces': {
    source: 'Field',
    behavior: 'A given `name`, `metadata` or `headers` replaces the stored one as a whole: `metadata: {}` clears it.',
  },
  'connection:put:url-conflict': {
    source: 'Field',
    behavior: '`PUT` with a different `mcpUrl` answers 409 `conflict` and changes nothing.',
  },
  'connection:put:transport-conflict': {
    source: 'Field',
    behavior: '`PUT` with a different transport answers 409 `conflict` and changes nothing.',
  },
  'connection:put:input-url': {
    source: 'Field',
    behavior: 'An `input_required` connection accepts a URL with the same host and path and another query.',
  },
  'connection:put:id-pattern': {
    source: 'House',
    behavior:
      'A developer-defined id is 1 to 255 of `[A-Za-z0-9._-]` without a leading dot; any other answers 400 `validation_error`.',
  },
  'connection:put:concurrent': {
    source: 'House',
    behavior: 'Simultaneous PUTs of one new id create one connection: one answers 201, the others 200.',
  },
  'connection:put:foreign': {
    source: 'House',
    behavior: "PUT into another owner's namespace answers 404 `not_found` and changes nothing.",
  },
  'connection:get:found': {
    source: 'Field',
    behavior: '`GET /connect/{namespace}/{connectionId}` answers 200 with the connection.',
  },
  'connection:get:not-found': {
    source: 'Field',
    behavior: 'Getting an unknown connection answers 404 `{error: "not_found", message: "Resource not found"}`.',
  },
  'connection:get:foreign': {
    source: 'House',
    behavior: "Getting another owner's connection has exactly the answer of a missing one.",
  },

  // Spec 4.4: delete connection
  'connection:delete:deleted': {
    source: 'Spec 4.4',
    behavior: '`DELETE /connect/{namespace}/{connectionId}` answers 200 `{success: true}` and the connection is gone.',
  },
  'connection:delete:ends-session': {
    source: 'Spec 4.4',
    behavior: 'Deleting a connection terminates its MCP session at the upstream.',
  },
  'connection:delete:during-call': {
    source: 'House',
    behavior:
      'A call whose connection is deleted meanwhile fails with an error that names the deletion, not a broken connection.',
  },
  'connection:delete:upstream-down': {
    source: 'House',
    behavior: 'A connection is deleted also if its upstream is unreachable or does not respond.',
  },
  'connection:delete:not-found': {
    source: 'Spec 4.4, 7',
    behavior:
      'Deleting an unknown or already deleted connection answers 404 `{error: "not_found", message: "Resource not found"}`.',
  },

  // Spec 4.5: tools
  'tools:get:one': {
    source: 'Spec 1, 4.5',
    behavior: '`GET …/.tools/{toolPath}` of a tool answers 200 with that tool.',
  },
  'tools:get:category': {
    source: 'Spec 4.5, Field',
    behavior: 'A path that names a category answers 200 `{tools}` with the tools under it, by their full names.',
  },
  'tools:get:slash-path': {
    source: 'Spec 4.5',
    behavior: 'The slash-separated path `a/b` finds the tool named `a.b`.',
  },
  'tools:get:path-spellings': { source: 'Spec 4.5, Field', behavior: '`a/b`, `a%2Fb` and `a.b` find the same tool.' },
  'tools:get:exact-wins': {
    source: 'Spec 4.5, House',
    behavior: 'A path that equals a tool name answers that tool, also when it is a category too.',
  },
  'tools:get:category-boundary': {
    source: 'Spec 4.5, House',
    behavior: 'The category `repo` holds `repo.search` and not `repository.search`.',
  },
  'tools:get:not-found': {
    source: 'Spec 4.5, 7',
    behavior:
      'A path that names neither tool nor category, or an unknown connection, answers 404 `{error: "not_found", message: "Resource not found"}`.',
  },
  'tools:list:all': {
    source: 'Field',
    behavior: '`GET …/.tools` answers 200 `{tools}` with every tool of the connection.',
  },
  'tools:list:pages': {
    source: 'House',
    behavior: 'All pages of a tool list of the upstream are read, up to a limit.',
  },
  'tools:choice': {
    source: 'House',
    behavior:
      'A connection with `tools: {allow, deny}` lists and calls these tools only, at every endpoint; a call of another tool has the answer of an unknown one. A PUT without `tools` keeps the choice; `{}` offers all tools again.',
  },
  'tools:list:namespace': {
    source: 'Field',
    behavior:
      '`GET /connect/{namespace}/.tools` answers an object keyed by connection id, and a failing upstream does not affect the others.',
  },
} as const satisfies Record<string, Requirement>;
