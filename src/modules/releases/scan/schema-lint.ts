import type { AnySchemaObject, FuncKeywordDefinition, ValidateFunction } from 'ajv';
import { Ajv } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { quoted, visible } from '../../../platform/text/quoted.js';
import { canonicalJson } from '../../../platform/text/json.js';
import { isObject } from '../../../platform/text/json.js';

/** The whole schema as JSON. Every client puts it into its model's context, so larger ones are a mistake or an attack. */
const SCHEMA_BYTES_MAX = 256 * 1024;

/** Enough to repair the next ones with. */
const FAULTS_MAX = 3;

export interface SchemaIssue {
  rule: 'invalid-schema' | 'schema-too-large' | 'remote-reference';
  /** The end of a sentence that begins with the schema's name, without the full stop. */
  text: string;
}

type Dialect = '2020-12' | '2019-09' | 'draft-07';

/** Without scheme and final `#`, which servers write either way. Whatever is valid in draft-06 is in draft-07. */
const dialects: Record<string, Dialect> = {
  '//json-schema.org/draft/2020-12/schema': '2020-12',
  '//json-schema.org/draft/2019-09/schema': '2019-09',
  '//json-schema.org/draft-07/schema': 'draft-07',
  '//json-schema.org/draft-06/schema': 'draft-07',
};

const metaSchemaIds: Record<Dialect, string> = {
  '2020-12': 'https://json-schema.org/draft/2020-12/schema',
  '2019-09': 'https://json-schema.org/draft/2019-09/schema',
  'draft-07': 'http://json-schema.org/draft-07/schema',
};

/** Members that hold values, not schemas. What stands in them may look like a reference and is none. */
const DATA = new Set(['default', 'const', 'enum', 'examples', 'example']);

/** Members that hold schemas by names of the server's choice. */
const MAPS = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependencies']);

const REFERENCES = ['$ref', '$dynamicRef', '$recursiveRef'];

/** Ajv's own compares each value with each, by what they say they are, and so fails on a member `valueOf`. */
const uniqueItems: FuncKeywordDefinition = {
  keyword: 'uniqueItems',
  type: 'array',
  schemaType: 'boolean',
  validate: (isWanted: boolean, values: unknown[]) =>
    !isWanted || new Set(values.map(canonicalJson)).size === values.length,
  error: { message: 'must NOT have duplicate items' },
};

/** The rules of each dialect, as functions. */
const metaSchemaOf = new Map<Dialect, ValidateFunction>();

/**
 * What is wrong with a schema, at most three things; empty when it can be used. It is checked against the rules of its
 * dialect (2020-12 unless `$schema` says otherwise; without `$schema`, draft-07 is let pass too, as older servers write it),
 * its references must lead to places inside of it, and its patterns must be regular expressions. Nothing of it is compiled
 * or executed. Needs a value that is not nested deeper than recursion goes.
 */
export function schemaIssues(schema: unknown): SchemaIssue[] {
  if (!isObject(schema)) return [invalid('is no object')];
  const bytes = Buffer.byteLength(JSON.stringify(schema));
  if (bytes > SCHEMA_BYTES_MAX) {
    const text = `has ${Math.ceil(bytes / 1024)} KB, and every client puts it into its model's context: make it smaller than ${SCHEMA_BYTES_MAX / 1024} KB`;
    return [{ rule: 'schema-too-large', text }];
  }
  const faults = dialectFaults(schema);
  return [...faults, ...new SchemaWalk(schema).faults()].slice(0, FAULTS_MAX);
}

