import type { AnySchemaObject, ValidateFunction } from 'ajv';
import { createAjv, metaSchemaIds, type Dialect } from '../../../platform/json-schema/ajv.js';
import { atPointer, decodeFragment, SCHEMA_MAPS } from '../../../platform/json-schema/references.js';
import { isObject, type JsonObject } from '../../../platform/text/json.js';
import { quote, visible } from '../../../platform/text/quoted.js';

/** Maximum size of a schema: every client adds it to its model's context, so a larger one is a mistake or an attack. */
const SCHEMA_BYTES_MAX = 256 * 1024;

/** Maximum number of issues, enough for the author to find the others. */
const ISSUES_MAX = 3;

export interface SchemaIssue {
  rule: 'invalid-schema' | 'schema-too-large' | 'remote-reference';
  /** Message that follows the schema's name, without the period. */
  text: string;
}

/**
 * The keys are values of `$schema` without scheme and final `#`, both of which servers write in either way. Draft-06 is
 * a subset of draft-07.
 */
const dialects: Record<string, Dialect> = {
  '//json-schema.org/draft/2020-12/schema': '2020-12',
  '//json-schema.org/draft/2019-09/schema': '2019-09',
  '//json-schema.org/draft-07/schema': 'draft-07',
  '//json-schema.org/draft-06/schema': 'draft-07',
};

const REFERENCES = ['$ref', '$dynamicRef', '$recursiveRef'];

/** Keywords of all dialects whose value is a schema or a list of schemas. */
const SCHEMA_KEYWORDS: ReadonlySet<string> = new Set([
  ...['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else', 'contentSchema', 'propertyNames'],
  ...['items', 'prefixItems', 'additionalItems', 'unevaluatedItems', 'contains'],
  ...['additionalProperties', 'unevaluatedProperties'],
]);

/** Compiled meta-schemas. Compiling takes some ten milliseconds, so it happens on first use. */
const metaSchemaOf = new Map<Dialect, ValidateFunction>();

/**
 * Returns at most three issues. The schema must be valid in its dialect (2020-12 unless `$schema` names another;
 * without `$schema`, draft-07 is accepted too, as older servers write it), its references must resolve inside it, and
 * its patterns must be regular expressions. Nothing of it is compiled or executed. Recursive: the caller limits the
 * depth of `schema`.
 */
export function schemaIssues(schema: unknown): SchemaIssue[] {
  if (!isObject(schema)) return [invalid('is not an object')];
  const bytes = Buffer.byteLength(JSON.stringify(schema));
  if (bytes > SCHEMA_BYTES_MAX) {
    const text = `has ${Math.ceil(bytes / 1024)} KB, and every client puts it into its model's context: make it smaller than ${SCHEMA_BYTES_MAX / 1024} KB`;
    return [{ rule: 'schema-too-large', text }];
  }
  const issues = dialectIssues(schema);
  return [...issues, ...new SchemaWalk(schema).issues()].slice(0, ISSUES_MAX);
}

