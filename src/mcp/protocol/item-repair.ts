/**
 * Official clients reject a whole list for one item that does not match the schema of MCP: an item is repaired by
 * dropping the members that these clients reject, or left out with a reason. Valid members keep their bytes.
 *
 * A tool whose `inputSchema` is missing, or not the schema of an object, takes any object. A boolean property schema
 * `true`, which these clients reject, becomes `{}`, which means the same.
 */
import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type * as SdkTypes from '@modelcontextprotocol/sdk/types.js';
import { lazyRequire } from '../../platform/lazy-require.js';
import { isObject, isWithinDepth } from '../../platform/text/json.js';
import { memberText, rewriteMembers, withMember } from './json-edit.js';
import type { McpReply } from './channel.js';
import { elements, members, slice } from './json-text.js';
import { withItems, type LeftOutItem, type ListItem, type ListKind } from './list-pages.js';
import type { Era } from './protocol.js';

const sdk = lazyRequire<typeof SdkTypes>('@modelcontextprotocol/sdk/types.js');

const schemas = {
  tools: () => sdk().ToolSchema,
  prompts: () => sdk().PromptSchema,
  resources: () => sdk().ResourceSchema,
  resourceTemplates: () => sdk().ResourceTemplateSchema,
};

/** Maximum nesting of an item: some clients cannot read more levels. */
const ITEM_DEPTH_MAX = 64;

/** Maximum number of values in an item, counted as commas; checking more takes seconds. */
const ITEM_VALUES_MAX = 10_000;

/** Number of errors above which an item is left out. */
const ERRORS_MAX = 64;

/** Maximum number of checks of an item: the result of a removal can be invalid in turn. */
const ROUNDS_MAX = 4;

/** A connection's invalid list is repaired again after this time, unless its content is unchanged. */
const REPAIR_EVERY_MS = 30_000;

/** Milliseconds of uninterrupted work, after which other work gets a turn. */
const TURN_MS = 10;

const KEPT_CHARS_MAX = 64 * 1024 * 1024;

const SOUND_MAX = 10_000;

interface Repaired {
  items: ListItem[];
  leftOut: LeftOutItem[];
}

const REFUSED = 'MCP clients refuse it: it does not match the schema of MCP';

/** Repaired lists: each list is repaired once while it is cached. */
const repairCache = new WeakMap<readonly ListItem[], Promise<Repaired>>();

const last = new LRUCache<string, { hash: string; until: number; size: number; repaired: Promise<Repaired> }>({
  maxSize: KEPT_CHARS_MAX,
  sizeCalculation: ({ size }) => size,
});

/**
 * Repairs a list once; after an invalid one, a changed list of the same names replaces it after 30 s.
 *
 * @param connection its number, which is unique over all namespaces
 */
export function repairedItems(kind: ListKind, from: readonly ListItem[], connection: string): Promise<Repaired> {
  const cached = repairCache.get(from) ?? repairedList(kind, from, connection);
  repairCache.set(from, cached);
  return cached;
}

function repairedList(kind: ListKind, from: readonly ListItem[], connection: string): Promise<Repaired> {
  const hashed = createHash('sha256');
  const names = createHash('sha256');
  let size = 1;
  for (const { name, text } of from) {
    names.update(JSON.stringify(name));
    hashed.update(text).update('\n');
    size += text.length;
  }
  // Callers can have different lists of one connection.
  const key = `${kind.member} ${connection} ${names.digest('base64')}`;
  const hash = hashed.digest('base64');
  const before = last.get(key);
  if (before && (before.hash === hash || Date.now() < before.until)) return before.repaired;
  const entry = { hash, until: Infinity, size, repaired: repairedInTurns(kind, from) };
  last.set(key, entry);
  entry.repaired.then(
    ({ items }) =>
      (entry.until =
        items.every((item, at) => item === from[at]) && items.length === from.length
          ? 0
          : Date.now() + REPAIR_EVERY_MS),
    () => last.delete(key),
  );
  return entry.repaired;
}

const sound = new LRUCache<string, true>({ max: SOUND_MAX });

