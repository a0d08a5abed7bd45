import { quoted } from '../../platform/text/quoted.js';
import { referenced } from '../../platform/json-schema/references.js';
import { isObject, type JsonObject, pathStep } from '../../platform/text/json.js';
import type { Shape } from './shape.js';
import { inferObject, inferTypes } from './schema-inference.js';
import type { Observed } from './tool-shape.repository.js';

/**
 * `unstructured`: results without `structuredContent`. `type`: a value of another type. `missing`: a required member was
 * absent. `forbidden`: a member that the schema forbids. `undeclared`: a member that the schema does not mention.
 */
export const driftKinds = ['unstructured', 'type', 'missing', 'forbidden', 'undeclared'] as const;
export type DriftKind = (typeof driftKinds)[number];

/** References followed one after another: a schema may refer to itself. */
const REFERENCES_MAX = 16;

/** Schemas visited for one value: a few that refer to each other can expand to millions. */
const SCHEMAS_MAX = 1_000;

/** Keywords whose effect depends on the value. */
const CONDITIONAL = ['allOf', 'if', 'not', 'dependentSchemas', '$dynamicRef'];

/** Constraints of a declared JSON Schema on the value at one path, as far as they do not depend on the value. */
interface DeclaredPlace {
  /** Allowed types; null: any. */
  types: Set<string> | null;
  /** The schema of a member; `true` when it may be anything, null when the member is not declared. */
  member(name: string): unknown;
  /** Names of required members. */
  required: string[];
  /** True when undeclared members are forbidden. */
  isClosed: boolean;
  /** The schema of elements; null without one. */
  items: unknown;
}

/** Reads a declared schema. Keywords that are not understood constrain nothing. */
export class DeclaredSchema {
  private left = 0;

  constructor(private readonly root: unknown) {}

  /** @param schema the whole schema or a part of it @returns null when nothing is known of the value */
  read(schema: unknown = this.root): DeclaredPlace | null {
    this.left = SCHEMAS_MAX;
    const all = this.alternatives(schema, 0);
    if (!all || all.length === 0) return null;
    const objects = all.filter((one) => typesOf(one)?.has('object') ?? true);
    const lists = all.filter((one) => typesOf(one)?.has('array') ?? true);
    return {
      types: all.reduce<Set<string> | null>((sum, one) => both(sum, typesOf(one)), new Set()),
      // With several object schemas no single member is constrained.
      member: (name) => (objects.length === 1 && objects[0] ? memberOf(objects[0], name) : true),
      required: objects.length === 1 ? namesIn(objects[0]?.required) : [],
      isClosed: objects.length === 1 && objects[0] ? isClosed(objects[0]) : false,
      items: lists.length === 1 && lists[0]?.prefixItems === undefined ? (lists[0]?.items ?? null) : null,
    };
  }

  /** The schemas of which a value satisfies one; null when unknown. */
  private alternatives(schema: unknown, references: number): JsonObject[] | null {
    this.left -= 1;
    if (this.left < 0 || references > REFERENCES_MAX) return null;
    if (!isObject(schema) || CONDITIONAL.some((keyword) => schema[keyword] !== undefined)) return null;
    const { $ref: reference, anyOf, oneOf, ...rest } = schema;
    if (typeof reference === 'string') return this.alternatives(referenced(reference, this.root), references + 1);
    const choice = anyOf ?? oneOf;
    if (choice === undefined) return [schema];
    if (!Array.isArray(choice) || rest.properties !== undefined || rest.type !== undefined) return null;
    const all: JsonObject[] = [];
    for (const one of choice) {
      const some = this.alternatives(one, references + 1);
      if (!some) return null;
      all.push(...some);
    }
    return all;
  }
}

/** One deviation of results from the declared output schema. */
export interface Drift {
  /** JSONPath. */
  path: string;
  kind: DriftKind;
  message: string;
}

/** Most deviations reported of one tool. */
const DRIFTS_MAX = 50;