function dialectFaults(schema: AnySchemaObject): SchemaIssue[] {
  const { $schema } = schema as { $schema?: unknown };
  if ($schema === undefined) {
    // The fault to tell is the one by the dialect that counts.
    const fault = metaFault(schema, '2020-12');
    return fault === null || metaFault(schema, 'draft-07') === null ? [] : [fault];
  }
  const dialect = typeof $schema === 'string' ? dialects[$schema.replace(/^https?:|#$/g, '')] : undefined;
  if (dialect === undefined) {
    const shown = typeof $schema === 'string' ? quoted($schema) : 'something that is no text';
    return [invalid(`declares a dialect clients do not know, ${shown}: use JSON Schema 2020-12, 2019-09 or draft-07`)];
  }
  const fault = metaFault(schema, dialect);
  return fault === null ? [] : [fault];
}

function metaFault(schema: AnySchemaObject, dialect: Dialect): SchemaIssue | null {
  const validate = metaSchema(dialect);
  if (validate(schema)) return null;
  const { instancePath = '', message = 'is not allowed' } = validate.errors?.[0] ?? {};
  return invalid(`is no valid JSON Schema (${dialect}): ${placeOf(instancePath)} ${visible(message, 200)}`);
}

/** Made when first needed: building one takes some ten milliseconds. */
function metaSchema(dialect: Dialect): ValidateFunction {
  const known = metaSchemaOf.get(dialect);
  if (known) return known;
  const options = { strict: false, validateFormats: false, logger: false } as const;
  const ajv =
    dialect === '2020-12' ? new Ajv2020(options) : dialect === '2019-09' ? new Ajv2019(options) : new Ajv(options);
  ajv.removeKeyword('uniqueItems').addKeyword(uniqueItems);
  const made = ajv.getSchema(metaSchemaIds[dialect]) as ValidateFunction;
  metaSchemaOf.set(dialect, made);
  return made;
}

/** Walks everything in a schema that may be a schema, unknown members too: references can lead there. */
class SchemaWalk {
  private readonly found: SchemaIssue[] = [];
  private readonly seen = new Set<object>();
  private readonly ids = new Set<string>();
  private readonly anchors = new Set<string>();
  private readonly references: { text: string; resource: object; place: string }[] = [];

  constructor(private readonly root: Record<string, unknown>) {}

  faults(): SchemaIssue[] {
    this.walk(this.root, this.root, '');
    // A place that a reference names is a schema, whatever member it stands in; walking it may find more references.
    for (let at = 0; at < this.references.length && this.found.length < FAULTS_MAX; at += 1) this.follow(at);
    return this.found;
  }

  private walk(from: Record<string, unknown>, resource: object, at: string): void {
    const stack: [schema: Record<string, unknown>, resource: object, place: string][] = [[from, resource, at]];
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      const [schema, around, place] = next;
      if (this.seen.has(schema)) continue;
      this.seen.add(schema);
      const own = this.noteIds(schema, around, place);
      for (const [name, value] of Object.entries(schema)) {
        const inner = `${place}/${name}`;
        if (REFERENCES.includes(name) && typeof value === 'string') {
          this.references.push({ text: value, resource: own, place: inner });
        } else if (name === 'pattern' && typeof value === 'string') this.requirePattern(value, inner);
        else if (name === 'patternProperties' && isObject(value)) {
          for (const pattern of Object.keys(value)) this.requirePattern(pattern, inner);
        }
        if (DATA.has(name) || typeof value !== 'object' || value === null) continue;
        const parts = Array.isArray(value) || MAPS.has(name) ? Object.entries(value) : [[null, value]];
        for (const [key, part] of parts as [string | null, unknown][]) {
          if (isObject(part)) stack.push([part, own, key === null ? inner : `${inner}/${key}`]);
        }
      }
    }
  }

  /** The resource that references in a schema start from: itself if it has an id of its own, else the one around it. */
  private noteIds(schema: Record<string, unknown>, around: object, place: string): object {
    for (const name of ['$anchor', '$dynamicAnchor']) {
      if (typeof schema[name] === 'string') this.anchors.add(schema[name]);
    }
    const { $id } = schema;
    if (typeof $id !== 'string') return around;
    if ($id.startsWith('#')) {
      this.anchors.add($id.slice(1));
      return around;
    }
    if (isElsewhere($id)) {
      this.tell({
        rule: 'remote-reference',
        text: `names itself ${quoted($id)} at ${placeOf(`${place}/$id`)}, an address outside of it, against which readers resolve what it refers to: leave $id out`,
      });
    }
    this.ids.add($id.replace(/#$/, ''));
    return schema;
  }

  private follow(at: number): void {
    const { text, resource, place } = this.references[at];
    const [base, fragment = ''] = text.split(/#(.*)/s, 2);
    if (base !== '' && !this.ids.has(base)) {
      return this.tell({
        rule: 'remote-reference',
        text: `refers to ${quoted(text)} at ${placeOf(place)}, which clients must not fetch: copy what it refers to into $defs`,
      });
    }
    // Another resource of the same schema: only its being there is checked.
    if (base !== '' || fragment === '') return;
    const target = fragment.startsWith('/') ? pointedAt(resource, fragment) : this.anchors.has(decoded(fragment));
    if (isObject(target)) this.walk(target, resource, fragment);
    else if (typeof target !== 'boolean' || (!target && !fragment.startsWith('/'))) {
      this.tell(invalid(`refers to ${quoted(text)} at ${placeOf(place)}, and nothing is there`));
    }
  }

  private requirePattern(pattern: string, place: string): void {
    if (isPattern(pattern, 'u') || isPattern(pattern, '')) return;
    this.tell(
      invalid(`has a pattern that is no regular expression of JavaScript, ${quoted(pattern)} at ${placeOf(place)}`),
    );
  }

  private tell(fault: SchemaIssue): void {
    if (this.found.length < FAULTS_MAX) this.found.push(fault);
  }
}

/** What a JSON pointer leads to; undefined when nothing is there. */
function pointedAt(from: object, pointer: string): unknown {
  let current: unknown = from;
  for (const step of decoded(pointer).split('/').slice(1)) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, name)) return undefined;
    current = (current as Record<string, unknown>)[name];
  }
  return current;
}

function decoded(fragment: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
}

/** Has a scheme, or leaves scheme or host open: resolving anything against it leaves the schema. */
function isElsewhere(id: string): boolean {
  return /^[a-z][a-z0-9+.-]*:|^[\\/]/i.test(id);
}

/** Only parsed: V8 compiles an expression when it is first run. */
function isPattern(pattern: string, flags: string): boolean {
  try {
    new RegExp(pattern, flags);
    return true;
  } catch {
    return false;
  }
}

function invalid(text: string): SchemaIssue {
  return { rule: 'invalid-schema', text };
}

function placeOf(pointer: string): string {
  return pointer === '' ? 'its root' : quoted(pointer.slice(1).replaceAll('/', '.'), 120);
}