/** Repairs a reply: a valid reply is unchanged; otherwise `_meta` names the omitted items. */
export async function repairedReply(kind: ListKind, reply: McpReply): Promise<McpReply> {
  const result = reply.result && slice(reply.text, reply.result);
  const list = result?.startsWith('{') ? memberText(result, kind.member) : undefined;
  if (!list?.startsWith('[')) return reply;
  const hash = createHash('sha256').update(`${kind.member} ${reply.era}`).update(list).digest('base64');
  if (sound.has(hash)) return reply;
  const from = elements(list).map((span) => ({ name: '', text: slice(list, span) }));
  const { items, leftOut } = await repairedInTurns(kind, from, (each, item) => {
    if (hasMoreValues(item.text)) return item;
    const usable = repairItem(each, item.text, reply.era);
    if (usable !== null) return usable === item.text ? item : { name: '', text: usable };
    const name = (JSON.parse(item.text) as Record<string, unknown> | null)?.[kind.id];
    return { name: typeof name === 'string' ? name : null, reason: REFUSED };
  });
  if (leftOut.length === 0 && items.every((item, at) => item === from[at])) {
    sound.set(hash, true);
    return reply;
  }
  const repaired = items.map((item) => item.text);
  const text = withItems(reply.text, kind.member, repaired, leftOut);
  const parts = members(text);
  return { ...reply, text, id: parts.get('id') ?? null, result: parts.get('result') ?? null };
}

async function repairedInTurns(
  kind: ListKind,
  from: readonly ListItem[],
  repair: typeof repairedItem = repairedItem,
): Promise<Repaired> {
  const result: Repaired = { items: [], leftOut: [] };
  let began = performance.now();
  for (const item of from) {
    const checked = repair(kind, item);
    if ('reason' in checked) result.leftOut.push(checked);
    else result.items.push(checked);
    if (performance.now() - began < TURN_MS) continue;
    await setImmediate();
    began = performance.now();
  }
  return result;
}

export function repairedItem(kind: ListKind, item: ListItem): ListItem | LeftOutItem {
  const { name, text } = item;
  if (hasMoreValues(text)) return { name, reason: `it has more than ${ITEM_VALUES_MAX} values` };
  if (!isWithinDepth(JSON.parse(text), ITEM_DEPTH_MAX)) {
    return { name, reason: `it is nested deeper than ${ITEM_DEPTH_MAX} levels` };
  }
  const usable = repairItem(kind, text);
  if (usable === null) return { name, reason: REFUSED };
  return usable === text ? item : { name, text: usable };
}

function hasMoreValues(text: string): boolean {
  let count = 0;
  for (let at = text.indexOf(','); at >= 0 && count <= ITEM_VALUES_MAX; at = text.indexOf(',', at + 1)) count += 1;
  return count > ITEM_VALUES_MAX;
}

/** Returns the item as clients accept it; null if it has too many errors or dropping members does not help. */
function repairItem({ member }: ListKind, text: string, era: Era = 'legacy'): string | null {
  const dropped = new Set<string>();
  let item = text;
  const schema = schemas[member as keyof typeof schemas]?.();
  if (!schema) return text;
  for (let round = 0; round <= ROUNDS_MAX; round += 1) {
    const value = JSON.parse(item) as { outputSchema?: unknown } | null;
    // Any schema is allowed since 2026-07-28; clients of earlier revisions get a converted one.
    const isAllowed = ([name]: PropertyKey[]) =>
      era === 'modern' && name === 'outputSchema' && isObject(value?.outputSchema);
    const issues = (schema.safeParse(value).error?.issues ?? []).filter(({ path }) => !isAllowed(path));
    if (issues.length === 0) return item;
    if (issues.length > ERRORS_MAX) return null;
    const droppedBefore = new Set(dropped);
    // In reverse order: indexes before a removed element stay the same.
    for (let { path } of issues.reverse()) {
      if (path[0] === 'inputSchema' && (path.length === 1 || path[1] === 'type')) {
        item = withMember(item, 'inputSchema', objectSchema(memberText(item, 'inputSchema')));
        continue;
      }
      // A member that is still invalid after it was dropped is required: its parent is dropped.
      while (droppedBefore.has(path.join('.'))) path = path.slice(0, -1);
      if (path.length === 0) return null;
      dropped.add(path.join('.'));
      item = removePath(item, path);
    }
  }
  return null;
}

/** Returns the given schema with its type, if it lacks nothing else. */
function objectSchema(schema: string | undefined): string {
  const lacksType = schema?.startsWith('{') === true && (memberText(schema, 'type') ?? 'null') === 'null';
  return lacksType ? withMember(schema, 'type', '"object"') : '{"type":"object"}';
}

/** Removes the member at a path; a property schema `true` becomes `{}` instead. */
function removePath(text: string, [name, ...rest]: PropertyKey[], parent?: PropertyKey): string {
  const next = (value: string) => {
    if (rest.length === 0) return value === 'true' && parent === 'properties' ? '{}' : null;
    return /^[{[]/.test(value) ? removePath(value, rest, name) : null;
  };
  if (text.startsWith('{')) return rewriteMembers(text, (member, value) => (member === name ? next(value) : value));
  const items = elements(text).flatMap((span, at) => {
    const value = slice(text, span);
    return at === name ? (next(value) ?? []) : value;
  });
  return `[${items.join(',')}]`;
}
