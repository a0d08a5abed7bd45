import type { Requirement } from '../requirements.js';

/** Spec 1, 2.2, 2.3 and 2.5 to 2.8: names, namespaces, servers, releases, logs, schemas and skills. */
export const registryResources = {
  // Spec 1: names and ownership
  'name:two-part': {
    source: 'Spec 1',
    behavior: 'The qualified name `namespace/server` addresses that server of that namespace.',
  },
  'name:namespace-only': {
    source: 'Spec 1',
    behavior: 'The qualified name `namespace` alone addresses the namespace-only server.',
  },
  'name:encoded-slash': {
    source: 'Spec 1',
    behavior: 'In a URL path the slash of a qualified name is written `%2F`, in either letter case.',
  },
  'namespace:owns:servers': {
    source: 'Spec 1',
    behavior:
      'A server belongs to the namespace in its qualified name: equal server names in two namespaces are two servers.',
  },
  'namespace:owns:skills': {
    source: 'Spec 1',
    behavior: 'A skill belongs to the namespace that addresses it.',
  },

  // Spec 2.2: release fields
  'release:field:id': { source: 'Spec 2.2', behavior: '`id` of a release is a UUID.' },
  'release:field:status': { source: 'Spec 2.2', behavior: '`status` of a release is a string.' },
  'release:status:values': {
    source: 'Spec 2.2, Field',
    behavior:
      '`status` is one of QUEUED, WORKING, SUCCESS, FAILURE, FAILURE_SCAN, AUTH_REQUIRED, AUTH_TIMEOUT, CANCELLED and INTERNAL_ERROR.',
  },
  'release:field:type': { source: 'Spec 2.2', behavior: '`type` of a release is a string.' },
  'release:type:values': {
    source: 'Spec 2.2, Field',
    behavior: '`type` is one of `hosted_shttp`, `external_shttp` and `stdio`.',
  },
  'release:field:created-at': {
    source: 'Spec 2.2',
    behavior: '`createdAt` of a release is an ISO 8601 timestamp string.',
  },
  'release:field:updated-at': {
    source: 'Spec 2.2',
    behavior: '`updatedAt` of a release is the ISO 8601 time of its last status change.',
  },
  'release:field:commit': {
    source: 'Spec 2.2',
    behavior: '`commit` is the commit given at publishing, or null.',
  },
  'release:field:commit-message': {
    source: 'Spec 2.2',
    behavior: '`commitMessage` is the message given at publishing, or null.',
  },
  'release:field:branch': {
    source: 'Spec 2.2',
    behavior: '`branch` is the branch given at publishing, or null.',
  },
  'release:field:upstream-url': {
    source: 'Spec 2.2',
    behavior: '`upstreamUrl` is the URL of an external release and null for the other types.',
  },
  'release:field:mcp-url': {
    source: 'Spec 2.2',
    behavior: '`mcpUrl` is the address under which the release serves MCP.',
  },
  'release:logs:omitted-in-list': {
    source: 'Spec 2.2, 4.6',
    behavior: 'A release in a list carries no `logs` key.',
  },
  'release:logs:on-one': { source: 'Spec 2.2', behavior: 'A single release has its logs.' },
  'release:logs:shape': {
    source: 'Spec 2.2, Field',
    behavior: 'A log entry of a release is `{stage, level, message, timestamp, error?}`.',
  },

  // Spec 2.3: server detail
  'server:detail:all-keys': {
    source: 'Spec 2.3, Field',
    behavior: 'The detail has every key of the table, also for a server that was never released.',
  },
  'server:detail:qualified-name': {
    source: 'Spec 2.3',
    behavior:
      '`qualifiedName` is `namespace/server`, or `namespace` for a namespace-only server, however the path was spelled.',
  },
  'server:detail:display-name': { source: 'Spec 2.3', behavior: '`displayName` is the string given at creation.' },
  'server:detail:description': { source: 'Spec 2.3', behavior: '`description` is the string given at creation.' },
  'server:detail:icon-url-null': {
    source: 'Spec 2.3, Field',
    behavior: '`iconUrl` is null for a server without an icon.',
  },
  'server:detail:icon-url': {
    source: 'Spec 2.3',
    behavior: '`iconUrl` is a URL under which the icon of the server can be fetched.',
  },
  'server:detail:remote-unreleased': {
    source: 'Spec 2.3',
    behavior: '`remote` is the boolean false for a server without a release.',
  },
  'server:detail:remote': {
    source: 'Spec 2.3, House',
    behavior: '`remote` is true exactly when the current release is external or hosted.',
  },
  'server:detail:deployment-url-null': {
    source: 'Spec 2.3, Field',
    behavior: '`deploymentUrl` is null for a server without a deployment.',
  },
  'server:detail:deployment-url': {
    source: 'Spec 2.3',
    behavior: '`deploymentUrl` is the address at which the current release serves MCP.',
  },
  'server:detail:connections-empty': {
    source: 'Spec 2.3',
    behavior: '`connections` is an empty array for a server without a release.',
  },
  'server:detail:connections-stdio': {
    source: 'Spec 2.3, Field',
    behavior: 'A stdio release appears in `connections` as `{type: "stdio", bundleUrl, runtime, configSchema}`.',
  },
  'server:detail:connections-http': {
    source: 'Spec 2.3, Field',
    behavior: 'A remote release appears in `connections` as `{type: "http", deploymentUrl, configSchema}`.',
  },
  'server:detail:security-null': {
    source: 'Spec 2.3, Field',
    behavior: '`security` is null for a server that was never scanned.',
  },
  'server:detail:security': {
    source: 'Spec 2.3, House',
    behavior: '`security.scanPassed` is the boolean result of the newest scanned release.',
  },
  'scan:warnings': {
    source: 'House',
    behavior:
      'Text of a server that speaks to a model as known attacks do is listed in `security.warnings` and in the log of the release. It does not change `scanPassed`.',
  },
  'server:detail:security-bundle': {
    source: 'House',
    behavior: 'A bundle that was not run has `security: null` and `deploymentUrl: null`, and its release no `mcpUrl`.',
  },
  'icon:from-url': {
    source: 'Spec 4.12, House',
    behavior:
      'An `iconUrl` set by PATCH is fetched and served by `/icon`; a URL without an image answers 400, one over 1 MB 413.',
  },
  'release:link:cancelled': {
    source: 'House',
    behavior: 'The link of a cancelled release answers 410, and no token is stored.',
  },
  'release:resume:repeated': {
    source: 'House',
    behavior: 'A repeated resume within 60 s of a working release answers 202 with the same id.',
  },
  'query:exact-values': {
    source: 'House',
    behavior: 'Integers in a query are digits, and days are calendar days; anything else answers 400.',
  },
  'config:whole-schema': {
    source: 'House',
    behavior:
      'Configuration values are validated against the whole `configSchema`; a publish with a schema that cannot be enforced is refused.',
  },
  'scan-credentials:types': {
    source: 'House',
    behavior: 'A scan credential has the JSON type of its property, or is a string.',
  },
  'scan-credentials:query': {
    source: 'House',
    behavior:
      'A scan credential whose property has no `x-to` and is sent in the query causes a warning of the publish, and the error of a refused scan names it.',
  },
  'server:detail:tools-null': {
    source: 'Spec 2.3, Field',
    behavior: '`tools` is null for a server that was never scanned.',
  },
  'server:detail:tools': {
    source: 'Spec 2.3',
    behavior: '`tools` lists the scanned tools as `{name, description, inputSchema, outputSchema}`.',
  },
  'server:detail:tools-description-null': {
    source: 'Spec 2.3, Field',
    behavior: '`description` of a scanned tool that has none is present and null.',
  },
  'server:detail:tools-input-schema': {
    source: 'Spec 2.3',
    behavior: '`inputSchema` of a scanned tool is `{type, properties}`.',
  },
  'server:detail:tools-output-schema': {
    source: 'Spec 2.3',
    behavior:
      '`outputSchema` of a scanned tool is `{type, properties, required}` and absent when the tool declares none.',
  },
  'server:detail:resources-null': {
    source: 'Spec 2.3, Field',
    behavior: '`resources` is null for a server that was never scanned.',
  },
  'server:detail:resources': {
    source: 'Spec 2.3',
    behavior: '`resources` lists the scanned resources as `{name, uri, description, mimeType}`.',
  },
  'server:detail:prompts-null': {
    source: 'Spec 2.3, Field',
    behavior: '`prompts` is null for a server that was never scanned.',
  },
  'server:detail:prompts': {
    source: 'Spec 2.3',
    behavior: '`prompts` lists the scanned prompts as `{name, description, arguments}`.',
  },
  'server:detail:prompts-arguments': {
    source: 'Spec 2.3',
    behavior: 'An argument of a prompt is `{name, description, required}` with a boolean `required`.',
  },

  // Spec 2.5: invocation log entry
  'invocation:field:id': { source: 'Spec 2.5', behavior: '`id` of an invocation is a UUID.' },
  'invocation:field:timestamp': {
    source: 'Spec 2.5',
    behavior: '`timestamp` of an invocation is text of the form `YYYY-MM-DD HH:MM:SS`.',
  },
  'invocation:field:request': {
    source: 'Spec 2.5',
    behavior: '`request` is `{method, url}`, both strings.',
  },
  'invocation:field:response': {
    source: 'Spec 2.5',
    behavior: '`response` is `{status, outcome}` with an integer status and a string outcome.',
  },
  'invocation:field:duration': {
    source: 'Spec 2.5',
    behavior: '`duration` is `{cpuMs, wallMs}`, both integers.',
  },
  'invocation:field:logs': {
    source: 'Spec 2.5',
    behavior: '`logs` is an array of `{timestamp, level, message}` strings, empty when nothing was written.',
  },
  'invocation:field:exceptions': {
    source: 'Spec 2.5',
    behavior: '`exceptions` is an array of `{timestamp, name, message}` strings, empty when nothing was thrown.',
  },

  // Spec 2.6: inferred tool output schema
  'output-schema:field:qualified-name': {
    source: 'Spec 2.6',
    behavior: '`qualifiedName` is the name of the requested server.',
  },
  'output-schema:field:tool-name': {
    source: 'Spec 2.6',
    behavior: '`toolName` is the name of the requested tool.',
  },
  'output-schema:field:sample-count': {
    source: 'Spec 2.6',
    behavior: '`sampleCount` is the integer number of samples.',
  },
  'output-schema:field:validator-schema': {
    source: 'Spec 2.6',
    behavior: '`validatorSchema` is a schema expression as text that accepts all its samples.',
  },
  'output-schema:field:published-name': {
    source: 'Spec 2.6, Field',
    behavior: 'The same expression is also returned as `zodSchema`, the name that published clients read.',
  },
  'output-schema:fields-optional': {
    source: 'Spec 2.6',
    behavior: 'Every discovered object field is marked optional in the expression.',
  },
  'output-schema:json-schema': {
    source: 'House',
    behavior: '`jsonSchema` is the same schema as JSON Schema 2020-12, and accepts all its samples.',
  },
  'output-schema:field-presence': {
    source: 'House',
    behavior: '`fields` lists every path of the results with its types and the share of results that have it.',
  },
  'output-schema:paste-safe': {
    source: 'House',
    behavior: 'The expression contains only calls of Zod, whatever names the results have.',
  },
  'output-schema:no-values': {
    source: 'House',
    behavior:
      'Only the shape of results is stored: no values and no names made from data, except words of enumerations.',
  },

  // Spec 2.7: namespace and skill
  'namespace:identified-by-name': {
    source: 'Spec 2.7',
    behavior: 'A namespace is identified by its `name`, a string that is unique in the whole service.',
  },
  'namespace:field:created-at': {
    source: 'Spec 2.7, Field',
    behavior: 'A namespace record is `{name, createdAt}` with an ISO 8601 `createdAt`.',
  },
  'skill:identified-by-slug': {
    source: 'Spec 2.7',
    behavior: 'A skill is identified by namespace and slug.',
  },
  'skill:field:qualified-name': {
    source: 'Spec 2.7',
    behavior: '`qualifiedName` of a skill is the string `namespace/slug`.',
  },

  // Spec 2.8: server as created in a namespace
  'server:record:namespace': {
    source: 'Spec 2.8',
    behavior: '`namespace` of the created server is the name of its namespace.',
  },
  'server:record:server': {
    source: 'Spec 2.8',
    behavior: '`server` of the created server is its name within the namespace.',
  },
  'server:record:server-empty': {
    source: 'Spec 2.8, Field',
    behavior: '`server` is the empty string for a namespace-only server.',
  },
  'server:record:display-name': { source: 'Spec 2.8', behavior: '`displayName` is the string that was given.' },
  'server:record:display-name-default': {
    source: 'Spec 2.8, House',
    behavior: '`displayName` defaults to the server name, or the namespace for a namespace-only server.',
  },
  'server:record:description': { source: 'Spec 2.8', behavior: '`description` is the string that was given.' },
  'server:record:description-default': {
    source: 'Spec 2.8, House',
    behavior: '`description` defaults to the empty string.',
  },
  'server:record:created-at': { source: 'Spec 2.8', behavior: '`createdAt` is an ISO 8601 UTC timestamp string.' },
} as const satisfies Record<string, Requirement>;
