import { emptyShape, mergeShapes, type ObjectShape, type Shape, type TextShape } from './shape.js';
import type { TextFormat } from './text-format.js';

/** Minimum number of values from which a format of strings, or the type integer, is inferred if all values have it. */
const UNIFORM_MIN = 5;

/** Minimum number of observations of a field or an enum value; with fewer, it might belong to one caller. */
const SEEN_MIN = 3;

const ENUM_TEXTS_MIN = 30;

/** Minimum number of names of a dictionary, each in less than a quarter of the samples. */
const MAP_NAMES_MIN = 20;
const MAP_PRESENCE_MAX = 0.25;

const DIALECT = 'https://json-schema.org/draft/2020-12/schema';

type Schema = Record<string, unknown>;

export function inferFormat({ count, formats }: TextShape): TextFormat | null {
  if (count < UNIFORM_MIN) return null;
  return [...formats].find(([, times]) => times === count)?.[0] ?? null;
}

/** Returns sorted values; null for free text, and for too few samples. */
export function inferEnum({ count, words }: TextShape): string[] | null {
  if (!words || count < ENUM_TEXTS_MIN || [...words.values()].some((times) => times < SEEN_MIN)) return null;
  return [...words.keys()].sort();
}

export interface InferredObject {
  fields: [name: string, field: Shape][];
  /**
   * The values of a dictionary. Null if there are fields: names that were folded away say nothing about other names.
   */
  rest: Shape | null;
}

export function inferObject({ count, fields, rest }: ObjectShape): InferredObject {
  const all = [...fields].sort(([name], [other]) => (name < other ? -1 : 1));
  const isDictionary = all.length >= MAP_NAMES_MIN && all.every(([, field]) => field.count / count < MAP_PRESENCE_MAX);
  if (!isDictionary) return { fields: all, rest: all.length > 0 ? null : rest };
  return { fields: [], rest: all.reduce((sum, [, field]) => mergeShapes(sum, field), rest ?? emptyShape()) };
}

/** Returns the JSON Schema types of a position; empty if unknown. */
export function inferTypes(shape: Shape): string[] {
  const { isOpaque, nulls, booleans, integers, decimals, texts, lists, objects } = shape;
  if (isOpaque) return [];
  return [
    ...(texts ? ['string'] : []),
    ...(decimals + integers > 0 ? [decimals > 0 || integers < UNIFORM_MIN ? 'number' : 'integer'] : []),
    ...(booleans > 0 ? ['boolean'] : []),
    ...(lists ? ['array'] : []),
    ...(objects ? ['object'] : []),
    ...(nulls > 0 ? ['null'] : []),
  ];
}

/**
 * Keeps only members observed at least 3 times, since other callers can see them. Null unless the results are objects,
 * as an output schema of MCP requires, and at least 3 were sampled.
 */
export function publishableShape(shape: Shape): Shape | null {
  const isObjects = inferTypes(shape).join() === 'object' && shape.count >= SEEN_MIN;
  return isObjects ? withoutRare(shape) : null;
}

function withoutRare(shape: Shape): Shape {
  const { lists, objects } = shape;
  return {
    ...shape,
    lists: lists && { ...lists, items: withoutRare(lists.items) },
    objects: objects && {
      ...objects,
      fields: new Map(
        [...objects.fields]
          .filter(([, field]) => field.count >= SEEN_MIN)
          .map(([name, field]) => [name, withoutRare(field)]),
      ),
      rest: objects.rest && withoutRare(objects.rest),
    },
  };
}

/** Returns a schema (JSON Schema 2020-12) that accepts every sampled value and requires no member. */
export function toJsonSchema(shape: Shape): Schema {
  return { $schema: DIALECT, ...schemaOf(shape) };
}

/** Returns the schema of a shape. Every keyword except `enum` applies to one type only, so a union lists its types. */
function schemaOf(shape: Shape): Schema {
  const types = inferTypes(shape);
  if (types.length === 0) return {};
  const { texts, lists, objects } = shape;
  const words = texts && types.every((type) => type === 'string' || type === 'null') ? inferEnum(texts) : null;
  const format = texts && !words ? inferFormat(texts) : null;
  const object = objects && inferObject(objects);
  return {
    type: types.length === 1 ? types[0] : types,
    ...(words && { enum: shape.nulls > 0 ? [...words, null] : words }),
    ...(format && { format }),
    ...(lists && { items: schemaOf(lists.items) }),
    ...(object &&
      object.fields.length > 0 && {
        properties: Object.fromEntries(object.fields.map(([name, field]) => [name, schemaOf(field)])),
      }),
    ...(object?.rest && { additionalProperties: schemaOf(object.rest) }),
  };
}
