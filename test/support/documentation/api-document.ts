import { readFile } from 'node:fs/promises';

export interface Schema {
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

export interface Media {
  schema?: Schema;
  example?: unknown;
  examples?: Record<string, { value: unknown }>;
}

export interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema?: Schema;
}

export interface Operation {
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

export interface OpenApi {
  openapi: string;
  info: { title: string; version: string };
  tags: { name: string; description?: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; securitySchemes: Record<string, object> };
}

/** An operation with its place; `name` is `PUT /namespaces/{name}`. */
export interface NamedOperation {
  name: string;
  method: string;
  path: string;
  operation: Operation;
}

/** Schemas of values of MCP servers, which pass unchanged and may have further members; every other object is closed. */
const open = new Set([
  'ToolDto',
  'ObjectSchemaDto',
  'ToolAnnotationsDto',
  'ServerIconDto',
  'CallToolResultDto',
  'ContentDto',
]);

export function isObject(value: unknown): value is Record<string, unknown> {
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

/** The committed `openapi.json`. */
export class ApiDocument {
  readonly operations: NamedOperation[];

  constructor(readonly content: OpenApi) {
    this.operations = Object.entries(content.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => ({
        name: `${method.toUpperCase()} ${path}`,
        method: method.toUpperCase(),
        path,
        operation,
      })),
    );
  }

  static async read(): Promise<ApiDocument> {
    return new ApiDocument(
      JSON.parse(await readFile(new URL('../../../openapi.json', import.meta.url), 'utf8')) as OpenApi,
    );
  }

  resolve(ref: string): { name: string; schema: Schema } {
    const name = /^#\/components\/schemas\/(\w+)$/.exec(ref)?.[1] ?? '';
    const schema = this.content.components.schemas[name];
    if (!schema) throw new Error(`${ref} leads nowhere.`);
    return { name, schema };
  }

  /** The places where a value departs from its schema, one line each. */
  departures(schema: Schema, value: unknown, at = 'body', isOpen = false): string[] {
    if (schema.$ref !== undefined) {
      const target = this.resolve(schema.$ref);
      return this.departures(target.schema, value, at, open.has(target.name));
    }
    if (schema.oneOf) {
      const all = schema.oneOf.map((one) => this.departures(one, value, at, isOpen));
      return all.some((one) => one.length === 0) ? [] : all.flat();
    }
    if (value === null && schema.nullable === true) return [];
    if (schema.type !== undefined && !fits[schema.type]?.(value)) {
      return [`${at} is not of type ${schema.type}: ${JSON.stringify(value)}`];
    }
    if (schema.enum && !schema.enum.includes(value)) return [`${at} is none of ${schema.enum.join(', ')}`];
    if (Array.isArray(value)) {
      return value.flatMap((item, i) => (schema.items ? this.departures(schema.items, item, `${at}[${i}]`) : []));
    }
    if (!isObject(value)) return [];
    const missing = (schema.required ?? [])
      .filter((name) => !(name in value))
      .map((name) => `${at}.${name} is missing`);
    return Object.entries(value).reduce((found, [name, member]) => {
      const known = schema.properties?.[name];
      const rest = schema.additionalProperties;
      if (known) return [...found, ...this.departures(known, member, `${at}.${name}`)];
      if (isObject(rest)) return [...found, ...this.departures(rest, member, `${at}.${name}`)];
      const isFree = isOpen || rest === true || schema.properties === undefined;
      return isFree ? found : [...found, `${at}.${name} is not documented`];
    }, missing);
  }
}

/** True if an operation needs an API key. `[{}]` means that no key is needed. */
export function needsKey({ security = [] }: Operation): boolean {
  return security.some((scheme) => 'apiKey' in scheme);
}
