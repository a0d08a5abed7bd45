import { referenced } from '../../../../platform/json-schema/references.js';
import { isObject, type JsonObject } from '../../../../platform/text/json.js';

/** Counts followed references and merged parts of one schema. */
const PARTS_MAX = 100;

/** Merges local references and `allOf` parts. A value that is not a schema becomes `{}`. */
export function mergedSchema(schema: unknown, root: unknown, budget = { left: PARTS_MAX }): JsonObject {
  budget.left -= 1;
  if (!isObject(schema) || budget.left < 0) return {};
  const { $ref, allOf, ...rest } = schema;
  const parts = [
    ...(typeof $ref === 'string' ? [mergedSchema(referenced($ref, root), root, budget)] : []),
    ...(Array.isArray(allOf) ? allOf.map((part: unknown) => mergedSchema(part, root, budget)) : []),
  ];
  return [rest, ...parts].reduce(mergeSchemas, {});
}

function mergeSchemas(base: JsonObject, other: JsonObject): JsonObject {
  const merged: JsonObject = { ...base };
  for (const [keyword, value] of Object.entries(other)) {
    merged[keyword] = keyword in base ? mergeKeyword(keyword, base[keyword], value) : value;
  }
  return merged;
}

function mergeKeyword(keyword: string, base: unknown, other: unknown): unknown {
  if (keyword === 'properties' && isObject(base) && isObject(other)) return properties(base, other);
  if (keyword === 'required' && Array.isArray(base) && Array.isArray(other))
    return [...new Set<unknown>([...(base as unknown[]), ...(other as unknown[])])];
  if (keyword === 'enum' && Array.isArray(base) && Array.isArray(other)) {
    return base.filter((choice) => other.some((same) => JSON.stringify(same) === JSON.stringify(choice)));
  }
  if (keyword === 'type') {
    const [first, second] = [base, other].map((value) => (Array.isArray(value) ? (value as unknown[]) : [value]));
    const shared = (first ?? []).filter(
      (type) => second?.includes(type) || (type === 'integer' && second?.includes('number')),
    );
    return shared.length === 0 && second?.includes('integer') && first?.includes('number') ? 'integer' : shared;
  }
  if (keyword === 'additionalProperties') return base === false || other === false ? false : other;
  if (typeof base === 'number' && typeof other === 'number') {
    return /^(max|exclusiveMax)/.test(keyword) ? Math.min(base, other) : Math.max(base, other);
  }
  return base;
}

function properties(base: JsonObject, other: JsonObject): JsonObject {
  const merged: JsonObject = { ...base };
  for (const [name, schema] of Object.entries(other)) {
    merged[name] = name in base ? { allOf: [base[name], schema] } : schema;
  }
  return merged;
}

/** Returns at most 100 alternatives, each merged with the keywords around them; empty without any. */
export function variantsOf(schema: JsonObject, root: unknown, budget = { left: PARTS_MAX }): JsonObject[] {
  const { oneOf, anyOf, ...rest } = schema;
  const choices = Array.isArray(oneOf) ? oneOf : anyOf;
  if (!Array.isArray(choices)) return [];
  const outer = Array.isArray(oneOf) && Array.isArray(anyOf) ? { ...rest, anyOf } : rest;
  return choices.flatMap((choice: unknown) => {
    budget.left -= 1;
    if (choice === false || budget.left < 0) return [];
    const merged = mergedSchema({ allOf: [choice, outer] }, root);
    const inner = 'oneOf' in merged || 'anyOf' in merged ? variantsOf(merged, root, budget) : [];
    return inner.length > 0 ? inner : [merged];
  });
}
