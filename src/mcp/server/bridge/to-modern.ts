/**
 * Results of a legacy upstream, completed for clients of 2026-07-28. Pure functions over JSON text.
 *
 * Set: `resultType: complete`, for lists and resources `ttlMs: 0` with `cacheScope: private`, since changes upstream
 * are unknown. Removed: `execution` of tools, which the revision lacks, and tools whose header marks are invalid.
 *
 * Responses of modern upstreams with missing or invalid required members are completed likewise, because official
 * clients reject them. `cacheScope` is always `private`: endpoints are called with a key, and responses can depend on
 * the caller's headers, values and choice of tools.
 */
import { isObject } from '../../../platform/text/json.js';
import type { RpcError } from '../../protocol/channel.js';
import { withFirst, withoutMembers, rewriteItems, rewriteMembers } from '../../protocol/json-edit.js';
import { members, slice } from '../../protocol/json-text.js';
import { listChanges, RESOURCE_UPDATED } from '../../protocol/list-pages.js';
import { rpcCode, type Era } from '../../protocol/protocol.js';
import { headerParamsOf } from './header-params.js';

/** Methods whose results require `ttlMs` and `cacheScope`. */
const cacheable: ReadonlySet<string> = new Set([
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
]);

export function modernResult(method: string, result: string, era: Era): string {
  if (!result.startsWith('{')) return result;
  const hasOldParts = method === 'tools/list' && (result.includes('"execution"') || result.includes('"x-mcp-header"'));
  // The revision has no `execution`, and a tool whose header marks are invalid cannot be called.
  const converted = hasOldParts
    ? rewriteItems(result, 'tools', (tool) => {
        if (!tool.startsWith('{')) return tool;
        return headerParamsOf(tool) && withoutMembers(tool, (name) => name === 'execution');
      })
    : result;
  const parts = members(converted);
  const textOf = (name: string) => {
    const span = parts.get(name);
    return span && slice(converted, span);
  };
  // A legacy server's own member with this name means something else.
  const resultType = (era === 'modern' && textOf('resultType')) || '"complete"';
  const required = new Map([['resultType', resultType]]);
  if (cacheable.has(method)) {
    required.set('ttlMs', era === 'modern' ? ttlText(textOf('ttlMs')) : '0').set('cacheScope', '"private"');
  }
  const content = textOf('content');
  if (method === 'tools/call' && resultType === '"complete"' && (content === undefined || content === 'null')) {
    const structured = textOf('structuredContent');
    required.set('content', `[${structured === undefined ? '' : JSON.stringify({ type: 'text', text: structured })}]`);
  }
  const lacking = [...required].filter(([name]) => !parts.has(name)).map(([name, value]) => `"${name}":${value}`);
  const corrected = rewriteMembers(converted, (name, value) => required.get(name) ?? value);
  return lacking.length === 0 ? corrected : withFirst(corrected, lacking.join(','));
}

/** Returns a whole number from 0; 0 for anything but a number. */
function ttlText(text: string | undefined): string {
  const value = text === undefined ? 0 : Number(text);
  return Number.isFinite(value) && !text?.startsWith('"') ? String(Math.max(0, Math.trunc(value))) : '0';
}

/**
 * Applies to methods without `cacheScope`: such a result is forwarded unchanged. Searches the text for the names
 * instead of parsing it.
 */
export function namesDemanded(method: string, answer: string): boolean {
  if (cacheable.has(method) || !answer.includes('"resultType"')) return false;
  return method !== 'tools/call' || answer.includes('"content"');
}

/**
 * Converts an error. A missing resource is an invalid parameter; codes with an older meaning or none (-32000 … -32099) become an internal
 * error with the original in `data`. Null when the error is unchanged.
 */
export function modernError(method: string, error: RpcError, params: unknown): RpcError | null {
  if (error.code > -32_000 || error.code < -32_099) return null;
  if (error.code === RESOURCE_NOT_FOUND && method === 'resources/read') {
    const uri = isObject(params) ? params.uri : undefined;
    const data = { ...(isObject(error.data) ? error.data : {}), uri };
    return { code: rpcCode.invalidParams, message: error.message, data };
  }
  return { code: rpcCode.internalError, message: error.message, data: { upstream: error } };
}

const RESOURCE_NOT_FOUND = -32002;

/** Notifications that legacy servers can send on any stream, and this revision only to subscribers. */
const ofSubscriptions: ReadonlySet<string> = new Set([
  ...listChanges.keys(),
  RESOURCE_UPDATED,
  'notifications/elicitation/complete',
]);

export function isOfRequest(method: string): boolean {
  return !ofSubscriptions.has(method);
}
