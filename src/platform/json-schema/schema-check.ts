import { createHash } from 'node:crypto';
import { createContext, Script } from 'node:vm';
import type { Ajv, ValidateFunction } from 'ajv';
import { LRUCache } from 'lru-cache';
import type { JsonObject } from '../text/json.js';
import { createAjv, type Dialect } from './ajv.js';
import { withoutRefusedPatterns } from './patterns.js';

/** Maximum size of a schema: compiling a larger one would take seconds. */
const SCHEMA_CHARS_MAX = 256 * 1024;

/**
 * Longest time to compile a schema and to validate a value: shorter than that of a thread's job, since a stopped thread
 * loses what it compiled. Some schemas would never finish, or take all memory.
 */
const usualLimits = { compileMs: 1_000, validateMs: 250 };

const ERRORS_MAX = 5;

const scope: { work?: () => unknown } = {};

const context = createContext(scope);

const start = new Script('work()');

/** A message without full stop. Null if the schema allows the value or its validation takes too long. */
export type SchemaCheck = (value: unknown) => string | null;

/** Maximum size of cached schemas in characters of JSON. Each schema takes about 8 K in addition. */
const CACHED_CHARS_MAX = 32 * 1024 * 1024;

/**
 * Compiles a schema of draft-07, 2019-09 or 2020-12 (MCP's default). Returns null when the schema cannot be used: it is not a schema, larger than
 * 256 KB, takes longer than 1 s to compile, or refers to another document. Patterns that {@link withoutRefusedPatterns}
 * removes are not checked. A check that takes too long twice in a row allows everything afterwards. Schemas of tenants
 * are compiled in `platform/threads`: it blocks.
 */
export function schemaCheck(schema: unknown, limits = usualLimits): SchemaCheck | null {
  const validate = schemaValidator(schema, limits);
  if (typeof validate === 'string') return null;
  return (value) => {
    const faults = validate(value);
    if (!faults || faults.length === 0) return null;
    return faults
      .map(({ path, message }) => [path.join('.'), message].filter(Boolean).join(' ').slice(0, 500))
      .join('; ');
  };
}

/** The names lead to the invalid part; the predicate is like `must be <= 5`. */
export interface SchemaFault {
  path: string[];
  message: string;
}

/** Returns at most five errors; null when the validation takes too long, now or once before. */
type SchemaValidator = (value: unknown) => SchemaFault[] | null;

/**
 * The keys are hashes of schemas: equal schemas are compiled once. A string instead of a validator is the reason why
 * the schema is not used.
 */
const validators = new LRUCache<string, { validator: SchemaValidator | string; chars: number }>({
  maxSize: CACHED_CHARS_MAX,
  sizeCalculation: ({ chars }) => chars + 8 * 1024,
});

/** Schemas as in {@link schemaCheck}. A string is the reason why the schema cannot be used. */
export function schemaValidator(schema: unknown, limits = usualLimits): string | SchemaValidator {
  if (typeof schema !== 'object' || schema === null) return 'no schema';
  const text = JSON.stringify(schema);
  if (text.length > SCHEMA_CHARS_MAX) return `larger than ${SCHEMA_CHARS_MAX / 1024} KB`;
  const hash = createHash('sha256').update(text).digest('base64url');
  const cachedValidator = validators.get(hash);
  if (cachedValidator) return cachedValidator.validator;
  const validator = newValidator(schema as JsonObject, limits);
  validators.set(hash, { validator, chars: text.length });
  return validator;
}

function newValidator(schema: JsonObject, limits: typeof usualLimits): string | SchemaValidator {
  const validate = compiled(schema, limits.compileMs);
  if (typeof validate === 'string') return validate;
  let isSlow = false;
  return (value) => {
    if (isSlow) return null;
    const attempt = () => withTimeLimit(limits.validateMs, () => validate(value));
    // A second attempt distinguishes a slow check from a machine that stalled.
    const outcome = attempt() ?? attempt();
    isSlow = outcome === null;
    if (!outcome) return null;
    if (outcome.value) return [];
    const faults = (validate.errors ?? [])
      .slice(0, ERRORS_MAX)
      .map(({ instancePath, message = 'is not allowed', keyword, params }): SchemaFault => {
        const names = instancePath === '' ? [] : instancePath.slice(1).split('/');
        const extra = keyword === 'additionalProperties' ? ` (${String(params.additionalProperty)})` : '';
        const allowed = keyword === 'enum' ? ` (${(params.allowedValues as unknown[]).map(String).join(', ')})` : '';
        return {
          path: names.map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~')),
          message: `${message}${extra}${allowed}`.slice(0, 500),
        };
      });
    return faults.length > 0 ? faults : [{ path: [], message: 'does not match the schema' }];
  };
}

export function isKnownFormat(format: string): boolean {
  return Object.hasOwn(validatorFor('2020-12').formats, format);
}

const instances = new Map<Dialect, Ajv>();

/** Returns a validator of a dialect, which takes some ten milliseconds to create. */
export function validatorFor(dialect: Dialect): Ajv {
  const cached = instances.get(dialect);
  if (cached) return cached;
  const ajv = createAjv(dialect, true);
  // The time of the meta-schema must not count for a tenant's schema.
  void ajv.validateSchema({});
  instances.set(dialect, ajv);
  return ajv;
}

function compiled(schema: JsonObject, ms: number): ValidateFunction | string {
  // Ajv remembers ids, and two tools can use the same one.
  const { $schema, $id: _id, ...rest } = schema;
  const uri = typeof $schema === 'string' ? $schema : '';
  const dialect = /draft-0[4-7]/.test(uri) ? 'draft-07' : uri.includes('2019-09') ? '2019-09' : '2020-12';
  const ajv = validatorFor(dialect);
  const used = withoutRefusedPatterns(rest);
  try {
    const validate = withTimeLimit(ms, () => ajv.compile(used));
    // An aborted compilation leaves the instance in an unknown state.
    if (!validate) instances.delete(dialect);
    return validate ? validate.value : 'compiling it takes too long';
  } catch (error) {
    return (error as Error).message;
  } finally {
    ajv.removeSchema(used);
  }
}

/**
 * Runs synchronous work of unbounded length, such as a check against a tenant's schema, and aborts it after `ms`; the
 * event loop serves nothing else meanwhile. Costs about 80 µs. Aborted work runs no `finally`. Must not be nested: when
 * two limits expire together, the inner one cancels the outer one's abort and the work never stops.
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
