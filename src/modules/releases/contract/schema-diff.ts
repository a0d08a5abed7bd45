import { canonicalJson, isObject, pathStep, type JsonObject } from '../../../platform/text/json.js';
import { resolveRef } from '../../../platform/json-schema/references.js';
import { quote } from '../../../platform/text/quoted.js';
import type { ChangeLevel } from './contract-change.js';

/** Direction of a schema: callers send input and read output. */
export type Direction = 'input' | 'output';

export interface SchemaChange {
  kind: SchemaChangeKind;
  level: ChangeLevel;
  path: string;
  message: string;
}

/** Level of each difference for input, and for output. */
const levels = {
  added: { input: 'compatible', output: 'compatible' },
  required_added: { input: 'breaking', output: 'compatible' },
  removed: { input: 'risky', output: 'breaking' },
  // The property was removed from a closed object, which rejects callers that still send it.
  refused: { input: 'breaking', output: 'breaking' },
  now_required: { input: 'breaking', output: 'compatible' },
  now_optional: { input: 'compatible', output: 'breaking' },
  type_narrowed: { input: 'breaking', output: 'compatible' },
  type_widened: { input: 'compatible', output: 'breaking' },
  type_changed: { input: 'breaking', output: 'breaking' },
  value_added: { input: 'compatible', output: 'risky' },
  value_removed: { input: 'breaking', output: 'compatible' },
  closed: { input: 'breaking', output: 'compatible' },
  opened: { input: 'compatible', output: 'risky' },
  tightened: { input: 'breaking', output: 'compatible' },
  loosened: { input: 'compatible', output: 'risky' },
  default_changed: { input: 'risky', output: 'risky' },
  // Models follow descriptions.
  description_changed: { input: 'risky', output: 'risky' },
  schema_changed: { input: 'risky', output: 'risky' },
} as const satisfies Record<string, Record<Direction, ChangeLevel>>;
export type SchemaChangeKind = keyof typeof levels;

export const schemaChangeKinds = Object.keys(levels) as SchemaChangeKind[];

/** Limits of the comparison: schemas can refer to themselves. */
const PLACES_MAX = 2_000;
const DEPTH_MAX = 16;

/** Number of members that use up another place. */
const ENTRIES_OF_PLACE = 100;

const CHANGES_MAX = 1_000;

/** Keywords with a bound; true if a higher bound allows less. */
const BOUNDS = new Map([
  ['minimum', true],
  ['exclusiveMinimum', true],
  ['minLength', true],
  ['minItems', true],
  ['minProperties', true],
  ['maximum', false],
  ['exclusiveMaximum', false],
  ['maxLength', false],
  ['maxItems', false],
  ['maxProperties', false],
]);

const RESTRICTIONS = new Set(['pattern', 'format', 'multipleOf', 'uniqueItems', 'contentEncoding', 'contentMediaType']);

const UNDERSTOOD = new Set([
  ...BOUNDS.keys(),
  ...RESTRICTIONS,
  ...['type', 'enum', 'properties', 'required', 'additionalProperties', 'items', 'description', 'title', 'default'],
  ...['$defs', 'definitions', '$ref'],
]);

/** Compares canonical schemas. @param path of the schema */
export function schemaChanges(before: unknown, after: unknown, direction: Direction, path: string): SchemaChange[] {
  if (canonicalJson(before) === canonicalJson(after)) return [];
  const changes = new SchemaDiff(before, after, direction).compareAt(before, after, path, 0);
  if (changes.length > 0) return changes;
  const message = 'It changed in a way that is not understood: compare the two.';
  return [{ kind: 'schema_changed', level: levels.schema_changed[direction], path, message }];
}

class SchemaDiff {
  private places = 0;
  private count = 0;
  /** Canonical JSON of parts: schemas that refer to themselves repeat the same parts. */
  private readonly jsonCache = new WeakMap<object, string>();

  constructor(
    private readonly before: unknown,
    private readonly after: unknown,
    private readonly direction: Direction,
  ) {}

