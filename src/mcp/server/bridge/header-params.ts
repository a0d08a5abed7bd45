import { isObject } from '../../../platform/text/json.js';
import { headerParams, type HeaderParam } from '../../client/tools/tool-headers.js';
import { decodeHeader, headerMismatch, type Fault } from '../classify.js';

export type { HeaderParam };

/**
 * Returns the header parameters of a tool, from its description as JSON text; null when their declaration is invalid,
 * which makes the tool unusable over HTTP.
 */
export function headerParamsOf(tool: string): HeaderParam[] | null {
  if (!tool.includes('"x-mcp-header"')) return [];
  return headerParams((JSON.parse(tool) as { inputSchema?: unknown }).inputSchema);
}

/**
 * Returns null if all headers repeat their arguments as required. Headers without an argument are not checked.
 *
 * @param header returns the value of the header with this lower-case name
 */
export function paramFault(
  params: readonly HeaderParam[],
  args: unknown,
  header: (name: string) => string | undefined,
): Fault | null {
  for (const { header: name, path } of params) {
    const value = path.reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), args);
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') continue;
    const sent = header(name);
    if (sent === undefined) return headerMismatch(`${name} is missing`);
    const decoded = decodeHeader(sent.trim());
    const isSame =
      typeof value === 'number'
        ? decoded !== null && /^-?\d+(\.\d+)?$/.test(decoded) && Number(decoded) === value
        : decoded === String(value);
    if (!isSame) return headerMismatch(`${name} is not the argument ${path.join('.')}`);
  }
  return null;
}
