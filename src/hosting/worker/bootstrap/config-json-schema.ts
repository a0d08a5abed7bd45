import { resolved as withTarget } from '../../../platform/json-schema/references.js';
import { isObject, type JsonObject } from '../../../platform/text/json.js';

/** JSON Schema as configurations use it (drafts 7 to 2020-12). */
export interface Schema {
  [keyword: string]: unknown;
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  additionalProperties?: boolean | Schema;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  $ref?: string;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
}

/** An error of a configuration. `path`: names joined by dots, empty for the whole value. */
export interface ConfigError {
  path: string;
  message: string;
}

/** Replaces `$ref` by the referenced schema; an unresolvable one allows everything. */
export function resolved(schema: unknown, root: Schema): Schema {
  return withTarget(schema, root);
}

/** The types a schema allows; empty for any. @param around schemas being read, to end cycles of references */
export function typesOf(schema: Schema, root: Schema, around: unknown[] = []): Set<string> {
  if (around.includes(schema)) return new Set();
  const here = resolved(schema, root);
  if (here.type !== undefined) return new Set([here.type].flat());
  const values = here.enum ?? (here.const === undefined ? [] : [here.const]);
  if (values.length > 0) return new Set(values.map(typeName));
  const choices = here.anyOf ?? here.oneOf ?? here.allOf ?? [];
  const types = choices.map((choice) => typesOf(choice, root, [...around, schema]));
  return types.some((set) => set.size === 0) ? new Set() : new Set(types.flatMap((set) => [...set]));
}

function typeName(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value;
}

/** The value with defaults for missing members, and without members that the schema forbids. */
export function withDefaults(schema: Schema, root: Schema, value: unknown, around: unknown[] = []): unknown {
  const here = resolved(schema, root);
  if (value === undefined && here.default !== undefined) return structuredClone(here.default);
  if (value === undefined && around.includes(schema)) return undefined;
  if (!here.properties || (value !== undefined && !isObject(value))) return value;
  const known = Object.entries(here.properties)
    .map(([name, property]) => [name, withDefaults(property, root, value?.[name], [...around, schema])] as const)
    .filter(([, filled]) => filled !== undefined);
  const more = here.additionalProperties === false ? [] : Object.entries(value ?? {});
  if (value === undefined && known.length === 0) return undefined;
  return Object.fromEntries([...more, ...known]);
}

/** Errors of a value against a schema. Unknown keywords are ignored, as JSON Schema says. */
export function issuesOf(
  schema: Schema,
  root: Schema,
  value: unknown,
  path = '',
  around: unknown[] = [],
): ConfigError[] {
  if (around.includes(schema)) return [];
  const here = resolved(schema, root);
  const failed = (message: string): ConfigError[] => [{ path, message }];
  if (here.type !== undefined && ![here.type].flat().some((type) => isOfType(value, type))) {
    return failed(`must be ${[here.type].flat().join(' or ')}`);
  }
  if (here.const !== undefined && !isSame(here.const, value)) return failed(`must be ${JSON.stringify(here.const)}`);
  if (here.enum && !here.enum.some((allowed) => isSame(allowed, value))) {
    return failed(`must be one of ${here.enum.map((allowed) => JSON.stringify(allowed)).join(', ')}`);
  }
  return [
    ...boundErrors(here, value).flatMap(failed),
    ...(isObject(value) ? objectErrors(here, root, value, path) : []),
    ...(Array.isArray(value) && here.items
      ? value.flatMap((item, index) => issuesOf(here.items ?? {}, root, item, joined(path, String(index))))
      : []),
    ...(here.allOf ?? []).flatMap((part) => issuesOf(part, root, value, path, [...around, schema])),
    ...choiceErrors(here, root, value, path, [...around, schema]),
  ];
}

function choiceErrors(here: Schema, root: Schema, value: unknown, path: string, around: unknown[]): ConfigError[] {
  const choices = here.anyOf ?? here.oneOf;
  if (!choices || choices.length === 0) return [];
  const errors = choices.map((choice) => issuesOf(choice, root, value, path, around));
  if (errors.some((faults) => faults.length === 0)) return [];
  return errors.length === 1 ? errors[0] : [{ path, message: 'matches none of the allowed forms' }];
}

function objectErrors(here: Schema, root: Schema, value: JsonObject, path: string): ConfigError[] {
  const missing = (here.required ?? []).filter((name) => !Object.hasOwn(value, name));
  const more = isObject(here.additionalProperties) ? here.additionalProperties : null;
  return [
    ...missing.map((name) => ({ path: joined(path, name), message: 'is required' })),
    ...Object.entries(value).flatMap(([name, part]) => {
      const property = here.properties && Object.hasOwn(here.properties, name) ? here.properties[name] : more;
      return property ? issuesOf(property, root, part, joined(path, name)) : [];
    }),
  ];
}

/** Size of a value that a bound applies to; undefined where it does not. */
const sizes = {
  items: (value: unknown) => (Array.isArray(value) ? value.length : undefined),
  characters: (value: unknown) => (typeof value === 'string' ? [...value].length : undefined),
  number: (value: unknown) => (typeof value === 'number' ? value : undefined),
};

const least = (size: number, bound: number) => size >= bound;
const most = (size: number, bound: number) => size <= bound;

/** Keywords with a numeric bound: the size they apply to, whether it is allowed, and the message. */
const bounds: [
  keyword: string,
  of: keyof typeof sizes,
  allows: (size: number, bound: number) => boolean,
  text: string,
][] = [
  ['minItems', 'items', least, 'must have at least # items'],
  ['maxItems', 'items', most, 'must have at most # items'],
  ['minLength', 'characters', least, 'must have at least # characters'],
  ['maxLength', 'characters', most, 'must have at most # characters'],
  ['minimum', 'number', least, 'must be at least #'],
  ['maximum', 'number', most, 'must be at most #'],
  ['exclusiveMinimum', 'number', (size, bound) => size > bound, 'must be more than #'],
  ['exclusiveMaximum', 'number', (size, bound) => size < bound, 'must be less than #'],
  ['multipleOf', 'number', (size, bound) => Number.isInteger(size / bound), 'must be a multiple of #'],
];

function boundErrors(here: Schema, value: unknown): string[] {
  const errors = bounds.flatMap(([keyword, of, allows, text]) => {
    const bound = here[keyword];
    const size = sizes[of](value);
    if (typeof bound !== 'number' || size === undefined || allows(size, bound)) return [];
    return [text.replace('#', String(bound))];
  });
  const { pattern } = here;
  const isMatch = typeof value !== 'string' || typeof pattern !== 'string' || matches(pattern, value);
  return isMatch ? errors : [...errors, `must match ${pattern}`];
}

/** True also for an invalid regular expression. */
function matches(pattern: string, value: string): boolean {
  try {
    return new RegExp(pattern, 'u').test(value);
  } catch {
    return true;
  }
}

function isOfType(value: unknown, type: string): boolean {
  if (type === 'integer') return Number.isInteger(value);
  return typeName(value) === type;
}

function isSame(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

function joined(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}
