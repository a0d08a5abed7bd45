import { readFile } from 'node:fs/promises';
import { Ajv, type AnySchemaObject, type ValidateFunction } from 'ajv';
import formats from 'ajv-formats';

export interface Schema {
  $ref?: string;
  type?: string;
  description?: string;
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

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Words of OpenAPI that are no rules for values. */
const ANNOTATIONS = ['example', 'discriminator', 'xml', 'externalDocs'];

/** The name of the schema that a reference leads to. */
function nameOf(ref: string): string {
  return /^#\/components\/schemas\/(\w+)$/.exec(ref)?.[1] ?? '';
}

/** A part of the document in which each object that lists its members has no others, unless the document allows them. */
function closed(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(closed);
  if (!isObject(part)) return part;
  if (typeof part.$ref === 'string') return { $ref: nameOf(part.$ref) };
  const words = Object.fromEntries(
    Object.entries(part).map(([word, value]) => [word, word === 'example' ? value : closed(value)]),
  );
  if (!isObject(part.properties)) return words;
  // Their names are no words of the schema: a member may be called `properties` too.
  const members = Object.entries(part.properties).map(([name, member]) => [name, closed(member)]);
  return { additionalProperties: false, ...words, properties: Object.fromEntries(members) };
}

/** The API document that the build has written. */
export class ApiDocument {
  readonly operations: NamedOperation[];
  private readonly ajv = new Ajv({ allErrors: true, strict: true });
  private readonly checks = new Map<Schema | string, ValidateFunction>();

  constructor(readonly content: OpenApi) {
    this.operations = Object.entries(content.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => ({
        name: `${method.toUpperCase()} ${path}`,
        method: method.toUpperCase(),
        path,
        operation,
      })),
    );
    this.ajv.addVocabulary(ANNOTATIONS);
    formats.default(this.ajv);
    for (const [name, schema] of Object.entries(content.components.schemas)) {
      this.ajv.addSchema(closed(schema) as AnySchemaObject, name);
    }
  }

  static async read(): Promise<ApiDocument> {
    return new ApiDocument(
      JSON.parse(await readFile(new URL('../../../dist/openapi/openapi.json', import.meta.url), 'utf8')) as OpenApi,
    );
  }

  resolve(ref: string): { name: string; schema: Schema } {
    const name = nameOf(ref);
    const schema = this.content.components.schemas[name];
    if (!schema) throw new Error(`${ref} leads nowhere.`);
    return { name, schema };
  }

  /** The places where a value departs from its schema or has a member that is not documented, one line each. */
  departures(schema: Schema, value: unknown): string[] {
    const key = schema.$ref ?? schema;
    const check = this.checks.get(key) ?? this.ajv.compile(closed(schema) as AnySchemaObject);
    this.checks.set(key, check);
    if (check(value)) return [];
    return (check.errors ?? []).map(({ instancePath, message, params }) => {
      const member = 'additionalProperty' in params ? ` (${params.additionalProperty})` : '';
      return `body${instancePath.replaceAll('/', '.')} ${message}${member}`;
    });
  }
}

/** True if an operation needs an API key. `[{}]` means that no key is needed. */
export function needsKey({ security = [] }: Operation): boolean {
  return security.some((scheme) => 'apiKey' in scheme);
}
