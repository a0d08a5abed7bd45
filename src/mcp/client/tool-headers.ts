import { isObject } from '../../platform/text/json.js';
import { members, slice } from '../protocol/json-text.js';
import { headerValue } from '../protocol/messages.js';

/** An argument of a tool that its calls repeat in a header `Mcp-Param-…` (MCP 2026-07-28). */
export interface HeaderParam {
  /** Where the value stands in the arguments. */
  path: string[];
  /** The whole header name, in lower case. */
  header: string;
}

const MARK = 'x-mcp-header';

/** RFC 9110 section 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/;

const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);

/** Keywords whose subschemas lie off the chain of `properties` on which alone a mark may stand. */
const ASIDE_SCHEMAS = [
  ...['items', 'prefixItems', 'contains', 'additionalProperties', 'unevaluatedProperties', 'unevaluatedItems'],
  ...['propertyNames', 'oneOf', 'anyOf', 'allOf', 'not', 'if', 'then', 'else'],
];
const ASIDE_MAPS = ['patternProperties', 'dependentSchemas', '$defs', 'definitions'];

/** Schemas are nested deeper by mistake or malice only. */
const SCHEMA_DEPTH_MAX = 64;

/**
 * The header parameters of a tool by its input schema; null when the schema breaks a rule for them: then the tool must not
 * be offered (MCP 2026-07-28, streamable HTTP, custom headers).
 */
export function headerParams(inputSchema: unknown): HeaderParam[] | null {
  const found: HeaderParam[] = [];
  return visit(inputSchema, [], true, found, 0) ? found : null;
}

/** False when a rule is broken here or below. */
function visit(schema: unknown, path: string[], isReachable: boolean, found: HeaderParam[], depth: number): boolean {
  if (!isObject(schema)) return true;
  if (depth > SCHEMA_DEPTH_MAX) return false;
  if (MARK in schema && !(isReachable && path.length > 0 && mark(schema, path, found))) return false;
  const below = (child: unknown, at: string[], reachable: boolean) => visit(child, at, reachable, found, depth + 1);
  if (isObject(schema.properties)) {
    for (const [name, child] of Object.entries(schema.properties)) {
      if (!below(child, [...path, name], isReachable)) return false;
    }
  }
  const aside = [
    ...ASIDE_SCHEMAS.flatMap((keyword) => schema[keyword] ?? []),
    ...ASIDE_MAPS.flatMap((keyword) => (isObject(schema[keyword]) ? Object.values(schema[keyword]) : [])),
  ];
  return aside.every((child) => below(child, path, false));
}

function mark({ [MARK]: name, type }: Record<string, unknown>, path: string[], found: HeaderParam[]): boolean {
  if (typeof name !== 'string' || !TOKEN.test(name) || !TYPES.has(type)) return false;
  const header = `mcp-param-${name.toLowerCase()}`;
  if (found.some((other) => other.header === header)) return false;
  found.push({ path, header });
  return true;
}

/** The headers of one call. Arguments that are absent, null or no plain value have none. */
export function paramHeaders(params: readonly HeaderParam[], args: unknown): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const { path, header } of params) {
    const value = path.reduce<unknown>((at, name) => (isObject(at) ? at[name] : undefined), args);
    const text = plainText(value);
    if (text !== null) headers[header] = headerValue(text);
  }
  return headers;
}

function plainText(value: unknown): string | null {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return String(value);
  if (typeof value !== 'number' || (Number.isInteger(value) && !Number.isSafeInteger(value))) return null;
  return String(value);
}

/** Tools remembered for their header parameters at most, by one channel. */
const TOOLS_MAX = 10_000;

/** What a modern server's tool lists said of header parameters, as they passed by. */
export class ToolHeaders {
  private readonly byTool = new Map<string, HeaderParam[]>();

  /** The parameters a tool's calls repeat; undefined when none are known. */
  of(tool: string): HeaderParam[] | undefined {
    return this.byTool.get(tool);
  }

  /**
   * Learns from the items of a list page.
   *
   * @returns which of them may not be offered, by their index
   */
  learn(items: readonly string[]): Set<number> {
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
      else if (this.byTool.size < TOOLS_MAX) this.byTool.set(tool, params);
    });
    return refused;
  }
}
