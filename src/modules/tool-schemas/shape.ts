import { formatOf, type TextFormat } from './text-format.js';

// Results belong to their callers, so only words that a program's author chose are stored: member names, and enum
// values such as a status.

const NAME_CHARS_MAX = 64;

/**
 * Names that are data: a path, an address, a date, four digits, invisible characters, a token, or a known prefix of
 * one.
 */
const DATA_NAME =
  /.@.|[/\\]|^-?\d+(?:\.\d+)?$|^\d{4}-\d\d|(?:\d\D*){4}|^[0-9a-f]{12,}$|[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]|^(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[\w+=-]{20,}$|^(?:[prs]k_(?:live|test)|gh[oprsu]|github_pat|glpat|xox[abeprs])[_-]/u;

/** The first part of a media type such as `application/json`, which authors choose although it looks like a path. */
const MEDIA_TYPE = /^(?:application|audio|font|image|message|model|multipart|text|video)\/(?=[a-z][a-z\d.+-]*$)/;

/** Last words of member names whose values are usually an enum. */
const CLOSED_LISTS = new Set(
  (
    'action availability category channel class condition currency decision direction encoding environment event ' +
    'format frequency importance interval kind lang language level locale method mode network operation outcome period ' +
    'permission phase platform policy priority privacy protocol provider quality reason region relation result role ' +
    'scope severity side size sort source stage state status step style tier trend type unit visibility'
  ).split(' '),
);

/** `open`, `in_progress`, `IN-PROGRESS`, `needsReview`, `usd`: not prose, a number or a secret. */
const WORD = /^(?=.{1,24}$)[A-Za-z]+(?:[_-][A-Za-z]+){0,3}$/;

/**
 * Statistics of the values at one position of a tool's results: never the values. Shapes can be added in any order, to
 * merge those of processes and weeks.
 */
export interface Shape {
  count: number;
  /** True for values too deep, too large, or not JSON: only their count is known. */
  isOpaque: boolean;
  nulls: number;
  booleans: number;
  integers: number;
  decimals: number;
  texts: TextShape | null;
  lists: ListShape | null;
  objects: ObjectShape | null;
}

export interface TextShape {
  count: number;
  formats: Map<TextFormat, number>;
  /** Count of each enum value; null for free text. */
  words: Map<string, number> | null;
}

export interface ListShape {
  count: number;
  items: Shape;
}

export interface ObjectShape {
  count: number;
  fields: Map<string, Shape>;
  /** Values under names that are data, as in a dictionary. */
  rest: Shape | null;
  /** True if there were too many names: all values are in `rest`. */
  isMap: boolean;
}

/** Depth below which lists and objects are opaque. */
export const DEPTH_MAX = 12;

/** Maximum number of fields; an object with more names is a dictionary. Large objects of public APIs have about 100. */
export const FIELDS_MAX = 128;

/** Maximum number of positions, each about 150 bytes of JSON, which Postgres compresses; most shapes have 5 to 50. */
export const NODES_MAX = 600;

export const WORDS_MAX = 8;

export function emptyShape(): Shape {
  return {
    count: 0,
    isOpaque: false,
    nulls: 0,
    booleans: 0,
    integers: 0,
    decimals: 0,
    texts: null,
    lists: null,
    objects: null,
  };
}

export function shapeOf(value: unknown): Shape {
  const shape = emptyShape();
  add(shape, value, 0, null);
  return fit(shape);
}

/** @param name of the member with the value; null without one */
function add(shape: Shape, value: unknown, depth: number, name: string | null): void {
  shape.count += 1;
  if (shape.isOpaque) return;
  if (value === null) shape.nulls += 1;
  else if (typeof value === 'boolean') shape.booleans += 1;
  else if (Number.isSafeInteger(value)) shape.integers += 1;
  else if (Number.isFinite(value)) shape.decimals += 1;
  else if (typeof value === 'string') {
    const textShape: TextShape = (shape.texts ??= {
      count: 0,
      formats: new Map(),
      words: isClosedList(name) ? new Map() : null,
    });
    textShape.count += 1;
    const format = formatOf(value);
    if (format) increase(textShape.formats, format, 1);
    if (textShape.words && WORD.test(value)) increase(textShape.words, value, 1);
    else textShape.words = null;
    if (textShape.words && textShape.words.size > WORDS_MAX) textShape.words = null;
  } else if (typeof value !== 'object' || depth >= DEPTH_MAX) obscure(shape);
  else if (Array.isArray(value)) {
    const lists = (shape.lists ??= { count: 0, items: emptyShape() });
    lists.count += 1;
    for (const item of value) add(lists.items, item, depth + 1, name);
  } else addObject((shape.objects ??= { count: 0, fields: new Map(), rest: null, isMap: false }), value, depth);
}

function addObject(objects: ObjectShape, value: object, depth: number): void {
  objects.count += 1;
  for (const [name, member] of Object.entries(value)) {
    // Other names, such as ids, are data: their values are treated as those of a dictionary. So are names that every
    // JavaScript object inherits, which validators find in objects without them.
    const isField =
      !objects.isMap &&
      name !== '' &&
      name.length <= NAME_CHARS_MAX &&
      !(name in Object.prototype) &&
      formatOf(name) === null &&
      !DATA_NAME.test(name.replace(MEDIA_TYPE, ''));
    const place = isField ? fieldOf(objects, name) : (objects.rest ??= emptyShape());
    add(place, member, depth + 1, isField ? name : null);
    if (objects.fields.size > FIELDS_MAX) becomeMap(objects);
  }
}

function fieldOf({ fields }: ObjectShape, name: string): Shape {
  const existing = fields.get(name);
  if (existing) return existing;
  const shape = emptyShape();
  fields.set(name, shape);
  return shape;
}

function becomeMap(objects: ObjectShape): void {
  objects.isMap = true;
  objects.rest ??= emptyShape();
  for (const field of objects.fields.values()) addShape(objects.rest, field);
  objects.fields.clear();
}

function obscure(shape: Shape): void {
  Object.assign(shape, { ...emptyShape(), count: shape.count, isOpaque: true });
}

function increase<Key>(counts: Map<Key, number>, key: Key, by: number): void {
  counts.set(key, (counts.get(key) ?? 0) + by);
}

/** Merges two shapes within the limits, without changing them. */
export function mergeShapes(shape: Shape, other: Shape): Shape {
  const sum = emptyShape();
  addShape(sum, shape);
  addShape(sum, other);
  return fit(sum);
}

/** Adds `source` to `target`, without changing `source`. */
function addShape(target: Shape, source: Shape): void {
  target.count += source.count;
  if (target.isOpaque || source.isOpaque) return obscure(target);
  target.nulls += source.nulls;
  target.booleans += source.booleans;
  target.integers += source.integers;
  target.decimals += source.decimals;
  if (source.texts) {
    const { count, formats, words } = source.texts;
    const textShape = (target.texts ??= { count: 0, formats: new Map(), words: new Map() });
    textShape.count += count;
    for (const [format, times] of formats) increase(textShape.formats, format, times);
    if (words) for (const [word, times] of words) if (textShape.words) increase(textShape.words, word, times);
    if (!words || (textShape.words && textShape.words.size > WORDS_MAX)) textShape.words = null;
  }
  if (source.lists) {
    target.lists ??= { count: 0, items: emptyShape() };
    target.lists.count += source.lists.count;
    addShape(target.lists.items, source.lists.items);
  }
  if (source.objects) {
    addObjects((target.objects ??= { count: 0, fields: new Map(), rest: null, isMap: false }), source.objects);
  }
}

function addObjects(target: ObjectShape, source: ObjectShape): void {
  target.count += source.count;
  if (source.isMap && !target.isMap) becomeMap(target);
  for (const [name, field] of source.fields) {
    addShape(target.isMap ? (target.rest ??= emptyShape()) : fieldOf(target, name), field);
    if (target.fields.size > FIELDS_MAX) becomeMap(target);
  }
  if (source.rest) addShape((target.rest ??= emptyShape()), source.rest);
}

/** Makes the deepest levels opaque until at most {@link NODES_MAX} positions are left. */
function fit(shape: Shape): Shape {
  let places = 1;
  let level = [shape];
  while (level.length > 0) {
    const below = level.flatMap(placesBelow);
    places += below.length;
    if (places > NODES_MAX) {
      level.filter((shape) => shape.lists || shape.objects).forEach(obscure);
      break;
    }
    level = below;
  }
  return shape;
}

export function placesBelow({ lists, objects }: Shape): Shape[] {
  return [
    ...(lists ? [lists.items] : []),
    ...(objects ? objects.fields.values() : []),
    ...(objects?.rest ? [objects.rest] : []),
  ];
}

function isClosedList(name: string | null): boolean {
  if (name === null) return false;
  const words = name.replace(/([a-z])([A-Z])/g, '$1 $2').split(/[^A-Za-z]+/);
  const last = words.at(-1)?.toLowerCase() ?? '';
  return [last, last.replace(/s$/, ''), last.replace(/e?s$/, ''), last.replace(/ies$/, 'y')].some((word) =>
    CLOSED_LISTS.has(word),
  );
}
