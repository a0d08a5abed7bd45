import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createApp } from '../../src/app.setup.js';
import { loadEnv } from '../../src/config/env.js';
import { routeTable } from '../../src/platform/http/route-table.js';
import { uniqueName } from '../support/app.js';
import { startAuthorizationServer, type AuthorizationServer } from '../support/authorization-server.js';
import { cleanUpPrograms, dataFolder, runProgram } from '../support/program.js';
import { images } from '../support/icons.js';
import { until } from '../support/until.js';
import { openTunnel } from '../support/uplink-client.js';
import { startUpstream, type Upstream } from '../support/upstream.js';
import { verifies } from '../support/verifies.js';
import { startRepositoryHost } from '../support/repository-host.js';
import { skillMd } from '../support/skills.js';
import { startScripted } from '../support/scripted-upstream.js';
import { zipOf } from '../support/zips.js';

/** Real processes take their time on a busy machine. */
const SLOW_MS = 300_000;

/** A parsed body, of any shape. */
type Json = ReturnType<typeof JSON.parse>;

interface Schema {
  $ref?: string;
  type?: string;
  nullable?: boolean;
  enum?: unknown[];
  required?: string[];
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  items?: Schema;
  oneOf?: Schema[];
  example?: unknown;
}

interface Media {
  schema?: Schema;
  example?: unknown;
  examples?: Record<string, { value: unknown }>;
}

interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema?: Schema;
}

interface Operation {
  operationId: string;
  summary?: string;
  description?: string;
  deprecated?: boolean;
  tags?: string[];
  parameters?: Parameter[];
  requestBody?: { content: Record<string, Media> };
  responses: Record<string, { description?: string; content?: Record<string, Media> }>;
  security?: Record<string, string[]>[];
}

interface OpenApi {
  openapi: string;
  info: { title: string; version: string };
  tags: { name: string; description?: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; securitySchemes: Record<string, object> };
}

/** What an MCP server said passes unchanged, so these may hold more than is written; every other object is closed. */
const open = new Set([
  'ToolDto',
  'ObjectSchemaDto',
  'ToolAnnotationsDto',
  'ServerIconDto',
  'CallToolResultDto',
  'ContentDto',
]);

/** Routes that are answered and not worth a line in the document. */
const undocumented = [
  'POST /internal/hosting/{host}',
  // Paths of hosted code, which is documented by its author.
  'PUT /run/{slug}/{path}',
  'PATCH /run/{slug}/{path}',
  'HEAD /run/{slug}/{path}',
  'OPTIONS /run/{slug}/{path}',
  'POST /internal/parked-calls',
  'POST /internal/uplink/{connection}/{tunnel}',
  'GET /connect/{namespace}/{connectionId}/mcp',
  'DELETE /connect/{namespace}/{connectionId}/mcp',
  'GET /connect/{namespace}/.mcp',
  'DELETE /connect/{namespace}/.mcp',
  // What only older command line tools ask for.
  'GET /connect/{namespace}/.subscriptions',
  'POST /connect/{namespace}/.subscriptions',
  'DELETE /connect/{namespace}/.subscriptions/{id}',
  'GET /connect/{namespace}/{connectionId}/.subscriptions',
  'POST /connect/{namespace}/{connectionId}/.subscriptions',
  'DELETE /connect/{namespace}/{connectionId}/.subscriptions/{id}',
  'GET /run/{slug}',
  'DELETE /run/{slug}',
  'GET /run/{slug}/{path}',
  'POST /run/{slug}/{path}',
  'DELETE /run/{slug}/{path}',
  // Pages for browsers, and a document for authorization servers.
  'GET /setup/{path}',
  'POST /setup/{path}',
  'GET /oauth/callback',
  'GET /oauth/client.json',
];

/** Headers a request may carry; what they are is said by RFC 9110 and the HTML standard. */
const requestHeaders = ['If-None-Match', 'Last-Event-ID'];

/** Turns the metrics on. */
const METRICS_TOKEN = 'metrics-token-of-this-test';

let url: string;
let key: string;
let served: OpenApi;
let committed: OpenApi;
let operations: { name: string; method: string; path: string; operation: Operation }[];

beforeAll(async () => {
  const service = runProgram('main.js', {
    DATA_DIR: await dataFolder(),
    UPSTREAM_CALL_TIMEOUT_MS: '5000',
    LOG_LEVEL: 'fatal',
    METRICS_TOKEN,
  });
  url = await service.url();
  key = (await service.key()) as string;
  served = (await (await fetch(`${url}/openapi.json`)).json()) as OpenApi;
  committed = JSON.parse(await readFile(new URL('../../openapi.json', import.meta.url), 'utf8')) as OpenApi;
  operations = Object.entries(committed.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      method: method.toUpperCase(),
      path,
      operation,
    })),
  );
}, SLOW_MS);

afterAll(cleanUpPrograms, SLOW_MS);

