/** The only import is free of dependencies: esbuild bundles this file into workers (`hosting/worker/bootstrap`). */
import { isObject, type JsonObject } from '../text/json.js';

/** Maximum length of a resolved reference: each visit splits the complete string. */
const REFERENCE_CHARS_MAX = 2_000;

/** Length above which a chain of references is treated as a cycle. */
const CHAIN_MAX = 16;

/** Keywords of schemas whose names the author chooses. */
export const SCHEMA_MAPS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependencies',
]);

/** Returns the value at a pointer (RFC 6901) such as `/$defs/name`; '' is the document itself. Undefined without a value. */
export function atPointer(document: unknown, pointer: string): unknown {
  if (pointer !== '' && !pointer.startsWith('/')) return undefined;
  let value = document;
  for (const step of pointer.split('/').slice(1)) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as JsonObject)[name];
  }
  return value;
}

/** Decodes a fragment; unchanged when the percent-encoding is broken. */
export function decodeFragment(fragment: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
}

/** Returns the schema at `#` or `#/$defs/name`; undefined for anchors, other documents and missing schemas. */
export function referenced(reference: string, root: unknown): unknown {
  if (!reference.startsWith('#') || reference.length > REFERENCE_CHARS_MAX) return undefined;
  return atPointer(root, decodeFragment(reference.slice(1)));
}

/**
 * Returns the schema with its referenced schema in place of `$ref`; keywords next to `$ref` override those of the target. An
 * unresolvable reference remains, as does the last one of a cycle. `false` becomes `{not: {}}`; every other value that
 * is not a schema becomes `{}`, which allows anything.
 */
export function resolveRef(schema: unknown, root: unknown): JsonObject {
  let here = schema;
  let beside: JsonObject = {};
  for (let count = 0; isObject(here) && typeof here.$ref === 'string' && count < CHAIN_MAX; count += 1) {
    const { $ref, ...rest } = here;
    const target = referenced($ref, root);
    if (target === undefined) break;
    beside = { ...rest, ...beside };
    here = target;
  }
  if (isObject(here)) return { ...here, ...beside };
  return here === false ? { not: {} } : beside;
}
