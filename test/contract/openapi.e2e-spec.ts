import { ModulesContainer } from '@nestjs/core';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { createApp } from '../../src/app.setup.js';
import { loadEnv } from '../../src/config/env.js';
import { VERSION } from '../../src/config/version.js';
import { generateApiKey } from '../../src/modules/auth/api-key.js';
import { routeTable } from '../../src/platform/http/route-table.js';
import {
  ApiDocument,
  isObject,
  needsKey,
  type Media,
  type NamedOperation,
  type OpenApi,
  type Operation,
} from '../support/documentation/api-document.js';
import { ApiWalk, loadWalks, METRICS_TOKEN } from '../support/documentation/api-walk.js';
import { cleanUpPrograms, runProgram, readySettings } from '../support/program.js';
import { verifies } from '../support/verifies.js';

/** Real processes take their time on a busy machine. */
const SLOW_MS = 300_000;

/** Headers a request may carry; what they are is said by RFC 9110 and the HTML standard. */
const requestHeaders = ['If-None-Match', 'Last-Event-ID'];

/** The checked operations of each module, and its routes that the document leaves out. */
const walks = await loadWalks();
const undocumented = walks.flatMap(([, file]) => file.undocumented ?? []);

let url: string;
let databaseUrl: string;
const key = generateApiKey();
let document: ApiDocument;
let committed: OpenApi;
let operations: NamedOperation[];

beforeAll(async () => {
  const settings = await readySettings(key);
  databaseUrl = String(settings.DATABASE_URL);
  const service = runProgram(
    'main.js',
    { ...settings, MCP_CALL_TIMEOUT_MS: '5000', LOG_LEVEL: 'fatal', METRICS_TOKEN },
    { tuning: { upstreamCallTimeoutMs: 5_000 } },
  );
  url = await service.url();
  document = await ApiDocument.read();
  committed = document.content;
  operations = document.operations;
}, SLOW_MS);

afterAll(cleanUpPrograms, SLOW_MS);

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

/** The operations that fail a check, so that a failure names all of them at once. */
function failing(check: (operation: Operation, path: string, method: string) => boolean): string[] {
  return operations.filter(({ operation, path, method }) => !check(operation, path, method)).map(({ name }) => name);
}

