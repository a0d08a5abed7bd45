import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { inTime } from './in-time.js';
import type { Item } from './simulator.js';

/** A larger schema is not compiled: that takes seconds, and what it asks for is then not looked at. */
const SCHEMA_CHARS_MAX = 256 * 1024;

/** How long a schema may take to be compiled, and a value to be looked at. Some would take for ever, and all memory. */
const COMPILE_MS_MAX = 1_500;
const CHECK_MS_MAX = 250;

/** Faults told in one message. */
const FAULTS_MAX = 5;

/** What is wrong with a value, as a sentence without its full stop; null when the schema allows it, or takes too long. */
export type SchemaCheck = (value: unknown) => string | null;

const options: Options = {
  strict: false,
  allErrors: false,
  validateFormats: true,
  logger: false,
  addUsedSchema: false,
  // Else each reference is a copy of what it means: 22 KB with 100 of them took 35 s and 800 MB.
  inlineRefs: false,
};

/**
 * A check against a JSON Schema of draft 7, 2019-09 or 2020-12 (the default, as MCP says). Null when the schema cannot be
 * used: it is no schema, larger than 256 KB, takes longer than 1.5 s to compile, or refers to what is not in it.
 */
export function schemaCheck(schema: unknown): SchemaCheck | null {
  if (typeof schema !== 'object' || schema === null) return null;
  if (JSON.stringify(schema).length > SCHEMA_CHARS_MAX) return null;
  const validate = compiled(schema as Item);
  if (!validate) return null;
  return (value) => {
    const judged = inTime(CHECK_MS_MAX, () => validate(value));
    if (!judged || judged.value) return null;
    return (validate.errors ?? []).slice(0, FAULTS_MAX).map(faultText).join('; ') || 'does not match the schema';
  };
}

const dialects = { 'draft-07': Ajv, '2019-09': Ajv2019, '2020-12': Ajv2020 };
const instances = new Map<string, Ajv>();

function compiled(schema: Item): ValidateFunction | null {
  // Names of its own would be remembered, and two tools may use the same one.
  const { $schema: dialect, $id: _id, ...rest } = schema;
  const name = dialectOf(typeof dialect === 'string' ? dialect : '');
  const ajv = ajvOf(name);
  try {
    const validate = inTime(COMPILE_MS_MAX, () => ajv.compile(rest));
    // What was given up in the middle is in no state to go on.
    if (!validate) instances.delete(name);
    return validate && validate.value;
  } catch {
    return null;
  } finally {
    ajv.removeSchema(rest);
  }
}

function dialectOf(dialect: string): keyof typeof dialects {
  return /draft-0[4-7]/.test(dialect) ? 'draft-07' : dialect.includes('2019-09') ? '2019-09' : '2020-12';
}

/** One for each dialect: making one takes 20 ms, since it compiles what it checks schemas with. */
function ajvOf(name: keyof typeof dialects): Ajv {
  const known = instances.get(name);
  if (known) return known;
  const ajv = new dialects[name](options);
  formats.default(ajv);
  instances.set(name, ajv);
  return ajv;
}

function faultText({ instancePath, message = 'is not allowed', keyword, params }: ErrorObject): string {
  const path = instancePath.slice(1).replaceAll('/', '.');
  const named = keyword === 'additionalProperties' ? ` (${String(params.additionalProperty)})` : '';
  const allowed = keyword === 'enum' ? ` (${(params.allowedValues as unknown[]).map(String).join(', ')})` : '';
  return `${path === '' ? '' : `${path} `}${message}${named}${allowed}`.slice(0, 500);
}
