import { emptyShape, type Shape } from './shape.js';
import type { TextFormat } from './text-format.js';

/** Stored form of a shape: short names, no zeros, and members as pairs, since a name may be `__proto__`. */
interface StoredShape {
  n: number;
  any?: true;
  null?: number;
  bool?: number;
  int?: number;
  dec?: number;
  text?: { n: number; formats?: [TextFormat, number][]; words?: [string, number][] };
  list?: { n: number; items: StoredShape };
  object?: { n: number; fields: [string, StoredShape][]; rest?: StoredShape; map?: true };
}

/** A shape as JSON text. */
export function toShapeText(shape: Shape): string {
  return JSON.stringify(toStored(shape));
}

/** The inverse of {@link toShapeText}. */
export function parseShape(text: string): Shape {
  return fromStored(JSON.parse(text) as StoredShape);
}

function toStored({ count, isOpaque, nulls, booleans, integers, decimals, texts, lists, objects }: Shape): StoredShape {
  return {
    n: count,
    ...(isOpaque && { any: true }),
    ...(nulls > 0 && { null: nulls }),
    ...(booleans > 0 && { bool: booleans }),
    ...(integers > 0 && { int: integers }),
    ...(decimals > 0 && { dec: decimals }),
    ...(texts && {
      text: {
        n: texts.count,
        ...(texts.formats.size > 0 && { formats: [...texts.formats] }),
        ...(texts.words && { words: [...texts.words] }),
      },
    }),
    ...(lists && { list: { n: lists.count, items: toStored(lists.items) } }),
    ...(objects && {
      object: {
        n: objects.count,
        fields: [...objects.fields].map(([name, field]): [string, StoredShape] => [name, toStored(field)]),
        ...(objects.rest && { rest: toStored(objects.rest) }),
        ...(objects.isMap && { map: true }),
      },
    }),
  };
}

function fromStored({ n, any, null: nulls = 0, bool = 0, int = 0, dec = 0, text, list, object }: StoredShape): Shape {
  return {
    ...emptyShape(),
    count: n,
    isOpaque: any === true,
    nulls,
    booleans: bool,
    integers: int,
    decimals: dec,
    texts: text
      ? { count: text.n, formats: new Map(text.formats), words: text.words ? new Map(text.words) : null }
      : null,
    lists: list ? { count: list.n, items: fromStored(list.items) } : null,
    objects: object
      ? {
          count: object.n,
          fields: new Map(object.fields.map(([name, field]) => [name, fromStored(field)])),
          rest: object.rest ? fromStored(object.rest) : null,
          isMap: object.map === true,
        }
      : null,
  };
}
