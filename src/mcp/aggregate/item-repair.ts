/**
 * Items of a connection in a list of all connections. Official clients refuse a whole list for one item that does not match
 * the schema of MCP, so that a fault of one server would hide the tools of all: an item is repaired by dropping the members
 * that these clients refuse, or left out with a reason. Members without fault keep their bytes. Pure functions.
 *
 * A tool whose `inputSchema` is missing or no schema of an object takes any object. A boolean property schema `true`, which
 * these clients refuse, becomes `{}`, which means the same.
 */
import type * as SdkTypes from '@modelcontextprotocol/sdk/types.js';
import { lazyRequire } from '../../platform/lazy-require.js';
import { isWithinDepth } from '../../platform/text/json.js';
import { memberText, rewriteMembers, withMember } from '../protocol/json-edit.js';
import { elements, slice } from '../protocol/json-text.js';
import type { LeftOutItem, ListItem, ListKind } from '../protocol/list-pages.js';

const sdk = lazyRequire<typeof SdkTypes>('@modelcontextprotocol/sdk/types.js');

/** Schemas of the items, by the member of the result that contains them. */
const schemas = {
  tools: () => sdk().ToolSchema,
  prompts: () => sdk().PromptSchema,
  resources: () => sdk().ResourceSchema,
  resourceTemplates: () => sdk().ResourceTemplateSchema,
};

/** Nested levels of an item; a text with more stops the readers of some clients. */
const ITEM_DEPTH_MAX = 64;

/** Repairs of one item, after which it is left out. */
const REPAIRS_MAX = 32;

/** Items by the list they come from: a list is repaired once while it is cached. */
const known = new WeakMap<readonly ListItem[], { items: ListItem[]; leftOut: LeftOutItem[] }>();

/** The items of one connection that clients accept, and those that they would not. */
export function repairedItems(
  kind: ListKind,
  from: readonly ListItem[],
): { items: ListItem[]; leftOut: LeftOutItem[] } {
  const cached = known.get(from);
  if (cached) return cached;
  const leftOut: LeftOutItem[] = [];
  const items = from.flatMap((item) => {
    const { name } = item;
    if (!isWithinDepth(JSON.parse(item.text), ITEM_DEPTH_MAX)) {
      leftOut.push({ name, reason: `it is nested deeper than ${ITEM_DEPTH_MAX} levels` });
      return [];
    }
    const text = repaired(kind, item.text);
    if (text !== null) return [text === item.text ? item : { name, text }];
    leftOut.push({ name, reason: 'MCP clients refuse it: it does not match the schema of MCP' });
    return [];
  });
  const result = { items, leftOut };
  known.set(from, result);
  return result;
}

/** The item as clients accept it; null if dropping members does not help. */
function repaired({ member }: ListKind, text: string): string | null {
  const dropped = new Set<string>();
  let item = text;
  const schema = schemas[member as keyof typeof schemas]?.();
  if (!schema) return text;
  for (let repairs = 0; repairs <= REPAIRS_MAX; repairs += 1) {
    const issue = schema.safeParse(JSON.parse(item)).error?.issues[0];
    if (!issue) return item;
    let { path } = issue;
    if (path[0] === 'inputSchema' && (path.length === 1 || path[1] === 'type')) {
      item = withMember(item, 'inputSchema', objectSchema(memberText(item, 'inputSchema')));
      continue;
    }
    // A member that is still refused after it was dropped is required: its parent goes.
    while (dropped.has(path.join('.'))) path = path.slice(0, -1);
    if (path.length === 0) return null;
    dropped.add(path.join('.'));
    item = without(item, path);
  }
  return null;
}

/** A schema of an object: this one if it only lacks its type. */
function objectSchema(schema: string | undefined): string {
  const lacksType = schema?.startsWith('{') === true && (memberText(schema, 'type') ?? 'null') === 'null';
  return lacksType ? withMember(schema, 'type', '"object"') : '{"type":"object"}';
}

/** JSON text without the value at `path`; a property schema `true` becomes `{}`. */
function without(text: string, [name, ...rest]: PropertyKey[], parent?: PropertyKey): string {
  const next = (value: string) => {
    if (rest.length === 0) return value === 'true' && parent === 'properties' ? '{}' : null;
    return /^[{[]/.test(value) ? without(value, rest, name) : null;
  };
  if (text.startsWith('{')) return rewriteMembers(text, (member, value) => (member === name ? next(value) : value));
  const kept = elements(text).flatMap((span, at) => {
    const value = slice(text, span);
    return at === name ? (next(value) ?? []) : value;
  });
  return `[${kept.join(',')}]`;
}
