import { isObject } from '../../../platform/text/json.js';
import { headerParams, type HeaderParam } from '../../client/tool-headers.js';
import { decodeHeader, headerMismatch, type Fault } from '../classify.js';

export type { HeaderParam };

/**
 * The arguments a tool wants repeated in headers, by its description as JSON text; null when what it says of them is
 * invalid, which makes the tool unusable over HTTP.
 */
export function headerParamsOf(tool: string): HeaderParam[] | null {
  if (!tool.includes('"x-mcp-header"')) return [];
  return headerParams((JSON.parse(tool) as { inputSchema?: unknown }).inputSchema);
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
  for (const { header: name, path } of params) {
    const value = path.reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), given);
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') continue;
    const sent = header(name);
    if (sent === undefined) return headerMismatch(`${name} is missing`);
    const decoded = decodeHeader(sent.trim());
    const isSame = typeof value === 'number' ? isNumber(decoded, value) : decoded === String(value);
    if (!isSame) return headerMismatch(`${name} is not the argument ${path.join('.')}`);
  }
  return null;
}

function isNumber(text: string | null, value: number): boolean {
  return text !== null && /^-?\d+(\.\d+)?$/.test(text) && Number(text) === value;
}