/** The deviations of a tool's results from its declared output schema. */
export function driftOf(declared: unknown, { samples, structured, shape }: Observed): Drift[] {
  const unstructured = samples - structured;
  const message = `${unstructured} of ${samples} answers had no structuredContent, which a tool with an output schema must send.`;
  const first: Drift[] = unstructured === 0 ? [] : [{ path: '$', kind: 'unstructured', message }];
  if (structured === 0) return first;
  // Results without structured content are texts or lists, which are no deviation.
  const seen = unstructured === 0 ? shape : { ...shape, texts: null, lists: null };
  return [...first, ...new Comparison(new DeclaredSchema(declared)).at('$', undefined, seen)].slice(0, DRIFTS_MAX);
}

class Comparison {
  constructor(private readonly declared: DeclaredSchema) {}

  /** @param schema undefined for the whole schema */
  at(path: string, schema: unknown, shape: Shape): Drift[] {
    const place = this.declared.read(schema);
    if (!place || shape.isOpaque) return [];
    const { lists, objects } = shape;
    const { fields = [] } = objects ? inferObject(objects) : {};
    const objectCount = objects?.count ?? 0;
    return [
      ...wrongTypes(path, place.types, shape),
      ...place.required.flatMap((name) => missing(path, name, objects?.isMap ? null : objects, objectCount)),
      ...fields.flatMap(([name, field]) =>
        this.member(path + pathStep(name), place.member(name), place.isClosed, field),
      ),
      ...(lists && place.items !== null ? this.at(`${path}[*]`, place.items, lists.items) : []),
    ];
  }

  private member(path: string, schema: unknown, isClosed: boolean, field: Shape): Drift[] {
    if (schema !== null) return this.at(path, schema, field);
    const message = isClosed
      ? 'It is there, and the output schema forbids it.'
      : 'It is there, and the output schema does not mention it.';
    return [{ path, kind: isClosed ? 'forbidden' : 'undeclared', message }];
  }
}

function wrongTypes(path: string, types: Set<string> | null, shape: Shape): Drift[] {
  if (!types) return [];
  const wrong = inferTypes(shape, 1).filter((type) => !types.has(type) && !(type === 'integer' && types.has('number')));
  if (wrong.length === 0) return [];
  const message = `It is declared as ${[...types].join(' or ')}, and was ${wrong.join(' or ')}.`;
  return [{ path, kind: 'type', message }];
}

function missing(path: string, name: string, objects: Shape['objects'], of: number): Drift[] {
  const seen = objects?.fields.get(name)?.count ?? 0;
  // The member may be among those whose names are not stored.
  if (!objects || seen >= of || (objects.rest && !objects.fields.has(name))) return [];
  const message = `${quoted(name)} is required, and was missing in ${of - seen} of ${of}.`;
  return [{ path: path + pathStep(name), kind: 'missing', message }];
}

/** Allowed types; null: any. */
function typesOf({ type, enum: values, const: value }: JsonObject): Set<string> | null {
  if (typeof type === 'string') return new Set([type]);
  if (Array.isArray(type)) return new Set(type.filter((one) => typeof one === 'string'));
  if (value !== undefined) return new Set([typeOf(value)]);
  if (Array.isArray(values)) return new Set(values.map(typeOf));
  return null;
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function both(one: Set<string> | null, other: Set<string> | null): Set<string> | null {
  return one && other ? new Set([...one, ...other]) : null;
}

function memberOf({ properties, additionalProperties, patternProperties }: JsonObject, name: string): unknown {
  if (!isObject(properties) || patternProperties !== undefined) return additionalProperties ?? true;
  if (Object.hasOwn(properties, name)) return properties[name];
  return additionalProperties === false ? null : (additionalProperties ?? null);
}

function isClosed({ additionalProperties, unevaluatedProperties, patternProperties }: JsonObject): boolean {
  return patternProperties === undefined && (additionalProperties === false || unevaluatedProperties === false);
}

function namesIn(required: unknown): string[] {
  return Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
}
