import { referenced } from '../../platform/json-schema/references.js';
import { isObject, type JsonObject } from '../../platform/text/json.js';

/** References followed one after another: a schema may refer to itself. */
const REFERENCES_MAX = 16;

/** Schemas visited for one value: a few that refer to each other can expand to millions. */
const SCHEMAS_MAX = 1_000;

/** Keywords whose effect depends on the value. */
const CONDITIONAL = ['allOf', 'if', 'not', 'dependentSchemas', '$dynamicRef'];

/** Constraints of a declared JSON Schema on the value at one path, as far as they do not depend on the value. */
export interface DeclaredPlace {
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
