import { isObject } from '../../../../platform/text/json.js';
import { plainName, plural } from './names.js';
import { mergedSchema, variantsOf } from './schema-parts.js';
import type { Item } from './simulator.js';
import { propertiesOf } from './tool-meaning.js';

/** Where in an answer something stands, and the schema of what stands there. */
export interface Place {
  path: string[];
  schema: unknown;
}

const WRAPPERS = ['result', 'data', 'item', 'record', 'response', 'payload', 'output'];
const LISTS = [
  'items',
  'results',
  'data',
  'records',
  'entries',
  'nodes',
  'list',
  'values',
  'result',
  'hits',
  'matches',
];

function shapes(schema: unknown, root: unknown): Item[] {
  const merged = mergedSchema(schema, root);
  return [merged, ...variantsOf(merged, root)];
}

function isOfType(schema: unknown, root: unknown, type: string, hint: string): boolean {
  return shapes(schema, root).some(
    (shape) => shape.type === type || (Array.isArray(shape.type) && shape.type.includes(type)) || hint in shape,
  );
}

/** Where an answer about one thing holds it: under its own name, under a word like `data`, or as a whole. */
export function thingPlace(schema: unknown, kind: string): Place {
  const properties = propertiesOf(schema);
  const named = [plainName(kind), plainName(kind.split('_').at(-1) ?? kind), ...WRAPPERS];
  for (const wanted of named) {
    const name = Object.keys(properties).find((one) => plainName(one) === wanted);
    if (name !== undefined && isOfType(properties[name], schema, 'object', 'properties')) {
      return { path: [name], schema: properties[name] };
    }
  }
  return { path: [], schema };
}

/** Where an answer about many things holds the list of them, with the schema of one; null when there is no list. */
export function listPlace(schema: unknown, kind: string, root = schema, depth = 0): Place | null {
  const properties = propertiesOf(schema, root);
  const lists = Object.entries(properties).filter(([, one]) => isOfType(one, root, 'array', 'items'));
  const short = kind.split('_').at(-1) ?? kind;
  const wanted = [plainName(plural(kind)), plainName(plural(short)), plainName(kind), plainName(short), ...LISTS];
  const found = wanted.map((name) => lists.find(([one]) => plainName(one) === name)).find((one) => one !== undefined);
  const [name, list] = found ?? (lists.length === 1 ? lists[0] : undefined) ?? [];
  if (name !== undefined) return { path: [name], schema: itemsOf(list, root) };
  if (depth > 0) return null;
  for (const wrapper of WRAPPERS) {
    if (!(wrapper in properties)) continue;
    const inner = listPlace(properties[wrapper], kind, root, depth + 1);
    if (inner) return { path: [wrapper, ...inner.path], schema: inner.schema };
  }
  return null;
}

function itemsOf(list: unknown, root: unknown): unknown {
  return shapes(list, root).find((shape) => 'items' in shape)?.items ?? true;
}

/** A value inside of objects named by a path. */
export function nested(path: readonly string[], value: unknown): unknown {
  return path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
}

/** `whole` with `value` at a path of members. */
export function replacedAt(whole: unknown, path: readonly string[], value: unknown): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  const own = isObject(whole) ? whole : {};
  return { ...own, [name]: replacedAt(own[name], rest, value) };
}