function resolve(ref: string): { name: string; schema: Schema } {
  const name = /^#\/components\/schemas\/(\w+)$/.exec(ref)?.[1] ?? '';
  const schema = committed.components.schemas[name];
  if (!schema) throw new Error(`${ref} leads nowhere.`);
  return { name, schema };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const fits: Record<string, (value: unknown) => boolean> = {
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === 'boolean',
  array: Array.isArray,
  object: isObject,
};

/** Where a value departs from its schema, one line each; none when it fits. */
function departures(schema: Schema, value: unknown, at = 'body', isOpen = false): string[] {
  if (schema.$ref !== undefined) {
    const target = resolve(schema.$ref);
    return departures(target.schema, value, at, open.has(target.name));
  }
  if (schema.oneOf) {
    const all = schema.oneOf.map((one) => departures(one, value, at, isOpen));
    return all.some((one) => one.length === 0) ? [] : all.flat();
  }
  if (value === null && schema.nullable === true) return [];
  if (schema.type !== undefined && !fits[schema.type]?.(value))
    return [`${at} is no ${schema.type}: ${JSON.stringify(value)}`];
  if (schema.enum && !schema.enum.includes(value)) return [`${at} is none of ${schema.enum.join(', ')}`];
  if (Array.isArray(value)) {
    return value.flatMap((item, i) => (schema.items ? departures(schema.items, item, `${at}[${i}]`) : []));
  }
  if (!isObject(value)) return [];
  const missing = (schema.required ?? []).filter((name) => !(name in value)).map((name) => `${at}.${name} is missing`);
  return Object.entries(value).reduce((found, [name, member]) => {
    const known = schema.properties?.[name];
    const rest = schema.additionalProperties;
    if (known) return [...found, ...departures(known, member, `${at}.${name}`)];
    if (isObject(rest)) return [...found, ...departures(rest, member, `${at}.${name}`)];
    const isFree = isOpen || rest === true || schema.properties === undefined;
    return isFree ? found : [...found, `${at}.${name} is not documented`];
  }, missing);
}

/** A form: texts as fields, bytes as files. */
function formOf(parts: Record<string, string | Buffer>): FormData {
  const form = new FormData();
  for (const [name, content] of Object.entries(parts)) {
    if (typeof content === 'string') form.set(name, content);
    else form.set(name, new Blob([new Uint8Array(content)]), `${name}.bin`);
  }
  return form;
}

/** Every schema and reference inside a part of the document. */
function* schemasIn(part: unknown): Generator<Record<string, unknown>> {
  if (Array.isArray(part)) for (const item of part) yield* schemasIn(item);
  else if (isObject(part)) {
    yield part;
    for (const [name, member] of Object.entries(part)) {
      if (name !== 'example' && name !== 'examples') yield* schemasIn(member);
    }
  }
}

function familySchema(path: string, method: string): string {
  if (/\/\.?mcp$/.test(path) || path.startsWith('/run/')) return 'JsonRpcError';
  if (path.startsWith('/skills') && (method === 'PUT' || method === 'POST')) return 'PublishingError';
  return path.startsWith('/connect/') ? 'ConnectionsError' : 'RegistryError';
}

/** `[{}]` is how a document says that nothing is needed. */
const needsKey = ({ security = [] }: Operation) => security.some((scheme) => 'apiKey' in scheme);

/** The operations that fail a check, so that a failure names all of them at once. */
function failing(check: (operation: Operation, path: string, method: string) => boolean): string[] {
  return operations.filter(({ operation, path, method }) => !check(operation, path, method)).map(({ name }) => name);
}

describe('the API document', () => {
  verifies('openapi:document', 'is served as it is committed, without a key', async () => {
    expect(served).toEqual(committed);
    const yaml = await fetch(`${url}/openapi.yaml`);
    expect(yaml.status).toBe(200);
  });

  verifies('openapi:document', 'is OpenAPI 3.0 by its structure', () => {
    expect(committed.openapi).toMatch(/^3\.0\.\d$/);
    expect(committed.info).toMatchObject({ title: 'Slipway', version: '1.0.0' });
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    const declared = committed.tags.map(({ name }) => name);
    expect(failing(({ tags }) => tags?.length === 1 && declared.includes(tags[0] ?? ''))).toEqual([]);
    expect(
      failing(({ parameters = [] }, path) => {
        const wanted = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
        const given = parameters.filter((one) => one.in === 'path');
        return (
          JSON.stringify(given.map(({ name }) => name)) === JSON.stringify(wanted) &&
          given.every((one) => one.required === true && one.schema?.type === 'string')
        );
      }),
    ).toEqual([]);
    expect(
      failing(({ responses }) =>
        Object.entries(responses).every(([status, { description }]) => /^[2-5]\d\d$/.test(status) && !!description),
      ),
    ).toEqual([]);

    const odd = [...schemasIn({ paths: committed.paths, components: committed.components })].flatMap((part) => {
      if (typeof part.$ref === 'string') return resolve(part.$ref).schema ? [] : [part.$ref];
      // What 3.1 and JSON Schema have and 3.0 has not.
      const newer = ['const', '$defs', '$schema', 'patternProperties', 'prefixItems'].filter((word) => word in part);
      return Array.isArray(part.type) || part.type === 'null' ? [...newer, JSON.stringify(part.type)] : newer;
    });
    expect(odd).toEqual([]);
  });

  verifies('openapi:complete', 'names every route of the service and no other', async () => {
    const env = loadEnv({
      DATABASE_URL: 'postgres://localhost/none',
      ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
    });
    const routes = routeTable(await createApp(env, { preview: true })).map(
      ({ method, path }) => `${method} ${path.replace(/[:*](\w+)/g, '{$1}')}`,
    );
    expect(routes).toEqual(expect.arrayContaining(undocumented));
    const documented = operations.map(({ name }) => name);
    expect([...documented].sort()).toEqual(routes.filter((name) => !undocumented.includes(name)).sort());
  });

  verifies('openapi:complete', 'gives every operation a summary of one plain line and describes its parameters', () => {
    const isPlain = (text: string) => text.length <= 80 && !/[`\n]|\.$/.test(text);
    expect(failing(({ summary = '' }) => summary !== '' && isPlain(summary))).toEqual([]);
    expect(failing(({ summary, description }) => !`${summary} ${description}`.includes('Spec '))).toEqual([]);
    expect(failing(({ parameters = [] }) => parameters.every((one) => (one.description ?? '') !== ''))).toEqual([]);
  });

  verifies('openapi:complete', 'gives every operation examples that fit, and fills no filter in unasked', () => {
    const wrong: string[] = [];
    let examples = 0;
    const check = (name: string, { schema = {}, example, examples: several = {} }: Media) => {
      const given = [example, schema.example, ...Object.values(several).map(({ value }) => value)];
      for (const value of given.filter((one) => one !== undefined)) {
        examples += 1;
        wrong.push(...departures(schema, value).map((line) => `${name}: ${line}`));
      }
    };
    for (const { name, operation } of operations) {
      const { parameters = [], requestBody, responses } = operation;
      const bodies = [requestBody ?? {}, ...Object.values(responses)].flatMap(({ content = {} }) =>
        Object.values(content),
      );
      bodies.forEach((media) => check(name, media));
      for (const { in: where, name: parameter, schema = {} } of parameters) {
        const isFilled = schema.example !== undefined;
        if (where === 'path' && !isFilled) wrong.push(`${name}: {${parameter}} has no example`);
        if (where === 'query' && isFilled && parameter !== 'metadata') wrong.push(`${name}: ${parameter} is filled in`);
      }
      // A success without an example of its own is shown with those of its schema's properties.
      const shown = bodies.some(({ schema, example }) => {
        const properties = schema?.$ref === undefined ? {} : (resolve(schema.$ref).schema.properties ?? {});
        return (
          example !== undefined ||
          schema?.example !== undefined ||
          Object.values(properties).some((one) => 'example' in one)
        );
      });
      if (!shown) wrong.push(`${name} has no example`);
    }
    expect(wrong).toEqual([]);
    expect(examples).toBeGreaterThan(operations.length);
  });

  verifies('openapi:complete', 'gives every operation its statuses, each failure with the body of its family', () => {
    expect(failing(({ responses }) => Object.keys(responses).some((status) => status.startsWith('2')))).toEqual([]);
    expect(
      failing(({ responses }, path, method) =>
        Object.entries(responses).every(([status, { content }]) => {
          if (status.startsWith('2') || path === '/ready') return true;
          if (status === '304') return content === undefined;
          const media = content?.['application/json'];
          return (
            media?.schema?.$ref === `#/components/schemas/${familySchema(path, method)}` && media.example !== undefined
          );
        }),
      ),
    ).toEqual([]);
    const needs = (status: string, when: (operation: Operation, path: string) => boolean) =>
      failing((operation, path) => !when(operation, path) || status in operation.responses);
    expect(needs('401', needsKey)).toEqual([]);
    expect(needs('413', ({ requestBody }) => requestBody !== undefined)).toEqual([]);
    expect(needs('404', (_, path) => path.includes('{') && path !== '/namespaces/{name}')).toEqual([]);
  });

  verifies(
    'openapi:deprecated',
    'marks the older ways to create servers and skills deprecated, and nothing else',
    () => {
      const deprecated = operations.filter(({ operation }) => operation.deprecated === true).map(({ name }) => name);
      expect(deprecated).toEqual([
        'PUT /namespaces/{namespace}/servers/{server}',
        'POST /skills',
        'POST /skills/{namespace}/{slug}/sync',
      ]);
      expect(operations.map(({ name }) => name)).toContain('PUT /servers/{qualifiedName}');
    },
  );

  verifies('openapi:no-version', 'has no version in a path, a parameter or a header', () => {
    // The version in this one is OTLP's own.
    const ours = operations.filter(({ path }) => !path.endsWith('/otlp/v1/logs'));
    expect(ours.filter(({ path }) => /(^|\/)v\d+(\/|$)|version/i.test(path))).toEqual([]);
    const parameters = operations.flatMap(({ operation }) => operation.parameters ?? []);
    expect(parameters.filter((one) => /version/i.test(one.name))).toEqual([]);
    const headers = new Set(parameters.filter((one) => one.in === 'header').map(({ name: header }) => header));
    expect([...headers].sort()).toEqual(requestHeaders);
    expect(Object.keys(committed.components.securitySchemes)).toEqual(['apiKey']);
  });

  verifies('openapi:experimental', 'serves what is experimental under that segment and nowhere else', () => {
    const about = operations.filter(({ operation }) => /infer/i.test(JSON.stringify(operation.summary)));
    expect(about.map(({ name }) => name)).toEqual([
      'GET /servers/{qualifiedName}/experimental/tools/{toolName}/output-schema',
    ]);
    expect(operations.filter(({ path }) => path.includes('schema')).map(({ name }) => name)).toEqual([
      'GET /servers/{qualifiedName}/experimental/tools/{toolName}/output-schema',
    ]);
  });

  verifies('openapi:security', 'wants the bearer key everywhere but for health', () => {
    expect(committed.components.securitySchemes.apiKey).toMatchObject({ type: 'http', scheme: 'bearer' });
    const isOpen = (path: string) => ['/health', '/ready', '/metrics'].includes(path);
    expect(
      failing(({ security }, path) => JSON.stringify(security) === (isOpen(path) ? '[{}]' : '[{"apiKey":[]}]')),
    ).toEqual([]);
  });
});

