import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import { VERSION } from '../../config/version.js';
import { rpcCodeOf } from '../errors/error-body.js';
import { familyOf, type ErrorFamily } from '../errors/error-form.decorator.js';
import { API_ERRORS, type ApiError } from './api-docs.decorators.js';

const description = `
One place where a company's MCP servers are published, found, connected and called. [Console](/ui/).

The groups *Core* have the operations that will not change. All others are folded: open one, or type its name into the filter.

**First steps.** Press *Authorize* and give the API key that \`npm start\` printed. Then, top to bottom:
1. *Namespaces*: claim one with \`PUT /namespaces/{name}\`.
2. *Connections*: connect an MCP server with \`PUT /connect/{namespace}/{connectionId}\` and its \`mcpUrl\`. None at hand?
   \`npx -y @modelcontextprotocol/server-everything streamableHttp\` starts the one that the examples here mean.
3. *Tools*: list its tools, look at one, call it.
4. *MCP*: use the same connection from any MCP client, at \`/connect/{namespace}/{connectionId}/mcp\`.
5. *Core connections*: list yours, filtered by your own metadata.
6. *Servers* and *Releases*: create a server, publish the same URL as its first release, follow its log, find it by
   search, and call it at \`/run/{slug}\` with a key that may. A JavaScript module, published as \`hosted\`, runs here.
7. *Runtime logs*: see what became of each call, and find one by a word it printed.

\`/{namespace}…\` is short for \`/connect/{namespace}…\`. Errors are \`{error, message}\` under \`/connect\`, JSON-RPC on MCP
endpoints, \`{error, code}\` where a skill is published, \`{error}\` everywhere else. This page as a document: [openapi.json](/openapi.json).

**Start**: [First calls](/docs/start/first-calls.md), [First server](/docs/start/first-server.md),
[First colleague](/docs/start/first-colleague.md).
**Guides**: [Connect](/docs/guides/connect.md), [Clients](/docs/guides/clients.md), [Log in by URL](/docs/guides/log-in-by-url.md),
[Elicitation](/docs/guides/elicitation.md), [Uplink](/docs/guides/uplink.md), [Mocks](/docs/guides/mocks.md),
[Console](/docs/guides/console.md), [Publish](/docs/guides/publish.md), [Host](/docs/guides/host.md), [Logs](/docs/guides/logs.md).
For operators: [Operate](/docs/guides/operate.md), [People and keys](/docs/guides/people-and-keys.md), [Teams](/docs/guides/teams.md),
[Company sign-in](/docs/guides/oidc.md), [Upgrade](/docs/guides/upgrade.md), [Kubernetes](/docs/guides/kubernetes.md),
[Networks](/docs/guides/networks.md), [Extend](/docs/guides/extend.md).
**Reference**: [Settings](/docs/reference/settings.md), [Errors](/docs/reference/errors.md), [Access](/docs/reference/access.md),
[MCP endpoints](/docs/reference/mcp.md), [Protocol versions](/docs/reference/protocol-versions.md), [Metrics](/docs/reference/metrics.md),
[Troubleshoot](/docs/reference/troubleshoot.md), [Features of modules](/docs/reference/module-features.md).
**Explanation**: [Concepts](/docs/explanation/concepts.md), [Scope](/docs/explanation/scope.md), [Scale](/docs/explanation/scale.md).
**For contributors**: [Vocabulary](/docs/contributing/language.md), [Contract](/docs/contributing/contract.md),
[Compatibility](/docs/contributing/compatibility.md).
`.trim();

/** Groups of the operations that `interface.md` specifies, by the group of their controller. Shown first and unfolded. */
const coreGroups: Record<string, string> = {
  Connections: 'Core connections',
  Tools: 'Core connections',
  Servers: 'Core servers',
  'Server icons': 'Core servers',
  Releases: 'Core servers',
  'Runtime logs': 'Core servers',
  Namespaces: 'Core namespaces and skills',
  Skills: 'Core namespaces and skills',
};

