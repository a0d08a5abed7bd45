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

/** What is wrong with a value, and where: names joined by dots, empty for the whole. */
export interface Fault {
  path: string;
  message: string;
}

/** References that are followed from one place; more is a circle. */
const REFS_MAX = 16;

/** Whether a value is an object with names. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Follows references within the document; what leads nowhere allows everything. */
export function resolved(schema: unknown, root: Schema): Schema {
  let found = schema;
  for (let hops = 0; hops < REFS_MAX && isObject(found) && typeof found.$ref === 'string'; hops += 1) {
    const steps = found.$ref.startsWith('#/') ? found.$ref.slice(2).split('/') : null;
    if (!steps) return {};
    found = steps
      .map((step) => decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~'))
      .reduce<unknown>((at, step) => (isObject(at) && Object.hasOwn(at, step) ? at[step] : undefined), root);
  }
  return isObject(found) ? found : {};
}

/** The types a schema allows; empty for any. */
export function typesOf(schema: Schema, root: Schema): Set<string> {
  const here = resolved(schema, root);
  if (here.type !== undefined) return new Set([here.type].flat());
  const values = here.enum ?? (here.const === undefined ? [] : [here.const]);
  if (values.length > 0) return new Set(values.map(typeName));
  const choices = here.anyOf ?? here.oneOf ?? here.allOf ?? [];
  const types = choices.map((choice) => typesOf(choice, root));
  return types.some((set) => set.size === 0) ? new Set() : new Set(types.flatMap((set) => [...set]));
}

function typeName(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value;
}

/** Fills in defaults, in place of what is missing only. Drops what the schema does not know where it allows no more. */
export function withDefaults(schema: Schema, root: Schema, value: unknown): unknown {
  const here = resolved(schema, root);
  if (value === undefined && here.default !== undefined) return structuredClone(here.default);
  if (!here.properties || (value !== undefined && !isObject(value))) return value;
  const known = Object.entries(here.properties)
    .map(([name, property]) => [name, withDefaults(property, root, value?.[name])] as const)
    .filter(([, filled]) => filled !== undefined);
  const more = here.additionalProperties === false ? [] : Object.entries(value ?? {});
  if (value === undefined && known.length === 0) return undefined;
  return Object.fromEntries([...more, ...known]);
}

/** What of a value the schema does not allow. Keywords it does not know are passed over, as JSON Schema wants it. */
export function issuesOf(schema: Schema, root: Schema, value: unknown, path = ''): Fault[] {
  const here = resolved(schema, root);
  const fault = (message: string): Fault[] => [{ path, message }];
  if (here.type !== undefined && ![here.type].flat().some((type) => isOfType(value, type))) {
    return fault(`must be ${[here.type].flat().join(' or ')}`);
  }
  if (here.const !== undefined && !isSame(here.const, value)) return fault(`must be ${JSON.stringify(here.const)}`);
  if (here.enum && !here.enum.some((allowed) => isSame(allowed, value))) {
    return fault(`must be one of ${here.enum.map((allowed) => JSON.stringify(allowed)).join(', ')}`);
  }
  return [
    ...boundFaults(here, value).flatMap(fault),
    ...(isObject(value) ? objectFaults(here, root, value, path) : []),
    ...(Array.isArray(value) && here.items
      ? value.flatMap((item, index) => issuesOf(here.items ?? {}, root, item, joined(path, String(index))))
      : []),
    ...(here.allOf ?? []).flatMap((part) => issuesOf(part, root, value, path)),
    ...choiceFaults(here, root, value, path),
  ];
}

function choiceFaults(here: Schema, root: Schema, value: unknown, path: string): Fault[] {
  const choices = here.anyOf ?? here.oneOf;
  if (!choices || choices.length === 0) return [];
  const faults = choices.map((choice) => issuesOf(choice, root, value, path));
  if (faults.some((found) => found.length === 0)) return [];
  return faults.length === 1 ? faults[0] : [{ path, message: 'matches none of the allowed forms' }];
}

function objectFaults(here: Schema, root: Schema, value: Record<string, unknown>, path: string): Fault[] {
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

function boundFaults(here: Schema, value: unknown): string[] {
  if (typeof value === 'string') return textFaults(here, value);
  if (typeof value === 'number') return numberFaults(here, value);
  if (!Array.isArray(value)) return [];
  return [
    ...atLeast(here.minItems, value.length, (bound) => `must have at least ${bound} items`),
    ...atMost(here.maxItems, value.length, (bound) => `must have at most ${bound} items`),
  ];
}

function textFaults(here: Schema, value: string): string[] {
  return [
    ...atLeast(here.minLength, [...value].length, (bound) => `must have at least ${bound} characters`),
    ...atMost(here.maxLength, [...value].length, (bound) => `must have at most ${bound} characters`),
    ...(typeof here.pattern === 'string' && !matches(here.pattern, value) ? [`must match ${here.pattern}`] : []),
  ];
}

function numberFaults(here: Schema, value: number): string[] {
  const { multipleOf, exclusiveMinimum, exclusiveMaximum } = here;
  return [
    ...atLeast(here.minimum, value, (bound) => `must be at least ${bound}`),
    ...atMost(here.maximum, value, (bound) => `must be at most ${bound}`),
    ...(typeof exclusiveMinimum === 'number' && value <= exclusiveMinimum
      ? [`must be more than ${exclusiveMinimum}`]
      : []),
    ...(typeof exclusiveMaximum === 'number' && value >= exclusiveMaximum
      ? [`must be less than ${exclusiveMaximum}`]
      : []),
    ...(typeof multipleOf === 'number' && !Number.isInteger(value / multipleOf)
      ? [`must be a multiple of ${multipleOf}`]
      : []),
  ];
}

function atLeast(bound: unknown, size: number, say: (bound: number) => string): string[] {
  return typeof bound === 'number' && size < bound ? [say(bound)] : [];
}

function atMost(bound: unknown, size: number, say: (bound: number) => string): string[] {
  return typeof bound === 'number' && size > bound ? [say(bound)] : [];
}

/** A pattern that is no regular expression here forbids nothing. */
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
