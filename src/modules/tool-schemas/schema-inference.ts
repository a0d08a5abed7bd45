import { emptyShape, merged, type ObjectShape, type Shape, type TextShape } from './shape.js';
import type { TextFormat } from './text-format.js';

/** A format is told when all texts of a place have it, and there were so many. */
const FORMAT_TEXTS_MIN = 5;

/** A closed list is told when there were so many texts for each of its words. */
const ENUM_TEXTS_MIN = 30;
const WORD_COUNT_MIN = 3;

/** An object with so many names, of which each is in less than a quarter of the samples, is a dictionary. */
const MAP_NAMES_MIN = 20;
const MAP_PRESENCE_MAX = 0.25;

/** The format of the texts of a place; null when there is none to rely on. */
export function inferFormat({ count, formats }: TextShape): TextFormat | null {
  if (count < FORMAT_TEXTS_MIN) return null;
  return [...formats].find(([, seen]) => seen === count)?.[0] ?? null;
}

/** The only words of a place, in order; null when it has others, or was seen too rarely to say so. */
export function inferEnum({ count, words }: TextShape): string[] | null {
  if (!words || count < ENUM_TEXTS_MIN || [...words.values()].some((seen) => seen < WORD_COUNT_MIN)) return null;
  return [...words.keys()].sort();
}

/** What is told of objects: members by name, in order, and what stands under any other name. */
export interface InferredObject {
  fields: [name: string, field: Shape][];
  /** Null: nothing is known of other names. */
  rest: Shape | null;
}

/** What is told of the objects of a place. */
export function inferObject({ count, fields, rest }: ObjectShape): InferredObject {
  const all = [...fields].sort(([one], [other]) => (one < other ? -1 : 1));
  const isDictionary = all.length >= MAP_NAMES_MIN && all.every(([, field]) => field.count / count < MAP_PRESENCE_MAX);
  if (!isDictionary) return { fields: all, rest };
  return { fields: [], rest: all.reduce((sum, [, field]) => merged(sum, field), rest ?? emptyShape()) };
}

/** JSON Schema's names of the kinds of values of a place; empty when nothing is known of them. */
export function inferTypes({ isOpaque, nulls, booleans, integers, decimals, texts, lists, objects }: Shape): string[] {
  if (isOpaque) return [];
  return [
    ...(texts ? ['string'] : []),
    ...(decimals > 0 ? ['number'] : integers > 0 ? ['integer'] : []),
    ...(booleans > 0 ? ['boolean'] : []),
    ...(lists ? ['array'] : []),
    ...(objects ? ['object'] : []),
    ...(nulls > 0 ? ['null'] : []),
  ];
}
