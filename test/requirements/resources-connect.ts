import type { Requirement } from '../requirements.js';

/** Spec 1, 2.1 and 2.4: connections, their tools, and the fields of both. */
export const connectResources = {
  // Spec 1: what a connection is
  'connection:lives-in-namespace': {
    source: 'Spec 1',
    behavior: 'A connection belongs to one namespace: the same id in two namespaces is two connections.',
  },
  'connection:target:custom-url': {
    source: 'Spec 1',
    behavior: 'A connection created with `mcpUrl` links to the MCP server at that custom URL.',
  },
  'connection:target:registry-server': {
    source: 'Spec 1',
    behavior: 'A connection created with `server` links to that registry server.',
  },
  'connection:target:uplink': {
    source: 'Spec 1',
    behavior: 'A connection with transport `uplink` is paired to a local server and its calls reach that server.',
  },
  'connection:mock:simulates': {
    source: 'Spec 1',
    behavior: 'A tool call on a connection in mock mode is answered by the simulator.',
  },
  'connection:mock:never-reaches-upstream': {
    source: 'Spec 1',
    behavior: 'A connection in mock mode sends no request at all to the upstream server.',
  },

  // Spec 2.1: connection fields
  'connection:field:id': {
    source: 'Spec 2.1',
    behavior: '`connectionId` is a string in every connection the service returns.',
  },
  'connection:id:generated': {
    source: 'Spec 2.1',
    behavior: 'A connection created with POST gets an auto-generated, unique `connectionId`.',
  },
  'connection:id:developer-defined': {
    source: 'Spec 2.1',
    behavior: 'A connection created with PUT has the `connectionId` from the path.',
  },
  'connection:field:name': {
    source: 'Spec 2.1',
    behavior: '`name` is a string in every connection the service returns.',
  },
  'connection:field:mcp-url': {
    source: 'Spec 2.1',
    behavior: '`mcpUrl` of an http connection is the given URL of its MCP server.',
  },
  'connection:field:mcp-url-uplink': {
    source: 'Spec 2.1',
    behavior: '`mcpUrl` of an uplink connection is present and null.',
  },
  'connection:field:mcp-url-registry': {
    source: 'Spec 2.1, House',
    behavior: '`mcpUrl` of a connection to a registry server is computed from that server.',
  },
  'connection:field:metadata': {
    source: 'Spec 2.1',
    behavior: '`metadata` is returned with the same keys and JSON values that were stored, nested ones included.',
  },
  'connection:field:metadata-empty': {
    source: 'Spec 2.1, House',
    behavior: '`metadata` is `{}`, never null and never absent, when none was given.',
  },
  'connection:field:transport-http': {
    source: 'Spec 2.1',
    behavior: '`transport` is `http` for a connection to a URL.',
  },
  'connection:field:transport-uplink': {
    source: 'Spec 2.1',
    behavior: '`transport` is `uplink` for a connection paired to a local server.',
  },
  'connection:field:mock-absent': {
    source: 'Spec 2.1',
    behavior: '`mock` is absent from a connection that is not simulated, also with `mock.enabled: false`.',
  },
  'connection:field:mock-enabled': {
    source: 'Spec 2.1',
    behavior: '`mock` of a simulated connection is an object whose `enabled` is true.',
  },
  'connection:field:mock-scenario': {
    source: 'Spec 2.1',
    behavior: '`mock.scenario` is the text given at creation and absent when none was given.',
  },
  'connection:mock:scenario-seeds': {
    source: 'Spec 2.1',
    behavior:
      'A scenario that is a JSON object with `tools` is a fixture: its rules match arguments and set results, errors and delays.',
  },
  'connection:mock:scenario-prose': {
    source: 'Spec 2.1',
    behavior:
      'Any other scenario text is returned unchanged and read by the language model; without one, `_meta` of each result says that it was not interpreted.',
  },
  'connection:mock:deterministic': {
    source: 'Field',
    behavior:
      'The same calls on simulated connections with the same id, scenario and server have the same results, in any namespace and process.',
  },
  'connection:mock:failures': {
    source: 'Field',
    behavior: 'A fixture makes calls fail or late on demand; arguments are validated as real servers do.',
  },
  'connection:mock:frozen-server': {
    source: 'House',
    behavior:
      'A simulated connection keeps the tools that its server had at creation, also after that server changed or was deleted; a server without a successful release answers 400 `validation_error`.',
  },
  'connection:mock:bounded': {
    source: 'House',
    behavior:
      'Calls of a mock have one order in all processes, and the uses of its rules are counted over restarts; its newest 1,000 calls are stored, and a server with more than 4 MB of definitions is refused.',
  },
  'connection:mock:model': {
    source: 'House',
    behavior:
      'With `SIMULATOR_URL` a language model generates results, which are validated against the schema; otherwise results are generated from the schemas. `_meta` names the generator and the reason.',
  },
  'connection:mock:model-bounded': {
    source: 'House',
    behavior:
      'A day has at most `SIMULATOR_DAILY_CALLS_MAX` requests to the language model, a namespace a quarter of them.',
  },
  'connection:field:icon-url': {
    source: 'Spec 2.1',
    behavior: '`iconUrl` is a string when the server announces an icon and null otherwise.',
  },
  'connection:field:created-at': {
    source: 'Spec 2.1',
    behavior: '`createdAt` is an ISO 8601 UTC timestamp that never changes.',
  },
  'connection:field:status': {
    source: 'Spec 2.1',
    behavior: '`status` is an object with a string `state` in every connection the service returns.',
  },
  'connection:status:last-known': {
    source: 'Spec 2.1',
    behavior: 'Reading or listing connections returns the last known status without contacting the upstream.',
  },
  'connection:status:words': {
    source: 'House',
    behavior:
      "The first 200 characters of an MCP server's refusal, a text or JSON body, are shown to the connection's owner, without what looks like a secret; callers of a registry server and visitors of a setup page do not see them.",
  },
  'connection:status:values': {
    source: 'Spec 2.1, Field',
    behavior: '`status.state` is one of `connected`, `disconnected`, `auth_required`, `input_required` and `error`.',
  },
  'connection:field:server-info': {
    source: 'Spec 2.1',
    behavior:
      '`serverInfo` carries name, version, title, websiteUrl and description as the server sent them at MCP initialization.',
  },
  'connection:field:server-info-icons': {
    source: 'Spec 2.1',
    behavior: '`serverInfo.icons` is an array of `{src, mimeType, sizes}` with `sizes` an array of strings.',
  },
  'connection:field:server-info-absent': {
    source: 'Spec 2.1, Field',
    behavior: '`serverInfo` is absent until an initialization has succeeded.',
  },
  'connection:headers:never-returned': {
    source: 'Spec 2.1, 4.3',
    behavior: 'Headers given at creation appear, by name or value, in no response of any operation.',
  },
  'connection:headers:stored-securely': {
    source: 'Spec 2.1, 4.3',
    behavior: 'Headers are encrypted in the database: no column holds a header value in clear text.',
  },

  // Spec 2.4: tool of a connection
  'tool:field:name': { source: 'Spec 2.4, Field', behavior: '`name` is a string in every tool.' },
  'tool:field:input-schema': {
    source: 'Spec 2.4, Field',
    behavior: '`inputSchema` is in every tool, with its `type`, `properties` and `required` as the upstream sent them.',
  },
  'tool:field:title': {
    source: 'Spec 2.4',
    behavior: '`title` is the string the upstream gave and absent when it gave none.',
  },
  'tool:field:icons': {
    source: 'Spec 2.4',
    behavior: '`icons` is the array of `{src, mimeType, sizes}` the upstream gave.',
  },
  'tool:field:description': { source: 'Spec 2.4', behavior: '`description` is the string the upstream gave.' },
  'tool:field:output-schema': {
    source: 'Spec 2.4',
    behavior: '`outputSchema` has the shape of `inputSchema` and is what the upstream declared.',
  },
  'tool:field:annotations': {
    source: 'Spec 2.4',
    behavior:
      '`annotations` keeps the string `title` and the booleans readOnlyHint, destructiveHint, idempotentHint and openWorldHint.',
  },
  'tool:field:execution': { source: 'Spec 2.4', behavior: '`execution` is the object the upstream gave.' },
  'tool:field:meta': { source: 'Spec 2.4', behavior: '`_meta` is the object the upstream gave.' },
  'tool:field:unknown-kept': {
    source: 'House',
    behavior: 'An unknown tool field reaches the caller unchanged.',
  },
} as const satisfies Record<string, Requirement>;