  compareAt(old: unknown, now: unknown, path: string, depth: number): SchemaChange[] {
    if (this.places >= PLACES_MAX || this.count >= CHANGES_MAX || depth > DEPTH_MAX) return [];
    const before = resolveRef(old, this.before);
    const after = resolveRef(now, this.after);
    this.places += 1 + Math.floor((entriesOf(before) + entriesOf(after)) / ENTRIES_OF_PLACE);
    const isDifferent = (keyword: string) => !this.isSame(before[keyword], after[keyword]);
    return [
      ...(isDifferent('description') || isDifferent('title')
        ? [this.change('description_changed', path, 'Its description changed, which models read.')]
        : []),
      ...(isDifferent('default') ? [this.change('default_changed', path, 'Its default changed.')] : []),
      ...this.types(before, after, path),
      ...this.values(before, after, path),
      ...this.bounds(before, after, path),
      ...this.members(before, after, path, depth),
      ...this.openness(before, after, path),
      ...(before.items === undefined && after.items === undefined
        ? []
        : this.compareAt(before.items ?? {}, after.items ?? {}, `${path}[]`, depth + 1)),
      ...this.otherChanges(before, after, path),
    ];
  }

  private change(kind: SchemaChangeKind, path: string, message: string): SchemaChange {
    this.count += 1;
    return { kind, level: levels[kind][this.direction], path, message };
  }

  private textOf(value: unknown): string {
    if (typeof value !== 'object' || value === null) return canonicalJson(value);
    const text = this.jsonCache.get(value) ?? canonicalJson(value);
    this.jsonCache.set(value, text);
    return text;
  }

  private isSame(value: unknown, other: unknown): boolean {
    return value === other || this.textOf(value) === this.textOf(other);
  }

  private types(before: JsonObject, after: JsonObject, path: string): SchemaChange[] {
    const [old, now] = [typesOf(before), typesOf(after)];
    const isNarrower = isWithin(now, old);
    const isWider = isWithin(old, now);
    if (isNarrower && isWider) return [];
    const kind = isNarrower ? 'type_narrowed' : isWider ? 'type_widened' : 'type_changed';
    return [this.change(kind, path, `Its type was ${typeText(before)}, and is ${typeText(after)}.`)];
  }

  private values(before: JsonObject, after: JsonObject, path: string): SchemaChange[] {
    const [old, now] = [valuesOf(before), valuesOf(after)];
    if (!old && !now) return [];
    if (!old) return [this.change('value_removed', path, 'Only certain values are allowed now.')];
    if (!now) return [this.change('value_added', path, 'Any value is allowed now.')];
    const report = (kind: SchemaChangeKind, values: Set<string>, other: Set<string>, verb: string) =>
      [...values]
        .filter((value) => !other.has(value))
        .map((value) => this.change(kind, path, `The value ${quote(value)} was ${verb}.`));
    return [...report('value_removed', old, now, 'removed'), ...report('value_added', now, old, 'added')];
  }

  private bounds(before: JsonObject, after: JsonObject, path: string): SchemaChange[] {
    return [...BOUNDS.keys(), ...RESTRICTIONS].flatMap((keyword) => {
      const [old, now] = [before[keyword], after[keyword]];
      if (this.isSame(old, now)) return [];
      const kind = kindOfBound(keyword, old, now);
      const describe = (value: unknown) => (value === undefined ? 'none' : quote(this.textOf(value), 80));
      return [this.change(kind, path, `Its ${keyword} was ${describe(old)}, and is ${describe(now)}.`)];
    });
  }

