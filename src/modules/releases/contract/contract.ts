/**
 * The contract of a release: everything that its callers depend on, in canonical form: tools with schemas and
 * annotations, resources, templates and prompts, including the strings that models read; not icons and `_meta`.
 *
 * Schemas that spell the same constraints differently are equal: annotations and defaults of the dialect are removed,
 * sets are sorted, `const` becomes `enum`, and `anyOf` with null a list of types. Equal contracts have the same hash
 * (SHA-256 of the canonical JSON).
 *
 * The functions are recursive: the security check has limited the depth of schemas.
 */
import { createHash } from 'node:crypto';
import { canonicalJson, isObject, type JsonObject } from '../../../platform/text/json.js';
import type { ServerSnapshot } from '../../servers/server.types.js';
import { SCHEMA_MAPS } from '../../../platform/json-schema/references.js';

/** Keywords that neither constrain values nor reach models. */
const NOISE = new Set(['$schema', '$id', '$comment', '$anchor', 'examples', 'example']);

const ONE = new Set([
  'items',
  'additionalProperties',
  'unevaluatedProperties',
  'unevaluatedItems',
  'contains',
  'propertyNames',
  'not',
  'if',
  'then',
  'else',
]);

const LIST = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems']);

export type Items = Map<string, JsonObject>;

/** Null for an unknown list. */
export interface Contract {
  tools: Items | null;
  resources: Items | null;
  resourceTemplates: Items | null;
  prompts: Items | null;
}

export function contractOf({ tools, resources, resourceTemplates, prompts }: ServerSnapshot): Contract {
  return {
    tools: itemsOf(tools, 'name', ['title', 'description', 'inputSchema', 'outputSchema', 'annotations']),
    resources: itemsOf(resources, 'uri', ['name', 'title', 'description', 'mimeType']),
    resourceTemplates: itemsOf(resourceTemplates, 'uriTemplate', ['name', 'title', 'description', 'mimeType']),
    prompts: itemsOf(prompts, 'name', ['title', 'description', 'arguments']),
  };
}

/** Returns the SHA-256 in hex; equal for equal contracts. */
export function hashOf(contract: Contract): string {
  const lists = Object.entries(contract).map(([list, items]: [string, Items | null]) => [list, items && [...items]]);
  return createHash('sha256').update(canonicalJson(lists)).digest('hex');
}

function itemsOf(items: JsonObject[] | null, key: string, members: string[]): Items | null {
  if (!items) return null;
  const entries = items.flatMap((item): [string, JsonObject][] => {
    const name = item[key];
    if (typeof name !== 'string') return [];
    const present = members.filter((member) => item[member] !== undefined && item[member] !== null);
    return [[name, Object.fromEntries(present.map((member) => [member, canonicalMember(member, item[member])]))]];
  });
  return new Map(entries.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
}

function canonicalMember(member: string, value: unknown): unknown {
  if (member === 'inputSchema' || member === 'outputSchema') return canonicalSchema(value);
  if (member !== 'arguments' || !Array.isArray(value)) return value;
  return Object.fromEntries(
    value
      .filter(isObject)
      .map(({ name, description = '', required = false }) => [String(name), { description, required }]),
  );
}

/** Returns the canonical form of a schema. Recursive: the caller limits the depth. */
export function canonicalSchema(schema: unknown): unknown {
  if (!isObject(schema)) return schema;
  const entries = Object.entries(schema)
    .filter(([keyword]) => !NOISE.has(keyword))
    .map(([keyword, value]): [string, unknown] => [keyword, canonicalValue(keyword, value)])
    .filter(([keyword, value]) => !isImplied(keyword, value));
  const { const: only, ...rest } = Object.fromEntries<unknown>(entries);
  if (only === undefined) return nullable(rest);
  // `const: x` becomes `enum: [x]`.
  return nullable(rest.enum === undefined ? { ...rest, enum: [only] } : { ...rest, const: only });
}

function canonicalValue(keyword: string, value: unknown): unknown {
  if (ONE.has(keyword)) return canonicalSchema(value);
  if (LIST.has(keyword) && Array.isArray(value)) return value.map(canonicalSchema);
  if (SCHEMA_MAPS.has(keyword) && isObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, subschema]) => [name, canonicalSchema(subschema)]));
  }
  if ((keyword === 'type' || keyword === 'required' || keyword === 'enum') && Array.isArray(value)) {
    const sorted = sortedSet(value);
    return keyword === 'type' && sorted.length === 1 ? sorted[0] : sorted;
  }
  return value;
}

function sortedSet(values: unknown[]): unknown[] {
  const byText = new Map(values.map((value) => [canonicalJson(value), value]));
  return [...byText.keys()].sort().map((text) => byText.get(text));
}

function isImplied(keyword: string, value: unknown): boolean {
  if (keyword === 'additionalProperties' || keyword === 'items') {
    return value === true || (isObject(value) && Object.keys(value).length === 0);
  }
  if (keyword === 'required') return Array.isArray(value) && value.length === 0;
  return keyword === 'properties' && isObject(value) && Object.keys(value).length === 0;
}

/** Converts `anyOf: [{type: string}, {type: null}]` to `type: [null, string]`. */
function nullable(schema: JsonObject): JsonObject {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf) || anyOf.length !== 2 || rest.type !== undefined) return schema;
  const value: unknown = anyOf.find((branch) => !isNull(branch));
  if (!anyOf.some(isNull) || !isObject(value) || value.type === undefined || value.enum !== undefined) return schema;
  if (Object.keys(value).some((keyword) => rest[keyword] !== undefined)) return schema;
  return { ...rest, ...value, type: sortedSet([value.type, 'null'].flat()) };
}

function isNull(schema: unknown): boolean {
  return isObject(schema) && schema.type === 'null' && Object.keys(schema).length === 1;
}
