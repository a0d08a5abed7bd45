import { isObject } from '../../../platform/text/json-object.js';
import { decodeHeader, headerMismatch, type Fault } from '../classify.js';

/** An argument that clients of 2026-07-28 repeat in the header `Mcp-Param-{name}`. */
export interface HeaderParam {
  name: string;
  /** The properties that lead to it from the arguments. */
  path: string[];
}

/** RFC 9110 section 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** A schema is looked into no deeper than this; what stands below is not reachable by a header. */
const DEPTH_MAX = 32;

/**
 * The arguments a tool wants repeated in headers, by the `x-mcp-header` annotations of its input schema; null when one of
 * them is invalid, which makes the tool unusable over HTTP.
 *
 * @param tool as its server describes it, JSON text
 */
export function headerParams(tool: string): HeaderParam[] | null {
  const { inputSchema } = JSON.parse(tool) as { inputSchema?: unknown };
  const found: HeaderParam[] = [];
  collect(inputSchema, [], found);
  const names = found.map(({ name }) => name.toLowerCase());
  const isComplete = found.length === countAnnotations(inputSchema, 0);
  return isComplete && new Set(names).size === names.length ? found : null;
}

/**
 * Whether the headers repeat the arguments they must. Of headers without an argument nothing is asked.
 *
 * @param header the value of the header with this lower-case name
 */
export function paramFault(
  params: readonly HeaderParam[],
  given: unknown,
  header: (name: string) => string | undefined,
): Fault | null {
  for (const { name, path } of params) {
    const value = path.reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), given);
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') continue;
    const sent = header(`mcp-param-${name.toLowerCase()}`);
    if (sent === undefined) return headerMismatch(`Mcp-Param-${name} is missing`);
    const decoded = decodeHeader(sent.trim());
    const isSame = typeof value === 'number' ? isNumber(decoded, value) : decoded === String(value);
    if (!isSame) return headerMismatch(`Mcp-Param-${name} is not the argument ${path.join('.')}`);
  }
  return null;
}

function isNumber(text: string | null, value: number): boolean {
  return text !== null && /^-?\d+(\.\d+)?$/.test(text) && Number(text) === value;
}

/** Annotations count where nothing but `properties` leads to them, on texts, integers and booleans. */
function collect(schema: unknown, path: string[], found: HeaderParam[]): void {
  if (!isObject(schema) || path.length > DEPTH_MAX) return;
  const name = schema['x-mcp-header'];
  if (name !== undefined) {
    const isPlain = schema.type === 'string' || schema.type === 'integer' || schema.type === 'boolean';
    if (typeof name === 'string' && TOKEN.test(name) && isPlain && path.length > 0) found.push({ name, path });
  }
  if (!isObject(schema.properties)) return;
  for (const [key, property] of Object.entries(schema.properties)) collect(property, [...path, key], found);
}

/** Every annotation anywhere in the schema, the invalid ones too. A property of that name is none. */
function countAnnotations(value: unknown, depth: number, isProperties = false): number {
  if (depth > DEPTH_MAX * 2 || typeof value !== 'object' || value === null) return 0;
  return Object.entries(value).reduce((count, [key, child]) => {
    const isAnnotation = key === 'x-mcp-header' && !isProperties && !Array.isArray(value);
    const isData = !isProperties && (key === 'default' || key === 'const' || key === 'enum' || key === 'examples');
    if (isAnnotation || isData) return count + (isAnnotation ? 1 : 0);
    return count + countAnnotations(child, depth + 1, !isProperties && (key === 'properties' || key === '$defs'));
  }, 0);
}
