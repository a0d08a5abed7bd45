import { isObject } from '../../../../platform/text/json.js';
import type { Item } from './simulator.js';

/** References followed one after another, and parts merged into one schema. */
const PARTS_MAX = 100;

/** A schema with its local references and `allOf` parts worked in. What is no schema allows anything. */
export function mergedSchema(schema: unknown, root: unknown): Item {
  return merge(schema, root, { left: PARTS_MAX });
}

function merge(given: unknown, root: unknown, budget: { left: number }): Item {
  budget.left -= 1;
  if (!isObject(given) || budget.left < 0) return {};
  const { $ref, allOf, ...own } = given;
  const parts = [
    ...(typeof $ref === 'string' ? [merge(referred($ref, root), root, budget)] : []),
    ...(Array.isArray(allOf) ? allOf.map((part: unknown) => merge(part, root, budget)) : []),
  ];
  return [own, ...parts].reduce(both, {});
}

/** The schema at `#/$defs/…`, `#` or the end of any JSON pointer (RFC 6901); undefined when there is none. */
export function referred(reference: string, root: unknown): unknown {
  if (!reference.startsWith('#')) return undefined;
  let at: unknown = root;
  for (const part of reference.slice(1).split('/').slice(1)) {
    const name = decoded(part).replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Item)[name];
  }
  return at;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** What two schemas allow together, as far as keywords can be put together one by one. */
function both(one: Item, other: Item): Item {
  const merged: Item = { ...one };
  for (const [keyword, value] of Object.entries(other)) {
    merged[keyword] = keyword in one ? together(keyword, one[keyword], value) : value;
  }
  return merged;
}

function together(keyword: string, one: unknown, other: unknown): unknown {
  if (keyword === 'properties' && isObject(one) && isObject(other)) return properties(one, other);
  if (keyword === 'required' && Array.isArray(one) && Array.isArray(other))
    return [...new Set<unknown>([...(one as unknown[]), ...(other as unknown[])])];
  if (keyword === 'enum' && Array.isArray(one) && Array.isArray(other)) {
    return one.filter((choice) => other.some((same) => JSON.stringify(same) === JSON.stringify(choice)));
  }
  if (keyword === 'type') return types(one, other);
  if (keyword === 'additionalProperties') return one === false || other === false ? false : other;
  if (typeof one === 'number' && typeof other === 'number') {
    return /^(max|exclusiveMax)/.test(keyword) ? Math.min(one, other) : Math.max(one, other);
  }
  return one;
}

function properties(one: Item, other: Item): Item {
  const merged: Item = { ...one };
  for (const [name, schema] of Object.entries(other)) {
    merged[name] = name in one ? { allOf: [one[name], schema] } : schema;
  }
  return merged;
}

function types(one: unknown, other: unknown): unknown {
  const [first, second] = [one, other].map((value) => (Array.isArray(value) ? (value as unknown[]) : [value]));
  const shared = (first ?? []).filter(
    (type) => second?.includes(type) || (type === 'integer' && second?.includes('number')),
  );
  return shared.length === 0 && second?.includes('integer') && first?.includes('number') ? 'integer' : shared;
}

/** The alternatives of a schema, each with what applies to all of them; empty when it has none. At most 100. */
export function variantsOf(schema: Item, root: unknown): Item[] {
  return variants(schema, root, { left: PARTS_MAX });
}

function variants(schema: Item, root: unknown, budget: { left: number }): Item[] {
  const { oneOf, anyOf, ...rest } = schema;
  const choices = Array.isArray(oneOf) ? oneOf : anyOf;
  if (!Array.isArray(choices)) return [];
  const outer = Array.isArray(oneOf) && Array.isArray(anyOf) ? { ...rest, anyOf } : rest;
  return choices.flatMap((choice: unknown) => {
    budget.left -= 1;
    if (choice === false || budget.left < 0) return [];
    const merged = mergedSchema({ allOf: [choice, outer] }, root);
    const inner = 'oneOf' in merged || 'anyOf' in merged ? variants(merged, root, budget) : [];
    return inner.length > 0 ? inner : [merged];
  });
}

/** The texts a schema allows, where it lists what it allows; else none. */
export function choicesOf(schema: Item): string[] {
  const choices = Array.isArray(schema.enum) ? (schema.enum as unknown[]) : [];
  return choices.filter((one) => typeof one === 'string');
}
