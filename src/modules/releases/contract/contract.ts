import { createHash } from 'node:crypto';
import { canonicalJson, isObject, type JsonObject } from '../../../platform/text/json.js';
import type { ServerSnapshot } from '../../servers/server.types.js';
import { canonicalSchema } from './canonical-schema.js';

/** The compared members of tools, resources or prompts, by name. */
export type Items = Map<string, JsonObject>;

/** Everything that callers of a release depend on, in canonical form. Null for an unknown list. */
export interface Contract {
  tools: Items | null;
  resources: Items | null;
  resourceTemplates: Items | null;
  prompts: Items | null;
}

/** The contract of a release. Icons and `_meta` are no part of it. */
export function contractOf({ tools, resources, resourceTemplates, prompts }: ServerSnapshot): Contract {
  return {
    tools: itemsOf(tools, 'name', ['title', 'description', 'inputSchema', 'outputSchema', 'annotations']),
    resources: itemsOf(resources, 'uri', ['name', 'title', 'description', 'mimeType']),
    resourceTemplates: itemsOf(resourceTemplates, 'uriTemplate', ['name', 'title', 'description', 'mimeType']),
    prompts: itemsOf(prompts, 'name', ['title', 'description', 'arguments']),
  };
}

/** SHA-256 in hex; equal for equal contracts. */
export function hashOf(contract: Contract): string {
  const lists = Object.entries(contract).map(([list, items]: [string, Items | null]) => [list, items && [...items]]);
  return createHash('sha256').update(canonicalJson(lists)).digest('hex');
}

function itemsOf(items: JsonObject[] | null, key: string, members: string[]): Items | null {
  if (!items) return null;
  const named = items.flatMap((item): [string, JsonObject][] => {
    const name = item[key];
    return typeof name === 'string' ? [[name, canonicalItem(item, members)]] : [];
  });
  return new Map(named.sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0)));
}

function canonicalItem(item: JsonObject, members: string[]): JsonObject {
  const known = members.filter((member) => item[member] !== undefined && item[member] !== null);
  return Object.fromEntries(known.map((member) => [member, canonicalMember(member, item[member])]));
}

function canonicalMember(member: string, value: unknown): unknown {
  if (member === 'inputSchema' || member === 'outputSchema') return canonicalSchema(value);
  if (member !== 'arguments' || !Array.isArray(value)) return value;
  return Object.fromEntries(
    value
      .filter(isObject)
      .map(({ name, description = '', required = false }) => [String(name), { description, required }]),
  );
}