  private members(before: JsonObject, after: JsonObject, path: string, depth: number): SchemaChange[] {
    const [old, now] = [membersOf(before), membersOf(after)];
    const [oldRequired, nowRequired] = [namesIn(before.required), namesIn(after.required)];
    const noun = this.direction === 'input' ? 'input' : 'field';
    const kindOfLoss = this.direction === 'input' && after.additionalProperties === false ? 'refused' : 'removed';
    const lost = [...old.keys()].filter((name) => !now.has(name));
    return [
      ...lost.map((name) => this.change(kindOfLoss, path + pathStep(name, quote), `The ${noun} was removed.`)),
      ...[...now].flatMap(([name, member]) => {
        const isRequired = nowRequired.has(name);
        const place = path + pathStep(name, quote);
        if (!old.has(name)) {
          const kind = isRequired ? 'required_added' : 'added';
          return [this.change(kind, place, `The ${isRequired ? 'required' : 'optional'} ${noun} was added.`)];
        }
        const change = isRequired
          ? (['now_required', 'It is required now.'] as const)
          : (['now_optional', 'It is optional now.'] as const);
        return [
          ...(isRequired === oldRequired.has(name) ? [] : [this.change(change[0], place, change[1])]),
          ...this.compareAt(old.get(name), member, place, depth + 1),
        ];
      }),
    ];
  }

  private openness(before: JsonObject, after: JsonObject, path: string): SchemaChange[] {
    const [old, now] = [before.additionalProperties, after.additionalProperties];
    if (this.isSame(old, now)) return [];
    if (now === false) return [this.change('closed', path, 'Other members are refused now.')];
    if (old === false) return [this.change('opened', path, 'Other members are allowed now.')];
    return [this.change('schema_changed', path, 'What other members may be changed.')];
  }

  private otherChanges(before: JsonObject, after: JsonObject, path: string): SchemaChange[] {
    const keywords = new Set([...Object.keys(before), ...Object.keys(after)]);
    const changed = [...keywords].filter(
      (keyword) => !UNDERSTOOD.has(keyword) && !this.isSame(before[keyword], after[keyword]),
    );
    return changed.map((keyword) =>
      this.change('schema_changed', path, `Its ${quote(keyword)} changed: compare the two.`),
    );
  }
}

/** Returns the allowed types; null for any. `number` includes `integer`. */
function typesOf({ type }: JsonObject): Set<unknown> | null {
  if (type === undefined) return null;
  const types = new Set<unknown>([type].flat());
  if (types.has('number')) types.add('integer');
  return types;
}

function isWithin(inner: Set<unknown> | null, outer: Set<unknown> | null): boolean {
  return outer === null || (inner !== null && [...inner].every((type) => outer.has(type)));
}

function typeText({ type }: JsonObject): string {
  return type === undefined ? 'any' : [type].flat().map(String).join(' or ').slice(0, 80);
}

/** Returns the allowed values as JSON; null allows any value. */
function valuesOf(schema: JsonObject): Set<string> | null {
  return Array.isArray(schema.enum) ? new Set(schema.enum.map(canonicalJson)) : null;
}

/** Returns the members of a schema; `{}` for a member that is only required. */
function membersOf({ properties, required }: JsonObject): Map<string, unknown> {
  const requiredEntries = [...namesIn(required)].map((name): [string, unknown] => [name, {}]);
  return new Map([...requiredEntries, ...(isObject(properties) ? Object.entries(properties) : [])]);
}

function entriesOf(schema: JsonObject): number {
  const { enum: values, properties, required } = schema;
  return [schema, values, properties, required].reduce<number>(
    (sum, part) => sum + (typeof part === 'object' && part !== null ? Object.keys(part).length : 0),
    0,
  );
}

function namesIn(required: unknown): Set<string> {
  return new Set(Array.isArray(required) ? required.filter((name) => typeof name === 'string') : []);
}

function kindOfBound(keyword: string, old: unknown, now: unknown): SchemaChangeKind {
  if (old === undefined || now === undefined) return old === undefined ? 'tightened' : 'loosened';
  if (typeof old !== 'number' || typeof now !== 'number' || !BOUNDS.has(keyword)) return 'schema_changed';
  return now > old === BOUNDS.get(keyword) ? 'tightened' : 'loosened';
}
