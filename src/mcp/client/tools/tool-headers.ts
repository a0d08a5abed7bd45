/**
 * Arguments that calls repeat in HTTP headers, so that proxies can route by them (MCP 2026-07-28, streamable HTTP,
 * custom headers).
 *
 * A tool marks an argument in its `inputSchema` with `x-mcp-header: Name`; its calls then carry `Mcp-Param-Name:
 * value`. Strings, booleans and numbers (of integers only safe ones) are sent; absent, null and structured values are
 * not.
 *
 * A mark breaks the rules outside of `properties` (in `items`, `anyOf` and the like), on another type, with a name that
 * is not an HTTP token, twice with one name, or above 1,000 in a tool. Such a tool is not offered.
 */
import { isObject } from '../../../platform/text/json.js';
import { members, slice } from '../../protocol/json-text.js';
import { LIST_ITEMS_MAX } from '../../protocol/list-pages.js';
import { headerValue } from '../../protocol/messages.js';

export interface HeaderParam {
  /** Path of the value in the arguments. */
  path: string[];
  header: string;
}

const MARK = 'x-mcp-header';

/** Maximum number of marks; HTTP servers accept far fewer headers in a request. */
const MARKS_MAX = 1_000;

/** A token of RFC 9110 section 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/;

const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);

/** Keywords whose subschemas are not reachable by `properties` alone and therefore must not declare a header. */
const ASIDE_SCHEMAS = [
  ...['items', 'prefixItems', 'contains', 'additionalProperties', 'unevaluatedProperties', 'unevaluatedItems'],
  ...['propertyNames', 'oneOf', 'anyOf', 'allOf', 'not', 'if', 'then', 'else'],
];
const ASIDE_MAPS = ['patternProperties', 'dependentSchemas', '$defs', 'definitions'];

/** Depth limit of inspected schemas; deeper nesting occurs only by mistake or malice. */
const SCHEMA_DEPTH_MAX = 64;

/** Returns the header parameters declared by a tool's input schema; null when it breaks a rule. */
export function headerParams(inputSchema: unknown): HeaderParam[] | null {
  const params = new Map<string, HeaderParam>();
  return visit(inputSchema, [], true, params, 0) ? [...params.values()] : null;
}

type Params = Map<string, HeaderParam>;

function visit(schema: unknown, path: string[], isReachable: boolean, params: Params, depth: number): boolean {
  if (!isObject(schema)) return true;
  if (depth > SCHEMA_DEPTH_MAX) return false;
  if (MARK in schema && !(isReachable && path.length > 0 && mark(schema, path, params))) return false;
  const check = (child: unknown, at: string[], reachable: boolean) => visit(child, at, reachable, params, depth + 1);
  if (isObject(schema.properties)) {
    for (const [name, child] of Object.entries(schema.properties)) {
      if (!check(child, [...path, name], isReachable)) return false;
    }
  }
  const aside = [
    ...ASIDE_SCHEMAS.flatMap((keyword) => schema[keyword] ?? []),
    ...ASIDE_MAPS.flatMap((keyword) => (isObject(schema[keyword]) ? Object.values(schema[keyword]) : [])),
  ];
  return aside.every((child) => check(child, path, false));
}

function mark({ [MARK]: name, type }: Record<string, unknown>, path: string[], params: Params): boolean {
  if (typeof name !== 'string' || !TOKEN.test(name) || !TYPES.has(type)) return false;
  const header = `mcp-param-${name.toLowerCase()}`;
  if (params.has(header) || params.size === MARKS_MAX) return false;
  params.set(header, { path, header });
  return true;
}

/** Returns the headers of arguments. Absent, null and structured arguments have no header. */
export function paramHeaders(params: readonly HeaderParam[], args: unknown): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const { path, header } of params) {
    const value = path.reduce<unknown>((at, name) => (isObject(at) ? at[name] : undefined), args);
    const isUnsafe = Number.isInteger(value) && !Number.isSafeInteger(value);
    const isPlain = typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number';
    if (isPlain && !isUnsafe) headers[header] = headerValue(String(value));
  }
  return headers;
}

export class ToolHeaders {
  private readonly byTool = new Map<string, HeaderParam[]>();

  headersOf(tool: string): HeaderParam[] | undefined {
    return this.byTool.get(tool);
  }

  learnHeaders(items: readonly string[]): Set<number> {
    const refused = new Set<number>();
    items.forEach((text, at) => {
      const isMarked = text.includes(`"${MARK}"`);
      if (!isMarked && this.byTool.size === 0) return;
      if (!text.startsWith('{')) return;
      const name = members(text).get('name');
      const tool: unknown = name && JSON.parse(slice(text, name));
      if (typeof tool !== 'string') return;
      const params = isMarked ? headerParams((JSON.parse(text) as { inputSchema?: unknown }).inputSchema) : [];
      if (params === null) refused.add(at);
      if (params === null || params.length === 0) this.byTool.delete(tool);
      else if (this.byTool.size < LIST_ITEMS_MAX) this.byTool.set(tool, params);
    });
    return refused;
  }
}