describe('the API document', () => {
  verifies('openapi:complete', 'is OpenAPI 3.0 by its structure', () => {
    expect(committed.openapi).toMatch(/^3\.0\.\d$/);
    expect(committed.info).toMatchObject({ title: 'Slipway', version: VERSION });
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    const declared = committed.tags.map(({ name }) => name);
    expect(failing(({ tags }) => tags?.length === 1 && declared.includes(tags[0] ?? ''))).toEqual([]);
    expect(
      failing(({ parameters = [] }, path) => {
        const pathNames = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
        const pathParameters = parameters.filter((parameter) => parameter.in === 'path');
        return (
          JSON.stringify(pathParameters.map(({ name }) => name)) === JSON.stringify(pathNames) &&
          pathParameters.every((parameter) => parameter.required === true && parameter.schema?.type === 'string')
        );
      }),
    ).toEqual([]);
    expect(
      failing(({ responses }) =>
        Object.entries(responses).every(([status, { description }]) => /^[2-5]\d\d$/.test(status) && !!description),
      ),
    ).toEqual([]);

    const odd = [...schemasIn({ paths: committed.paths, components: committed.components })].flatMap((part) => {
      if (typeof part.$ref === 'string') return document.resolve(part.$ref).schema ? [] : [part.$ref];
      // Keywords of OpenAPI 3.1 and JSON Schema that 3.0 does not have.
      const newer = ['const', '$defs', 'patternProperties', 'prefixItems'].filter((word) => word in part);
      // A member of an answer may have this name: its value is a schema.
      if (typeof part.$schema === 'string') newer.push('$schema');
      return Array.isArray(part.type) || part.type === 'null' ? [...newer, JSON.stringify(part.type)] : newer;
    });
    expect(odd).toEqual([]);
  });

  verifies('openapi:complete', 'names every route of the service and no other', async () => {
    const env = loadEnv({
      DATABASE_URL: 'postgres://localhost/none',
      ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
    });
    const routes = routeTable((await createApp(env, { preview: true })).get(ModulesContainer)).map(
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
    expect(
      failing(({ parameters = [] }) => parameters.every((parameter) => (parameter.description ?? '') !== '')),
    ).toEqual([]);
  });

  verifies('openapi:complete', 'gives an enum to every member whose description begins with its values', () => {
    const { schemas } = committed.components;
    const values = /^`\w+`(: |,? or |, )[^]*`\w+`/;
    const open = Object.entries(schemas).flatMap(([name, { properties = {} }]) =>
      Object.entries(properties)
        .filter(
          ([, { type, description = '', enum: listed }]) => type === 'string' && !listed && values.test(description),
        )
        .map(([member]) => `${name}.${member}`),
    );
    // Servers that run elsewhere send their own levels.
    expect(open).toEqual(['InvocationLineDto.level']);
  });

  verifies('openapi:complete', 'has valid examples for every operation, and none for optional filters', () => {
    const wrong: string[] = [];
    let examples = 0;
    const check = (name: string, { schema = {}, example, examples: several = {} }: Media) => {
      const documentedExamples = [example, schema.example, ...Object.values(several).map(({ value }) => value)];
      for (const value of documentedExamples.filter((documented) => documented !== undefined)) {
        examples += 1;
        wrong.push(...document.departures(schema, value).map((line) => `${name}: ${line}`));
      }
    };
    for (const { name, operation } of operations) {
      const { parameters = [], requestBody, responses } = operation;
      const bodies = [requestBody ?? {}, ...Object.values(responses)].flatMap(({ content = {} }) =>
        Object.values(content),
      );
      bodies.forEach((media) => check(name, media));
      for (const { in: where, name: parameter, required = false, schema = {} } of parameters) {
        const isFilled = schema.example !== undefined;
        if (where === 'path' && !isFilled) wrong.push(`${name}: {${parameter}} has no example`);
        if (where === 'query' && isFilled && !required && parameter !== 'metadata') {
          wrong.push(`${name}: ${parameter} is filled in`);
        }
      }
      // A success without an example of its own is shown with those of its schema's properties.
      const shown = bodies.some(({ schema, example }) => {
        const properties = schema?.$ref === undefined ? {} : (document.resolve(schema.$ref).schema.properties ?? {});
        return (
          example !== undefined ||
          schema?.example !== undefined ||
          Object.values(properties).some((property) => 'example' in property)
        );
      });
      if (!shown) wrong.push(`${name} has no example`);
    }
    expect(wrong).toEqual([]);
    expect(examples).toBeGreaterThan(operations.length);
  });

  verifies('openapi:valid', 'is OpenAPI 3.0 for a validator that is not ours', async () => {
    const validator = new Validator();
    for (const path of ['/openapi.json', '/openapi.yaml']) {
      const result = await validator.validate(parse(await (await fetch(url + path)).text()) as Record<string, unknown>);
      expect([path, validator.version, result.errors]).toEqual([path, '3.0', undefined]);
    }
    const emptyRequired = structuredClone(committed) as unknown as { components: { schemas: Record<string, object> } };
    Object.assign(emptyRequired.components.schemas.RegistryError ?? {}, { required: [] });
    expect((await validator.validate(emptyRequired)).valid).toBe(false);
  });

  verifies('openapi:complete', 'has the statuses of every operation, each failure with the body of its prefix', () => {
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
    const methods = ['POST', 'PUT', 'PATCH'];
    const takers = operations.filter(({ method }) => methods.includes(method.toUpperCase()));
    expect(takers.filter(({ operation }) => !('415' in operation.responses)).map(({ name }) => name)).toEqual([]);
    expect(needs('404', (_, path) => path.includes('{') && path !== '/namespaces/{name}')).toEqual([]);
  });

  verifies(
    'openapi:deprecated',
    'marks the older ways to create servers and skills deprecated, and nothing else',
    () => {
      const deprecated = operations.filter(({ operation }) => operation.deprecated === true).map(({ name }) => name);
      expect(deprecated).toEqual([
        'POST /skills',
        'PUT /namespaces/{namespace}/servers/{server}',
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
    expect(parameters.filter((parameter) => /version/i.test(parameter.name))).toEqual([]);
    const headers = new Set(
      parameters.filter((parameter) => parameter.in === 'header').map(({ name: header }) => header),
    );
    expect([...headers].sort()).toEqual(requestHeaders);
    expect(Object.keys(committed.components.securitySchemes)).toEqual(['apiKey']);
  });

  verifies('openapi:experimental', 'has experimental operations only under that segment', () => {
    const about = operations.filter(({ operation }) => /infer/i.test(JSON.stringify(operation.summary)));
    expect(about.map(({ name }) => name)).toEqual([
      'GET /servers/{qualifiedName}/experimental/tools/{toolName}/output-schema',
    ]);
    expect(operations.filter(({ path }) => path.includes('schema')).map(({ name }) => name)).toEqual([
      'GET /servers/{qualifiedName}/experimental/tools/{toolName}/output-schema',
    ]);
  });

  verifies('openapi:security', 'requires the bearer key on every operation except health', () => {
    expect(committed.components.securitySchemes.apiKey).toEqual({
      type: 'http',
      scheme: 'bearer',
      description: 'An API key: `slipway_…`',
    });
    const isOpen = (path: string) => ['/health', '/ready', '/metrics'].includes(path);
    expect(
      failing(({ security }, path) => JSON.stringify(security) === (isOpen(path) ? '[{}]' : '[{"apiKey":[]}]')),
    ).toEqual([]);
  });
});

describe('the responses of the service', () => {
  let walk: ApiWalk;
  beforeAll(() => {
    walk = new ApiWalk(url, key, document);
  });
  afterAll(() => walk.close());

  it('are measured by a check that can fail', () => {
    const list = { $ref: '#/components/schemas/NamespaceListDto' };
    const namespace = { name: 'acme', createdAt: '2026-11-20T10:15:00.000Z' };
    const pagination = { currentPage: 1, pageSize: 20, totalPages: 1, totalCount: 1 };
    const tool = { name: 'x', inputSchema: { type: 'object', properties: {}, additionalProperties: false } };
    expect(document.departures({ $ref: '#/components/schemas/ToolDto' }, tool)).toEqual([]);
    const detail = { $ref: '#/components/schemas/NamespaceDto' };
    expect(document.departures(detail, { name: 1 })).toEqual([
      "body must have required property 'createdAt'",
      'body.name must be string',
    ]);
    expect(document.departures(list, { namespaces: [namespace], pagination })).toEqual([]);
    expect(
      document.departures(list, { namespaces: [namespace], pagination: { ...pagination, pageSize: 1.5, id: 7 } }),
    ).toEqual(['body.pagination must NOT have additional properties (id)', 'body.pagination.pageSize must be integer']);
  });

  for (const [module, file] of walks) {
    verifies(
      ['openapi:complete', 'openapi:bodies'],
      `are as documented in ${module}`,
      () => file.default(walk),
      SLOW_MS,
    );
  }

  // The start creates the operator and its key, and the pipeline of releases changes servers.
  it('are recorded with their actor where they change something', async () => {
    const client = new Client({ connectionString: databaseUrl });
    await client.connect();
    const { rows } = await client.query<{ action: string; by: boolean }>(
      'SELECT DISTINCT action, actor_id IS NOT NULL AS by FROM changes WHERE NOT is_fact ORDER BY action',
    );
    await client.end();
    const actions = (by: boolean) => rows.filter((row) => row.by === by).map(({ action }) => action);
    expect(actions(false)).toEqual(['account.created', 'key.created', 'server.changed']);
    expect(actions(true).length).toBeGreaterThan(25);
  });

  verifies('openapi:complete', 'without a key are as documented', async () => {
    for (const { name, path, method, operation } of document.operations) {
      if (!needsKey(operation)) continue;
      const parameters = Object.fromEntries([...path.matchAll(/\{(\w+)\}/g)].map(([, param]) => [param ?? '', 'none']));
      await walk.ask(name, 401, parameters, method === 'GET' || method === 'DELETE' ? undefined : {}, { bearer: null });
    }
  });

  verifies('error:hint', 'say what to do where the namespace of the examples is not claimed', async () => {
    const { bearer } = await walk.other();
    const silent: string[] = [];
    for (const { name, path, method, operation } of document.operations) {
      if (!/\{(namespace|qualifiedName)\}|^\/namespaces\/\{name\}./.test(path)) continue;
      const exampleOf = (name: string) =>
        operation.parameters?.find((parameter) => parameter.name === name)?.schema?.example;
      const response = await fetch(
        url + path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(exampleOf(name)))),
        {
          method,
          headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
          body: ['GET', 'DELETE'].includes(method) ? undefined : '{"text":"Please."}',
        },
      );
      const advice = `${response.headers.get('slipway-hint')} ${await response.text()}`;
      if (!/PUT \/namespaces|GET \/servers|only the operator/.test(advice)) silent.push(name);
    }
    // Everybody can read skills: nothing is to be claimed.
    expect(silent.filter((name) => !name.startsWith('GET /skills/'))).toEqual([]);
  });

  verifies('openapi:complete', 'cover every operation', () => {
    expect(walk.unproven().map(({ name }) => name)).toEqual([]);
  });
});