/** Tags in the order in which a newcomer needs them. Tags of other modules follow by name. */
const tags: [name: string, description: string][] = [
  ['Core connections', 'List, create and delete connections, and read their tools.'],
  ['Core servers', 'Read and delete servers, follow their releases and logs, infer output schemas.'],
  ['Core namespaces and skills', 'Delete namespaces and skills.'],
  ['Namespaces', 'Names that you own. They hold servers, skills and connections.'],
  ['Connections', 'Stored links to MCP servers, with their credentials and status.'],
  ['Tools', 'List and call the tools of a connection over REST.'],
  ['Triggers', 'Subscribe to events of a connection. Preview.'],
  ['MCP', 'Use a connection, a namespace or a registered server from any MCP client.'],
  ['Servers', 'The registry: create, find and change servers.'],
  ['Releases', 'Publish versions of a server, and follow their checks.'],
  ['Runtime logs', 'Requests to a server, with outcome, output and exceptions.'],
  ['Skills', 'Instructions for agents: folders with a SKILL.md.'],
  ['Server icons', 'Images of servers.'],
  ['Server settings', 'Secrets, run address and outbound hosts of a server.'],
  ['Accounts and API keys', 'Accounts, their API keys, limits and permissions.'],
  ['Grants', 'Access of other accounts to single servers and connections.'],
  ['Health', 'Probes for monitors. No API key needed.'],
];

/** Code and text of a status, where an error has no others. */
const usual: Record<number, [code: string, text?: string]> = {
  400: ['validation_error', 'The request is invalid. The message names the part.'],
  401: ['unauthorized', 'The API key is missing, unknown, revoked or expired.'],
  403: ['forbidden', 'The API key lacks a scope, or its account lacks the right.'],
  404: ['not_found', 'The resource does not exist, or belongs to another account.'],
  409: ['conflict', 'The request conflicts with the current state.'],
  413: ['validation_error', 'The body is too large.'],
  415: ['validation_error', 'The body has an encoding or a media type that is not taken here.'],
  422: ['tool_error'],
  429: ['rate_limited', 'Too many requests, or a limit of the account is reached.'],
  502: ['upstream_error'],
  504: ['timeout'],
};

/** Returns an example body of each family; code and text are those of the status unless given. */
function exampleBody(
  family: ErrorFamily,
  status: number,
  example: { code?: string; rpcCode?: number; message?: string },
): object {
  const [usualCode = 'internal_error', text = 'What happened, and what to do.'] = usual[status] ?? [];
  const code = example.code ?? usualCode;
  const message = example.message ?? (status === 404 ? 'Resource not found' : text);
  if (family === 'json-rpc') {
    return { jsonrpc: '2.0', id: null, error: { code: example.rpcCode ?? rpcCodeOf(status), message } };
  }
  if (family === 'connections') return { error: code, message };
  const error = status === 401 ? 'Unauthorized' : message;
  return family === 'publishing' ? { error, code: code.toUpperCase() } : { error };
}

const string = (description: string) => ({ type: 'string', description });
const [forPeople, forPrograms] = [
  string('What happened and what to do, for people.'),
  string('An error code for programs.'),
];

function errorSchema(properties: object): object {
  return { type: 'object', required: Object.keys(properties), properties };
}

const schemas = {
  RegistryError: errorSchema({ error: string('What happened, for people.') }),
  PublishingError: errorSchema({ error: forPeople, code: forPrograms }),
  ConnectionsError: errorSchema({ error: forPrograms, message: forPeople }),
  JsonRpcError: {
    type: 'object',
    required: ['jsonrpc', 'error'],
    properties: {
      jsonrpc: { type: 'string', enum: ['2.0'] },
      id: {
        description: 'The id of the request; null when it could not be read.',
        oneOf: [{ type: 'string', nullable: true }, { type: 'number' }],
      },
      error: {
        type: 'object',
        required: ['code', 'message'],
        properties: { code: { type: 'integer' }, message: { type: 'string' }, data: {} },
      },
    },
  },
};

const schemaOf: Record<ErrorFamily, keyof typeof schemas> = {
  registry: 'RegistryError',
  connections: 'ConnectionsError',
  publishing: 'PublishingError',
  'json-rpc': 'JsonRpcError',
};

/** Description of a namespace: that of the examples has no owner until it is claimed. */
const namespaceDescription = 'A namespace. Claim your own with `PUT /namespaces/{name}`.';

/** Descriptions of successes without their own text. */
const successTexts: Record<string, string> = { 200: 'Done.', 201: 'Created.', 202: 'Accepted.' };

interface Parameter {
  name: string;
  description?: string;
  in: string;
  schema?: { type?: string };
}

interface Operation {
  summary?: string;
  description?: string;
  tags?: string[];
  parameters?: Parameter[];
  requestBody?: object;
  responses: Record<string, { description?: string; content?: Record<string, object> }>;
  security?: Record<string, string[]>[];
  [API_ERRORS]?: ApiError[];
}

