import { createHash } from 'node:crypto';
import { canonicalJson } from '../../../platform/text/json.js';
import { isObject } from '../../../platform/text/json.js';
import type { ServerSnapshot } from '../../servers/server.types.js';
import { canonicalSchema } from './canonical-schema.js';

type Item = Record<string, unknown>;

/** What is compared of a list, by the items' names. */
export type Items = Map<string, Item>;

/** What a release offers, in the one form that all ways to write it share. Lists are null when nothing is known of them. */
export interface Contract {
  tools: Items | null;
  resources: Items | null;
  resourceTemplates: Items | null;
  prompts: Items | null;
}

/** What of a release its callers and their models depend on. Icons and `_meta` are none of it. */
export function contractOf({ tools, resources, resourceTemplates, prompts }: ServerSnapshot): Contract {
  return {
    tools: itemsOf(tools, 'name', ['title', 'description', 'inputSchema', 'outputSchema', 'annotations']),
    resources: itemsOf(resources, 'uri', ['name', 'title', 'description', 'mimeType']),
    resourceTemplates: itemsOf(resourceTemplates, 'uriTemplate', ['name', 'title', 'description', 'mimeType']),
    prompts: itemsOf(prompts, 'name', ['title', 'description', 'arguments']),
  };
}

/** Equal for releases that offer the same: SHA-256 in hex. */
export function hashOf(contract: Contract): string {
  const lists = Object.entries(contract).map(([list, items]: [string, Items | null]) => [list, items && [...items]]);
  return createHash('sha256').update(canonicalJson(lists)).digest('hex');
}

function itemsOf(items: Item[] | null, key: string, members: string[]): Items | null {
  if (!items) return null;
  const named = items.flatMap((item): [string, Item][] => {
    const name = item[key];
    return typeof name === 'string' ? [[name, canonicalItem(item, members)]] : [];
  });
  return new Map(named.sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0)));
}

function canonicalItem(item: Item, members: string[]): Item {
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
