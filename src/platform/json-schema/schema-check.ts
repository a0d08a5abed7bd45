import { createHash } from 'node:crypto';
import { createContext, Script } from 'node:vm';
import type { Ajv, ErrorObject, ValidateFunction } from 'ajv';
import { LRUCache } from 'lru-cache';
import type { JsonObject } from '../text/json.js';
import { createAjv, type Dialect } from './ajv.js';
import { withoutRefusedPatterns } from './patterns.js';

/** A larger schema is not compiled: that takes seconds. */
const SCHEMA_CHARS_MAX = 256 * 1024;

/** Longest time to compile a schema and to validate a value. Some schemas would take for ever, and all memory. */
const usualLimits = { compileMs: 1_500, validateMs: 250 };

/** Errors in one message. */
const ERRORS_MAX = 5;

const scope: { work?: () => unknown } = {};

const context = createContext(scope);

const start = new Script('work()');

/** The error of a value, as a sentence without full stop. Null if the schema allows it or its validation takes too long. */
export type SchemaCheck = (value: unknown) => string | null;

/** Compiled schemas at most: their number, and their characters of JSON. */
const CACHED_MAX = 2_000;
const CACHED_CHARS_MAX = 16 * 1024 * 1024;

/** Checks by the hash of their schema: equal schemas of many mocks are compiled once. */
const checks = new LRUCache<string, { check: SchemaCheck | null; chars: number }>({
  max: CACHED_MAX,
  maxSize: CACHED_CHARS_MAX,
  sizeCalculation: ({ chars }) => chars,
});

/**
 * A check against a JSON Schema of draft-07, 2019-09 or 2020-12 (the default, as MCP says). Null when the schema cannot be
 * used: it is no schema, larger than 256 KB, takes longer than 1.5 s to compile, or refers to another document. Patterns
 * that {@link withoutRefusedPatterns} refuses are not checked. A check that took too long once allows everything afterwards.
 */
export function schemaCheck(schema: unknown, limits = usualLimits): SchemaCheck | null {
  if (typeof schema !== 'object' || schema === null) return null;
  const text = JSON.stringify(schema);
  if (text.length > SCHEMA_CHARS_MAX) return null;
  const hash = createHash('sha256').update(text).digest('base64url');
  const known = checks.get(hash);
  if (known) return known.check;
  const check = newCheck(schema as JsonObject, limits);
  checks.set(hash, { check, chars: text.length });
  return check;
}

function newCheck(schema: JsonObject, limits: typeof usualLimits): SchemaCheck | null {
  const validate = compiled(schema, limits.compileMs);
  if (!validate) return null;
  let isSlow = false;
  return (value) => {
    if (isSlow) return null;
    const outcome = withTimeLimit(limits.validateMs, () => validate(value));
    isSlow = outcome === null;
    if (!outcome || outcome.value) return null;
    return (validate.errors ?? []).slice(0, ERRORS_MAX).map(errorText).join('; ') || 'does not match the schema';
  };
}

const instances = new Map<Dialect, Ajv>();

function compiled(schema: JsonObject, ms: number): ValidateFunction | null {
  // Ajv remembers ids, and two tools may use the same one.
  const { $schema, $id: _id, ...rest } = schema;
  const dialect = dialectOf(typeof $schema === 'string' ? $schema : '');
  const ajv = instances.get(dialect) ?? createAjv(dialect, true);
  instances.set(dialect, ajv);
  const used = withoutRefusedPatterns(rest);
  try {
    const validate = withTimeLimit(ms, () => ajv.compile(used));
    // An aborted compilation leaves the instance in an unknown state.
    if (!validate) instances.delete(dialect);
    return validate && validate.value;
  } catch {
    return null;
  } finally {
    ajv.removeSchema(used);
  }
}

function dialectOf(uri: string): Dialect {
  return /draft-0[4-7]/.test(uri) ? 'draft-07' : uri.includes('2019-09') ? '2019-09' : '2020-12';
}

function errorText({ instancePath, message = 'is not allowed', keyword, params }: ErrorObject): string {
  const path = instancePath.slice(1).replaceAll('/', '.');
  const named = keyword === 'additionalProperties' ? ` (${String(params.additionalProperty)})` : '';
  const allowed = keyword === 'enum' ? ` (${(params.allowedValues as unknown[]).map(String).join(', ')})` : '';
  return `${path === '' ? '' : `${path} `}${message}${named}${allowed}`.slice(0, 500);
}

/**
 * Runs synchronous work of unbounded length, such as a check against a tenant's schema, and aborts it after `ms`; the event
 * loop serves nothing else meanwhile. Costs about 80 µs. Aborted work runs no `finally`. Must not be nested: when two
 * limits end together, the inner one cancels the outer one's abort and the work never ends.
 *
 * @returns null when the work was aborted
 */
function withTimeLimit<T>(ms: number, work: () => T): { value: T } | null {
  scope.work = work;
  try {
    return { value: start.runInContext(context, { timeout: ms }) as T };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return null;
    throw error;
  } finally {
    scope.work = undefined;
  }
}