function addErrors(path: string, method: string, operation: Operation): void {
  const family = familyOf(path, method);
  const needsKey = operation.security?.some((scheme) => 'apiKey' in scheme) ?? false;
  const declared = operation[API_ERRORS] ?? [];
  const isLimited = declared.some((error) => error === 429 || (error as { status?: number }).status === 429);
  delete operation[API_ERRORS];
  // If a success can be protobuf, so can a failure.
  const protobuf = operation.responses[200]?.content?.['application/x-protobuf'];
  const binary = protobuf && { 'application/x-protobuf': protobuf };
  for (const error of [
    // For an unknown query parameter, which only MCP endpoints ignore.
    ...(needsKey && family !== 'json-rpc' ? [400] : []),
    // For a key whose scopes do not cover the route.
    ...(needsKey ? [403] : []),
    ...declared,
    ...(needsKey ? [401, ...(isLimited ? [] : [429])] : []),
    ...(operation.requestBody ? [413] : []),
    ...(['post', 'put', 'patch'].includes(method) ? [415] : []),
  ]) {
    const { status, text, ...details } =
      typeof error === 'number' ? ({ status: error } as Exclude<ApiError, number>) : error;
    operation.responses[status] = {
      description: text ?? usual[status]?.[1] ?? `Status ${status}.`,
      content: {
        'application/json': {
          schema: { $ref: `#/components/schemas/${schemaOf[family]}` },
          example: exampleBody(family, status, details),
        },
        ...binary,
      },
    };
  }
}

/** Returns the OpenAPI document of everything that the app serves. */
export function createOpenApi(app: INestApplication): OpenAPIObject {
  const builder = new DocumentBuilder()
    .setTitle('Slipway')
    .setDescription(description)
    .setVersion(VERSION)
    .addSecurity('apiKey', { type: 'http', scheme: 'bearer', description: 'An API key: `slipway_…`' });
  for (const [name, text] of tags) builder.addTag(name, text);
  const document = SwaggerModule.createDocument(app, builder.build(), {
    operationIdFactory: (controller, method) => `${controller.replace(/Controller$/, '')}_${method}`,
  });
  const used = new Set<string>();
  for (const [path, item] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(item) as [string, Operation][]) {
      if (!operation.responses) continue;
      // The first sentence of a handler's comment is the summary, which Swagger UI shows on one line and without formatting;
      // the rest is the description. Sources (`Spec 4.2.`) are for readers of the code.
      const [group = ''] = operation.tags ?? [];
      if (/Spec 4\.\d/.test(operation.summary ?? '')) operation.tags = [coreGroups[group] ?? group];
      const comment = (operation.summary ?? '')
        .replace(/\s+/g, ' ')
        .replace(/ ?Spec [\d.]*\d\.?/g, '')
        .trim();
      const [, first, rest] = /^(.*?)\.(?: (.+))?$/.exec(comment) ?? [undefined, comment, undefined];
      operation.summary = first;
      if (rest) operation.description = rest;
      // Path parameters first, in the order of the path, all as strings.
      const rank = ({ name, in: where }: Parameter) => (where === 'path' ? path.indexOf(`{${name}}`) : path.length);
      operation.parameters?.sort((a, b) => rank(a) - rank(b));
      for (const parameter of operation.parameters ?? []) {
        if (parameter.name === 'namespace') parameter.description = namespaceDescription;
        if (parameter.in === 'path') parameter.schema = { type: 'string', ...parameter.schema };
      }
      for (const [status, response] of Object.entries(operation.responses)) {
        response.description ||= successTexts[status] ?? '';
      }
      addErrors(path, method, operation);
      for (const tag of operation.tags ?? []) used.add(tag);
    }
  }
  for (const schema of Object.values(document.components?.schemas ?? {})) {
    if (!('properties' in schema)) continue;
    for (const property of Object.values(schema.properties ?? {})) {
      // An empty list is not valid.
      if ('required' in property && property.required?.length === 0) delete property.required;
      if ('$ref' in property || !property.nullable || !property.allOf) continue;
      // `nullable` next to `allOf` allows no null, which the referenced schema rejects (OpenAPI 3.0.3, "Nullable").
      property.anyOf = [...property.allOf, { type: 'object', nullable: true, enum: [null] }];
      for (const name of ['allOf', 'type', 'nullable'] as const) delete property[name];
    }
  }
  const untagged = [...used].filter((name) => !tags.some(([tagName]) => tagName === name)).sort();
  document.tags = [...(document.tags ?? []), ...untagged.map((name) => ({ name }))];
  // Swagger UI keeps this order in a group: operations on the collection come before those on one member.
  const depth = (path: string) => path.split('/').length;
  document.paths = Object.fromEntries(Object.entries(document.paths).sort(([a], [b]) => depth(a) - depth(b)));
  document.components = { ...document.components, schemas: { ...document.components?.schemas, ...schemas } };
  return document;
}
