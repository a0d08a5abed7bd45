import { isObject } from '../../platform/text/json.js';

type Item = Record<string, unknown>;

/** References followed from one place: a schema may refer to itself. */
const REFERENCES_MAX = 16;

/** Schemas looked at for one place: a few that refer to each other can stand for millions. */
const SCHEMAS_MAX = 1_000;

/** Keywords whose meaning for one value cannot be told without the value. */
const CONDITIONAL = ['allOf', 'if', 'not', 'dependentSchemas', '$dynamicRef'];

/** What a declared JSON Schema says of one place, as far as that can be told without a value. */
export interface DeclaredPlace {
  /** Null: any. */
  types: Set<string> | null;
  /** What it says of a member; `true` when that may be anything, null when the member is not mentioned. */
  member(name: string): unknown;
  /** Names that every object has. */
  required: string[];
  /** Members without a schema of their own are forbidden. */
  isClosed: boolean;
  /** What it says of elements; null: nothing. */
  items: unknown;
}

/** Reads one declared schema; null where it says nothing, or says it in a way that is not understood. */
export class DeclaredSchema {
  private left = 0;

  constructor(private readonly root: unknown) {}

  /** @param schema the whole schema, or a part of it */
  read(schema: unknown = this.root): DeclaredPlace | null {
    this.left = SCHEMAS_MAX;
    const all = this.alternatives(schema, 0);
    if (!all || all.length === 0) return null;
    const objects = all.filter((one) => typesOf(one)?.has('object') ?? true);
    const lists = all.filter((one) => typesOf(one)?.has('array') ?? true);
    return {
      types: all.reduce<Set<string> | null>((sum, one) => both(sum, typesOf(one)), new Set()),
      // With several kinds of objects nothing can be said of one member.
      member: (name) => (objects.length === 1 && objects[0] ? memberOf(objects[0], name) : true),
      required: objects.length === 1 ? namesIn(objects[0]?.required) : [],
      isClosed: objects.length === 1 && objects[0] ? isClosed(objects[0]) : false,
      items: lists.length === 1 && lists[0]?.prefixItems === undefined ? (lists[0]?.items ?? null) : null,
    };
  }

  /** The schemas of which a value satisfies one; null when it cannot be told. */
  private alternatives(schema: unknown, references: number): Item[] | null {
    this.left -= 1;
    if (this.left < 0 || references > REFERENCES_MAX) return null;
    if (!isObject(schema) || CONDITIONAL.some((keyword) => schema[keyword] !== undefined)) return null;
    const { $ref: reference, anyOf, oneOf, ...rest } = schema;
    if (typeof reference === 'string') return this.alternatives(this.target(reference), references + 1);
    const choice = anyOf ?? oneOf;
    if (choice === undefined) return [schema];
    if (!Array.isArray(choice) || rest.properties !== undefined || rest.type !== undefined) return null;
    const all: Item[] = [];
    for (const one of choice) {
      const some = this.alternatives(one, references + 1);
      if (!some) return null;
      all.push(...some);
    }
    return all;
  }

  /** What `#/$defs/name` refers to. */
  private target(reference: string): unknown {
    if (!reference.startsWith('#')) return null;
    const steps = reference.split('/').slice(1);
    return steps.reduce<unknown>((place, text) => {
      const name = decoded(text).replaceAll('~1', '/').replaceAll('~0', '~');
      return isObject(place) && Object.hasOwn(place, name) ? place[name] : null;
    }, this.root);
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Null: any. */
function typesOf({ type, enum: values, const: value }: Item): Set<string> | null {
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

function memberOf({ properties, additionalProperties, patternProperties }: Item, name: string): unknown {
  if (!isObject(properties) || patternProperties !== undefined) return additionalProperties ?? true;
  if (Object.hasOwn(properties, name)) return properties[name];
  return additionalProperties === false ? null : (additionalProperties ?? null);
}

function isClosed({ additionalProperties, unevaluatedProperties, patternProperties }: Item): boolean {
  return patternProperties === undefined && (additionalProperties === false || unevaluatedProperties === false);
}

function namesIn(required: unknown): string[] {
  return Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
}