describe('the answers of the service', () => {
  /** The statuses each operation really gave. */
  const seen = new Map<string, Set<number>>();
  let upstream: Upstream;
  let guarded: Upstream;
  let authorization: AuthorizationServer;

  beforeAll(async () => {
    [upstream, guarded, authorization] = await Promise.all([
      startUpstream(),
      startUpstream({ requireHeaders: { authorization: 'Bearer right' } }),
      startAuthorizationServer(),
    ]);
  });

  afterAll(() => Promise.all([upstream?.close(), guarded?.close(), authorization?.close()]));

  /** Sends a request and holds the answer against its documented schema. */
  async function ask(
    name: string,
    status: number,
    parameters: Record<string, string> = {},
    body?: unknown,
    { bearer = key, query = '', headers = {} }: { bearer?: string | null; query?: string; headers?: object } = {},
  ): Promise<Json> {
    const found = operations.find((one) => one.name === name);
    if (!found) throw new Error(`${name} is not documented.`);
    const path = found.path.replace(/\{(\w+)\}/g, (_, param: string) => encodeURIComponent(parameters[param] ?? ''));
    const response = await fetch(`${url}${path}${query}`, {
      method: found.method,
      headers: {
        ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
        ...(body === undefined || body instanceof FormData ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined || typeof body === 'string' || body instanceof FormData ? body : JSON.stringify(body),
    });
    const text = await response.text();
    expect({ name, status: response.status, text }).toMatchObject({ status });
    const documented = found.operation.responses[status];
    expect({ name, status, isDocumented: documented !== undefined }).toMatchObject({ isDocumented: true });
    seen.set(name, (seen.get(name) ?? new Set()).add(status));
    if (documented?.content === undefined) {
      expect(text).toBe('');
      return undefined;
    }
    const type = (response.headers.get('content-type') ?? '').split(';')[0];
    const schema = documented.content[type]?.schema;
    expect({ name, status, type, isDocumented: schema !== undefined }).toMatchObject({ isDocumented: true });
    if (type !== 'application/json') return text;
    const parsed: unknown = JSON.parse(text);
    expect({ name, status, departures: departures(schema as Schema, parsed) }).toMatchObject({ departures: [] });
    return parsed;
  }

  /** Asks for a release until it has this status. */
  async function released(release: Record<string, string>, wanted: string): Promise<void> {
    await until(
      async () => (await ask('GET /servers/{qualifiedName}/releases/{id}', 200, release)).status === wanted,
      `the release is ${wanted}`,
    );
  }

  /** Runtime logs, and what sends them. */
  async function askLogs(qualifiedName: string, other: { bearer: string }): Promise<void> {
    const [list, send, exported] = ['GET', 'POST', 'POST'].map(
      (method, at) => `${method} /servers/{qualifiedName}/${at < 2 ? 'logs' : 'otlp/v1/logs'}`,
    );
    const thrown = { exceptions: [{ name: 'RangeError', message: 'too far' }], logs: [{ message: 'It rains' }] };
    await ask(send, 202, { qualifiedName }, { invocations: [thrown] });
    await ask(send, 202, { qualifiedName }, [thrown]);
    await ask(send, 400, { qualifiedName }, [{ logs: [{}] }]);
    await ask(send, 404, { qualifiedName }, [], other);
    await until(async () => (await ask(list, 200, { qualifiedName })).total === 2, 'they are there');
    await ask(list, 400, { qualifiedName }, undefined, { query: '?limit=0' });
    await ask(list, 404, { qualifiedName }, undefined, other);
    await ask(exported, 200, { qualifiedName }, { resourceLogs: [] });
    await ask(exported, 400, { qualifiedName }, { resourceLogs: 7 });
    await ask(exported, 404, { qualifiedName }, {}, other);
    const stream = 'GET /servers/{qualifiedName}/logs/stream';
    await ask(stream, 400, { qualifiedName }, undefined, { query: '?outcome=fine' });
    await ask(stream, 404, { qualifiedName }, undefined, other);
    // It does not end by itself.
    const leaving = new AbortController();
    const { status, headers } = await fetch(`${url}/servers/${encodeURIComponent(qualifiedName)}/logs/stream`, {
      headers: { authorization: `Bearer ${key}` },
      signal: leaving.signal,
    });
    leaving.abort();
    expect([status, headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8']);
    seen.set(stream, (seen.get(stream) ?? new Set()).add(status));
  }

  /** What the service tells of connections besides the interface. */
  async function askInsight({
    mine,
    dead,
    other,
  }: Record<'mine' | 'dead', Record<string, string>> & { other: { bearer: string } }): Promise<void> {
    const logs = 'GET /connect/{namespace}/{connectionId}/logs';
    await ask(logs, 200, mine, undefined, { query: '?limit=5&outcome=ok' });
    await ask(logs, 400, mine, undefined, { query: '?limit=0' });
    await ask(logs, 404, mine, undefined, other);
    const diagnosis = 'GET /connect/{namespace}/{connectionId}/diagnosis';
    await ask(diagnosis, 200, mine);
    await ask(diagnosis, 200, dead);
    await ask(diagnosis, 404, mine, undefined, other);
    const events = await startScripted(({ method }) =>
      method === 'ai.smithery/events/list'
        ? '{"events":[{"name":"page.updated","inputSchema":{"type":"object"}}]}'
        : '{}',
    );
    const telling = { ...mine, connectionId: 'telling' };
    await ask('PUT /connect/{namespace}/{connectionId}', 201, telling, { mcpUrl: events.url });
    const list = 'GET /connect/{namespace}/{connectionId}/.triggers';
    await ask(list, 200, telling);
    await ask(list, 404, mine, undefined, other);
    await ask(list, 502, dead);
    const trigger = { ...telling, triggerName: 'page.updated' };
    const delivery = { url: 'https://127.0.0.1/hook', secret: `whsec_${Buffer.alloc(24, 1).toString('base64')}` };
    const path = '/connect/{namespace}/{connectionId}/.triggers/{triggerName}';
    await ask(`GET ${path}`, 200, trigger);
    await ask(`GET ${path}`, 404, { ...trigger, triggerName: 'none' });
    await ask(`POST ${path}`, 200, trigger, { delivery });
    await ask(`POST ${path}`, 400, trigger, { delivery: { ...delivery, secret: 'none' } });
    await ask(`POST ${path}`, 404, { ...trigger, triggerName: 'none' }, { delivery });
    await ask(`DELETE ${path}`, 200, trigger, { delivery: { url: delivery.url } });
    await ask(`DELETE ${path}`, 400, trigger, {});
    await events.close();
    await ask(`DELETE ${path}`, 502, trigger, { delivery: { url: delivery.url } });
  }

  async function askReleases(namespace: string, other: { bearer: string }): Promise<void> {
    const qualifiedName = `${namespace}/released`;
    await ask('PUT /servers/{qualifiedName}', 201, { qualifiedName }, {});
    const publish = 'PUT /servers/{qualifiedName}/releases';
    const external = (upstreamUrl: string) => formOf({ payload: JSON.stringify({ type: 'external', upstreamUrl }) });
    const first = {
      qualifiedName,
      id: (await ask(publish, 202, { qualifiedName }, external(upstream.url))).deploymentId,
    };
    await ask(publish, 400, { qualifiedName }, formOf({ payload: 'no JSON' }));
    await ask(publish, 404, { qualifiedName }, external(upstream.url), other);
    const stdio = JSON.stringify({ type: 'stdio', runtime: 'node' });
    await ask(publish, 413, { qualifiedName }, formOf({ payload: stdio, bundle: Buffer.alloc(26 * 2 ** 20) }));
    const stream = 'GET /servers/{qualifiedName}/releases/{id}/stream';
    expect(await ask(stream, 200, first)).toContain('event: complete');
    await ask(stream, 404, first, undefined, other);
    await released(first, 'SUCCESS');
    await ask('GET /servers/{qualifiedName}/releases/{id}', 404, { qualifiedName, id: 'none' });

    const resume = 'POST /servers/{qualifiedName}/releases/{id}/resume';
    await ask(resume, 400, first);
    await ask(resume, 404, first, undefined, other);
    const { url: behindOAuth } = await authorization.protect(upstream.url);
    await ask(publish, 202, { qualifiedName }, external(behindOAuth));
    const latest = { qualifiedName, id: 'latest' };
    await released(latest, 'AUTH_REQUIRED');
    await ask(resume, 202, latest);
    await released(latest, 'AUTH_REQUIRED');
    const promote = 'POST /servers/{qualifiedName}/releases/{id}/promote';
    await ask(promote, 200, first);
    await ask(promote, 404, first, undefined, other);
    await ask(promote, 409, latest);
    const rescan = 'POST /servers/{qualifiedName}/releases/{id}/rescan';
    await ask(rescan, 202, first, {});
    await ask(rescan, 400, first, { scanCredentials: 'none' });
    await ask(rescan, 404, first, {}, other);
    await ask(rescan, 409, latest, {});
    await ask('GET /servers/{qualifiedName}/releases', 200, { qualifiedName });
    await ask('GET /servers/{qualifiedName}/releases', 400, { qualifiedName }, undefined, { query: '?page=0' });
    await ask('GET /servers/{qualifiedName}/releases', 404, { qualifiedName }, undefined, other);
    await ask('GET /servers/{qualifiedName}', 200, { qualifiedName });
    const changes = 'GET /servers/{qualifiedName}/changes';
    await ask(changes, 200, { qualifiedName });
    await ask(changes, 400, { qualifiedName }, undefined, { query: '?page=0' });
    await ask(changes, 404, { qualifiedName: `${namespace}/none` });
    const inferred = 'GET /servers/{qualifiedName}/experimental/tools/{toolName}/output-schema';
    await ask(inferred, 404, { qualifiedName, toolName: 'echo' });
    await ask(inferred, 404, { qualifiedName, toolName: 'echo' }, undefined, other);

    const run = 'POST /run/{slug}';
    const rpc = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const slug = { slug: `${namespace}--released` };
    await ask(run, 200, slug, rpc);
    const echo = { name: 'echo', arguments: { message: 'hello' } };
    await ask(run, 200, slug, { ...rpc, method: 'tools/call', params: echo });
    const sampled = async () => {
      const answer = await fetch(
        `${url}/servers/${encodeURIComponent(qualifiedName)}/experimental/tools/echo/output-schema`,
        { headers: { authorization: `Bearer ${key}` } },
      );
      return answer.ok;
    };
    await until(sampled, 'the answer was looked at');
    await ask(inferred, 200, { qualifiedName, toolName: 'echo' });
    await ask(run, 202, slug, { jsonrpc: '2.0', method: 'notifications/initialized' });
    await ask(run, 400, slug, 'no JSON');
    await ask(run, 403, slug, rpc, { headers: { origin: 'https://evil.example' } });
    await ask(run, 404, { slug: `${namespace}--none` }, rpc);

    const download = 'GET /servers/{qualifiedName}/download';
    await ask(download, 404, { qualifiedName });
    const manifest = { manifest_version: '0.3', name: 'weather', version: '1.0.0', description: 'Forecasts.' };
    const mcpConfig = { command: 'node', args: ['${__dirname}/index.js'] };
    const server = { type: 'node', entry_point: 'index.js', mcp_config: mcpConfig };
    const contents = JSON.stringify({ ...manifest, author: { name: 'Acme' }, server });
    const bundle = await zipOf({ 'manifest.json': contents, 'index.js': '' });
    await ask(publish, 202, { qualifiedName }, formOf({ payload: stdio, bundle }));
    await released(latest, 'SUCCESS');
    await ask(download, 200, { qualifiedName });
    const etag = `"${createHash('sha256').update(bundle).digest('hex')}"`;
    await ask(download, 304, { qualifiedName }, undefined, { headers: { 'if-none-match': etag } });
    await ask('GET /servers/{qualifiedName}', 200, { qualifiedName });
    // Other parts of the process hear of a new release a moment later.
    await until(() => ask(run, 409, slug, rpc), 'a bundle is not run');
    await ask('DELETE /servers/{qualifiedName}', 200, { qualifiedName });
  }

  it('are measured by a check that can fail', () => {
    const list = { $ref: '#/components/schemas/NamespaceListDto' };
    const namespace = { name: 'acme', createdAt: '2026-11-20T10:15:00.000Z' };
    const pagination = { currentPage: 1, pageSize: 20, totalPages: 1, totalCount: 1 };
    expect(departures(list, { namespaces: [namespace], pagination })).toEqual([]);
    expect(
      departures(list, { namespaces: [{ name: 1, id: 7 }], pagination: { ...pagination, pageSize: 1.5 } }),
    ).toEqual([
      'body.namespaces[0].createdAt is missing',
      'body.namespaces[0].name is no string: 1',
      'body.namespaces[0].id is not documented',
      'body.pagination.pageSize is no integer: 1.5',
    ]);
  });

  verifies(
    'openapi:complete',
    'are as documented for every operation, successes and failures alike',
    async () => {
      const namespace = uniqueName('ns');
      const tooLarge = JSON.stringify({ displayName: 'x', description: 'x'.repeat(2 ** 20) });
      await ask('GET /health', 200, {}, undefined, { bearer: null });
      await ask('GET /ready', 200, {}, undefined, { bearer: null });
      await ask('GET /metrics', 200, {}, undefined, { bearer: METRICS_TOKEN });
      await ask('GET /metrics', 401, {}, undefined, { bearer: null });

      // Accounts and keys
      await ask('GET /accounts/me', 200);
      const name = uniqueName('account');
      const account = await ask('POST /accounts', 201, {}, { name, kind: 'organization' });
      await ask('POST /accounts', 409, {}, { name, kind: 'user' });
      await ask('POST /accounts', 400, {}, { kind: 'robot' });
      await ask('GET /accounts', 200);
      await ask('GET /accounts', 400, {}, undefined, { query: '?page=0' });
      const accountId = account.id as string;
      const made = await ask('POST /accounts/{accountId}/api-keys', 201, { accountId }, { name: 'laptop' });
      await ask('POST /accounts/{accountId}/api-keys', 400, { accountId }, {});
      await ask('POST /accounts/{accountId}/api-keys', 404, { accountId: made.id }, { name: 'laptop' });
      const other = { bearer: made.key as string };
      await ask('GET /accounts/{accountId}/api-keys', 200, { accountId: 'me' }, undefined, other);
      await ask('GET /accounts/{accountId}/api-keys', 404, { accountId: 'none' });
      await ask('GET /accounts', 403, {}, undefined, other);
      await ask('POST /accounts', 403, {}, { name: uniqueName('account'), kind: 'user' }, other);

      // Namespaces and servers
      await ask('PUT /namespaces/{name}', 201, { name: namespace });
      await ask('PUT /namespaces/{name}', 400, { name: 'A' });
      await ask('PUT /namespaces/{name}', 409, { name: namespace }, undefined, other);
      const generated = await ask('POST /namespaces', 201);
      await ask('GET /namespaces', 200);
      await ask('GET /namespaces', 400, {}, undefined, { query: '?pageSize=999' });
      await ask('DELETE /namespaces/{name}', 200, { name: generated.name });
      await ask('DELETE /namespaces/{name}', 404, { name: generated.name });
      await ask('DELETE /namespaces/{name}', 403, { name: namespace }, undefined, other);
      const qualifiedName = `${namespace}/weather`;
      await ask('PUT /servers/{qualifiedName}', 201, { qualifiedName }, { displayName: 'Weather' });
      await ask('PUT /servers/{qualifiedName}', 400, { qualifiedName }, { displayName: 7 });
      await ask('PUT /servers/{qualifiedName}', 403, { qualifiedName }, {}, other);
      await ask('PUT /servers/{qualifiedName}', 404, { qualifiedName: `${generated.name}/weather` }, {});
      await ask('PUT /servers/{qualifiedName}', 413, { qualifiedName }, tooLarge);
      await ask('GET /servers/{qualifiedName}', 200, { qualifiedName });
      await ask('GET /servers', 200, {}, undefined, { query: '?q=weather' });
      await ask('GET /servers', 400, {}, undefined, { query: '?pageSize=0' });
      await ask('PATCH /servers/{qualifiedName}', 200, { qualifiedName }, { license: 'MIT', homepage: null });
      await ask('PATCH /servers/{qualifiedName}', 400, { qualifiedName }, { homepage: 'none' });
      await ask('PATCH /servers/{qualifiedName}', 403, { qualifiedName }, {}, other);
      await ask('PATCH /servers/{qualifiedName}', 404, { qualifiedName: `${namespace}/never` }, {});
      await ask('PUT /servers/{qualifiedName}/verified', 200, { qualifiedName }, { verified: true });
      await ask('PUT /servers/{qualifiedName}/verified', 400, { qualifiedName }, {});
      await ask('PUT /servers/{qualifiedName}/verified', 403, { qualifiedName }, { verified: true }, other);
      await ask('PUT /servers/{qualifiedName}/verified', 404, { qualifiedName: namespace }, { verified: true });
      const move = 'POST /servers/{qualifiedName}/transfer';
      const target = { targetOrganizationId: 'me', targetNamespace: namespace };
      await ask('PUT /servers/{qualifiedName}', 201, { qualifiedName: `${namespace}/taken` }, {});
      await ask(move, 200, { qualifiedName }, target);
      await ask(move, 400, { qualifiedName }, {});
      await ask(move, 403, { qualifiedName }, target, other);
      await ask(move, 404, { qualifiedName }, { ...target, targetNamespace: generated.name });
      await ask(move, 409, { qualifiedName }, { ...target, targetSlug: 'taken' });
      await ask('DELETE /servers/{qualifiedName}', 200, { qualifiedName: `${namespace}/taken` });
      await askLogs(qualifiedName, other);
      const secrets = { qualifiedName, secretName: 'KEY' };
      await ask('PUT /servers/{qualifiedName}/secrets', 200, secrets, { name: 'KEY', value: 'v' });
      await ask('PUT /servers/{qualifiedName}/secrets', 400, secrets, { name: 'a b', value: 'v' });
      await ask('PUT /servers/{qualifiedName}/secrets', 404, secrets, { name: 'KEY', value: 'v' }, other);
      await ask('GET /servers/{qualifiedName}/secrets', 200, secrets);
      await ask('GET /servers/{qualifiedName}/secrets', 404, secrets, undefined, other);
      await ask('DELETE /servers/{qualifiedName}/secrets/{secretName}', 200, secrets);
      await ask('DELETE /servers/{qualifiedName}/secrets/{secretName}', 404, secrets);
      const domain = { qualifiedName, domainId: 'managed' };
      await ask('GET /servers/{qualifiedName}/domains', 200, domain);
      await ask('GET /servers/{qualifiedName}/domains', 404, domain, undefined, other);
      const rename = 'PATCH /servers/{qualifiedName}/domains/{domainId}';
      await ask(rename, 200, domain, { subdomain: uniqueName('sub') });
      await ask(rename, 400, domain, { subdomain: 'A' });
      await ask(rename, 404, { ...domain, domainId: 'own' }, { subdomain: uniqueName('sub') });
      const runtime = '/servers/{qualifiedName}/runtime';
      await ask(`GET ${runtime}`, 200, { qualifiedName });
      await ask(`GET ${runtime}`, 404, { qualifiedName }, undefined, other);
      await ask(`PATCH ${runtime}`, 200, { qualifiedName }, { egressAllow: ['*.example.com:8443'], logPayloads: true });
      await ask(`PATCH ${runtime}`, 400, { qualifiedName }, { egressAllow: ['https://example.com'] });
      await ask(`PATCH ${runtime}`, 404, { qualifiedName }, {}, other);
      const icon = 'GET /servers/{qualifiedName}/icon';
      const form = (file: Buffer) => formOf({ file });
      await ask(icon, 404, { qualifiedName });
      for (const bytes of Object.values(images)) {
        await ask('PUT /servers/{qualifiedName}/icon', 200, { qualifiedName }, form(bytes));
        await ask(icon, 200, { qualifiedName });
      }
      await ask(icon, 403, { qualifiedName }, undefined, { query: '?expires=1&signature=x' });
      await ask('PUT /servers/{qualifiedName}/icon', 400, { qualifiedName }, form(Buffer.from('none')));
      await ask('PUT /servers/{qualifiedName}/icon', 403, { qualifiedName }, form(images['image/png']), other);
      await ask('PUT /servers/{qualifiedName}/icon', 413, { qualifiedName }, form(Buffer.alloc(2 ** 21)));
      await ask('DELETE /servers/{qualifiedName}/icon', 403, { qualifiedName }, undefined, other);
      await ask('DELETE /servers/{qualifiedName}/icon', 200, { qualifiedName });
      await ask('DELETE /servers/{qualifiedName}/icon', 404, { qualifiedName });
      await ask('DELETE /namespaces/{name}', 409, { name: namespace });
      const older = 'PUT /namespaces/{namespace}/servers/{server}';
      await ask(older, 201, { namespace, server: 'older' }, {});
      await ask(older, 400, { namespace, server: 'x' }, {});
      await ask(older, 403, { namespace, server: 'older' }, {}, other);
      await ask('DELETE /servers/{qualifiedName}', 200, { qualifiedName });
      await ask('DELETE /servers/{qualifiedName}', 404, { qualifiedName });
      await ask('GET /servers/{qualifiedName}', 404, { qualifiedName });

      await askReleases(namespace, other);

      // Connections
      const one = 'PUT /connect/{namespace}/{connectionId}';
      const mine = { namespace, connectionId: 'mine' };
      const body = { mcpUrl: upstream.url, metadata: { userId: 'u-1' } };
      await ask(one, 201, mine, body);
      await ask(one, 200, mine, { name: 'Renamed' });
      await ask(one, 400, mine, { surprise: true });
      await ask(one, 409, mine, { mcpUrl: guarded.url });
      await ask(one, 404, mine, body, other);
      await ask(one, 413, mine, tooLarge);
      await ask('POST /connect/{namespace}', 201, { namespace }, body);
      await ask('POST /connect/{namespace}', 400, { namespace }, {});
      await ask('POST /connect/{namespace}', 404, { namespace: uniqueName('ns') }, body);
      const locked = { namespace, connectionId: 'locked' };
      expect((await ask(one, 201, locked, { mcpUrl: guarded.url })).status.state).toBe('auth_required');
      const dead = { namespace, connectionId: 'dead' };
      expect((await ask(one, 201, dead, { mcpUrl: 'http://127.0.0.1:1/mcp' })).status.state).toBe('error');
      await ask('GET /connect/{namespace}', 200, { namespace }, undefined, { query: '?limit=2&metadata.userId=u-1' });
      await ask('GET /connect/{namespace}', 400, { namespace }, undefined, { query: '?limit=0' });
      await ask('GET /connect/{namespace}', 404, { namespace }, undefined, other);
      await ask('GET /connect/{namespace}/{connectionId}', 200, mine);
      await ask('GET /connect/{namespace}/{connectionId}', 404, { namespace, connectionId: 'none' });

      const local = { namespace, connectionId: 'local' };
      const paired = 'GET /connect/{namespace}/{connectionId}/uplink';
      expect((await ask(one, 201, local, { transport: 'uplink' })).status.reason).toBe('uplink_waiting');
      await ask(paired, 503, local);
      const tunnel = await openTunnel({ url }, { key }, `/${namespace}/local`);
      await ask(paired, 200, local);
      await ask(paired, 404, mine);
      await tunnel.close();

      // Tools
      const list = 'GET /connect/{namespace}/{connectionId}/.tools';
      await ask(list, 200, mine);
      await ask(list, 404, { namespace, connectionId: 'none' });
      await ask(list, 409, locked);
      await ask(list, 502, dead);
      const get = 'GET /connect/{namespace}/{connectionId}/.tools/{toolPath}';
      await ask(get, 200, { ...mine, toolPath: 'echo' });
      await ask(get, 200, { ...mine, toolPath: 'repo' });
      await ask(get, 404, { ...mine, toolPath: 'none' });
      const call = 'POST /connect/{namespace}/{connectionId}/.tools/{toolPath}';
      await ask(call, 200, { ...mine, toolPath: 'echo' }, { message: 'Hello' });
      await ask(call, 200, { ...mine, toolPath: 'fail' }, {});
      await ask(call, 400, { ...mine, toolPath: 'echo' }, []);
      await ask(call, 404, { ...mine, toolPath: 'none' }, {});
      await ask(call, 409, { ...locked, toolPath: 'echo' }, {});
      await ask(call, 422, { ...mine, toolPath: 'rpc_error' }, {});
      await ask(call, 502, { ...dead, toolPath: 'echo' }, {});
      await ask(call, 504, { ...mine, toolPath: 'hold' }, {});
      await ask('GET /connect/{namespace}/.tools', 200, { namespace });
      await ask('GET /connect/{namespace}/.tools', 404, { namespace }, undefined, other);

      await askInsight({ mine, dead, other });
      const recording = '/connect/{namespace}/{connectionId}/recording';
      await ask(`PUT ${recording}`, 200, mine, { enabled: true });
      await ask(`PUT ${recording}`, 400, mine, { enabled: 'yes' });
      await ask(`GET ${recording}`, 200, mine);
      await ask(`DELETE ${recording}`, 200, mine);
      for (const method of ['GET', 'DELETE']) await ask(`${method} ${recording}`, 404, mine, undefined, other);
      await ask(`PUT ${recording}`, 404, mine, { enabled: true }, other);

      // Skills
      const host = await startRepositoryHost();
      const archive = await zipOf({ 'SKILL.md': skillMd() });
      host.serve('/acme/skills/archive/HEAD.zip', archive);
      const skill = { namespace, slug: 'review' };
      const source = { gitUrl: `${host.url}/acme/skills` };
      const put = 'PUT /skills/{namespace}/{slug}';
      await ask(put, 201, skill, source);
      await ask(put, 200, skill, source);
      await ask(put, 400, skill, {});
      await ask(put, 403, skill, source, other);
      await ask(put, 404, skill, { gitUrl: `${host.url}/acme/none` });
      await ask(put, 409, { namespace, slug: 'other' }, source);
      await ask(put, 413, skill, tooLarge);
      await ask('POST /skills', 200, {}, { ...skill, ...source });
      await ask('POST /skills', 400, {}, skill);
      await ask('POST /skills/{namespace}/{slug}/sync', 200, skill);
      await host.close();
      await ask('POST /skills/{namespace}/{slug}/sync', 502, skill);
      const zipped = (content: Buffer) => formOf({ archive: content });
      const uploaded = 'PUT /skills/{namespace}/{slug}/upload';
      await ask(uploaded, 201, { namespace, slug: 'upload' }, zipped(archive));
      await ask(uploaded, 200, skill, zipped(archive));
      await ask(uploaded, 400, skill, zipped(Buffer.from('no zip')));
      await ask(uploaded, 422, skill, zipped(await zipOf({ 'SKILL.md': 'text' })));
      await ask('GET /skills', 200, {}, undefined, { query: '?q=review' });
      await ask('GET /skills', 400, {}, undefined, { query: '?topK=1' });
      await ask('GET /skills/{namespace}/{slug}', 200, skill);
      await ask('GET /skills/{namespace}/{slug}', 404, { namespace, slug: 'none' });
      await ask('GET /skills/{namespace}/{slug}/download', 200, skill);
      await ask('GET /skills/{namespace}/{slug}/.well-known/skills/index.json', 200, skill);
      const file = 'GET /skills/{namespace}/{slug}/.well-known/skills/{path}';
      await ask(file, 200, { ...skill, path: 'SKILL.md' });
      await ask(file, 404, { ...skill, path: 'none.md' });
      await ask('DELETE /skills/{namespace}/{slug}', 403, skill, undefined, other);
      await ask('DELETE /skills/{namespace}/{slug}', 200, skill);
      await ask('DELETE /skills/{namespace}/{slug}', 404, skill);

      // MCP
      const mcp = 'POST /connect/{namespace}/{connectionId}/mcp';
      const rpc = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
      await ask(mcp, 200, mine, rpc);
      const steps = { name: 'progress', arguments: { steps: 2 }, _meta: { progressToken: 7 } };
      const stream = { headers: { accept: 'application/json, text/event-stream' } };
      const events = await ask(mcp, 200, mine, { ...rpc, method: 'tools/call', params: steps }, stream);
      expect(events).toContain('notifications/progress');
      await ask(mcp, 202, mine, { jsonrpc: '2.0', method: 'notifications/initialized' });
      await ask(mcp, 400, mine, 'no JSON');
      await ask(mcp, 403, mine, rpc, { headers: { origin: 'https://evil.example' } });
      await ask(mcp, 404, mine, rpc, other);
      const together = 'POST /connect/{namespace}/.mcp';
      await ask(together, 200, { namespace }, rpc);
      await ask(together, 202, { namespace }, { jsonrpc: '2.0', method: 'notifications/initialized' });
      await ask(together, 400, { namespace }, rpc, { query: '?mode=none' });
      await ask(together, 403, { namespace }, rpc, { headers: { origin: 'https://evil.example' } });
      await ask(together, 404, { namespace }, rpc, other);

      for (const { name: secured, path, method, operation } of operations) {
        if (!needsKey(operation)) continue;
        const parameters = Object.fromEntries(
          [...path.matchAll(/\{(\w+)\}/g)].map(([, param]) => [param ?? '', 'none']),
        );
        await ask(secured, 401, parameters, method === 'GET' || method === 'DELETE' ? undefined : {}, { bearer: null });
      }
      await ask('DELETE /connect/{namespace}/{connectionId}', 200, mine);
      await ask('DELETE /connect/{namespace}/{connectionId}', 404, mine);
      await ask('DELETE /accounts/{accountId}/api-keys/{keyId}', 200, { accountId, keyId: made.id });
      await ask('DELETE /accounts/{accountId}/api-keys/{keyId}', 404, { accountId, keyId: made.id });

      const unproven = operations.filter(({ name: one }) => ![...(seen.get(one) ?? [])].some((status) => status < 300));
      expect(unproven.map(({ name: one }) => one)).toEqual([]);
    },
    SLOW_MS,
  );
});