function dialectIssues(schema: AnySchemaObject): SchemaIssue[] {
  const { $schema } = schema as { $schema?: unknown };
  if ($schema === undefined) {
    const issue = metaSchemaIssue(schema, '2020-12');
    return issue === null || metaSchemaIssue(schema, 'draft-07') === null ? [] : [issue];
  }
  const dialect = typeof $schema === 'string' ? dialects[$schema.replace(/^https?:|#$/g, '')] : undefined;
  if (dialect === undefined) {
    const label = typeof $schema === 'string' ? quote($schema) : 'something that is not text';
    return [invalid(`declares a dialect clients do not know, ${label}: use JSON Schema 2020-12, 2019-09 or draft-07`)];
  }
  const issue = metaSchemaIssue(schema, dialect);
  return issue === null ? [] : [issue];
}

function metaSchemaIssue(schema: AnySchemaObject, dialect: Dialect): SchemaIssue | null {
  let validate = metaSchemaOf.get(dialect);
  if (!validate) {
    validate = createAjv(dialect, false).getSchema(metaSchemaIds[dialect]) as ValidateFunction;
    metaSchemaOf.set(dialect, validate);
  }
  if (validate(schema)) return null;
  const { instancePath = '', message = 'is not allowed' } = validate.errors?.[0] ?? {};
  return invalid(`is not valid JSON Schema (${dialect}): ${placeOf(instancePath)} ${visible(message, 200)}`);
}

/** Visits schemas: under keywords that contain them, and where references point. */
class SchemaWalk {
  private readonly reported: SchemaIssue[] = [];
  private readonly visited = new Set<object>();
  private readonly ids = new Set<string>();
  private readonly anchors = new Set<string>();
  private readonly outside: SchemaIssue[] = [];
  private readonly references: { text: string; resource: object; place: string }[] = [];

  constructor(private readonly root: JsonObject) {}

  issues(): SchemaIssue[] {
    this.walk(this.root, this.root, '');
    // The target of a reference is a schema, whatever member contains it; visiting it can find more references.
    for (let at = 0; at < this.references.length && this.reported.length < ISSUES_MAX; at += 1) this.follow(at);
    return this.references.length === 0 ? this.reported : [...this.outside, ...this.reported];
  }

  private walk(from: JsonObject, resource: object, at: string): void {
    const stack: [schema: JsonObject, resource: object, place: string][] = [[from, resource, at]];
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      const [schema, around, place] = next;
      if (this.visited.has(schema)) continue;
      this.visited.add(schema);
      const base = this.noteIds(schema, around, place);
      for (const [name, value] of Object.entries(schema)) {
        const inner = `${place}/${name}`;
        if (REFERENCES.includes(name) && typeof value === 'string') {
          this.references.push({ text: value, resource: base, place: inner });
        } else if (name === 'pattern' && typeof value === 'string') this.requirePattern(value, inner);
        else if (name === 'patternProperties' && isObject(value)) {
          for (const pattern of Object.keys(value)) this.requirePattern(pattern, inner);
        }
        if (!SCHEMA_MAPS.has(name) && !SCHEMA_KEYWORDS.has(name)) continue;
        if (typeof value !== 'object' || value === null) continue;
        const parts = Array.isArray(value) || SCHEMA_MAPS.has(name) ? Object.entries(value) : [[null, value]];
        for (const [key, part] of parts as [string | null, unknown][]) {
          if (isObject(part)) stack.push([part, base, key === null ? inner : `${inner}/${key}`]);
        }
      }
    }
  }

  /** @returns the base of the references in a schema: itself with an `$id`, else `around` */
  private noteIds(schema: JsonObject, around: object, place: string): object {
    for (const name of ['$anchor', '$dynamicAnchor']) {
      if (typeof schema[name] === 'string') this.anchors.add(schema[name]);
    }
    const { $id } = schema;
    if (typeof $id !== 'string') return around;
    if ($id.startsWith('#')) {
      this.anchors.add($id.slice(1));
      return around;
    }
    // With a scheme, or with scheme or host left open: references against it, if any, point outside the schema.
    if (this.outside.length < ISSUES_MAX && /^[a-z][a-z0-9+.-]*:|^[\\/]/i.test($id)) {
      this.outside.push({
        rule: 'remote-reference',
        text: `names itself ${quote($id)} at ${placeOf(`${place}/$id`)}, an address outside of it, against which readers resolve what it refers to: leave $id out`,
      });
    }
    this.ids.add($id.replace(/#$/, ''));
    return schema;
  }

  private follow(at: number): void {
    const { text, resource, place } = this.references[at];
    const [base, fragment = ''] = text.split(/#(.*)/s, 2);
    if (base !== '' && !this.ids.has(base)) {
      return this.report({
        rule: 'remote-reference',
        text: `refers to ${quote(text)} at ${placeOf(place)}, which clients must not fetch: copy what it refers to into $defs`,
      });
    }
    // Another resource of the same document: only its presence is checked.
    if (base !== '' || fragment === '') return;
    const target = fragment.startsWith('/')
      ? atPointer(resource, decodeFragment(fragment))
      : this.anchors.has(decodeFragment(fragment));
    if (isObject(target)) this.walk(target, resource, fragment);
    else if (typeof target !== 'boolean' || (!target && !fragment.startsWith('/'))) {
      this.report(invalid(`refers to ${quote(text)} at ${placeOf(place)}, and nothing is there`));
    }
  }

  private requirePattern(pattern: string, place: string): void {
    if (isPattern(pattern, 'u') || isPattern(pattern, '')) return;
    this.report(
      invalid(`has a pattern that is not a regular expression of JavaScript, ${quote(pattern)} at ${placeOf(place)}`),
    );
  }

  private report(issue: SchemaIssue): void {
    if (this.reported.length < ISSUES_MAX) this.reported.push(issue);
  }
}

/** Returns true for a valid pattern, which V8 only parses here and compiles on the first match. */
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
  return pointer === '' ? 'its root' : quote(pointer.slice(1).replaceAll('/', '.'), 120);
}
