/**
 * Results of a legacy upstream, completed for clients of 2026-07-28. Pure functions over JSON text.
 *
 * Added: `resultType: complete`, and for lists and resources `ttlMs: 0` with `cacheScope: private`, since changes
 * upstream are not known here. Removed: `execution` of tools, which the revision lacks, and tools whose header marks
 * are invalid. Codes -32000 to -32099 have other meanings now: a missing resource becomes -32602, all others -32603
 * with the original in `data.upstream`. Answers of modern upstreams that lack required members are completed likewise,
 * because official clients refuse them.
 */
import { isObject } from '../../../platform/text/json.js';
import type { RpcError } from '../../protocol/channel.js';
import { withFirst, withoutMembers, rewriteItems } from '../../protocol/json-edit.js';
import { members } from '../../protocol/json-text.js';
import { listChanges, RESOURCE_UPDATED } from '../../protocol/list-pages.js';
import { rpcCode } from '../../protocol/protocol.js';
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

/** A result with the members that the revision requires. `ttlMs` is 0, since changes upstream are not known here. */
export function modernResult(method: string, result: string): string {
  if (!result.startsWith('{')) return result;
  const hasOldParts = method === 'tools/list' && (result.includes('"execution"') || result.includes('"x-mcp-header"'));
  // The revision has no `execution`, and a tool whose header marks are invalid cannot be called.
  const converted = hasOldParts
    ? rewriteItems(result, 'tools', (tool) => {
        if (!tool.startsWith('{')) return tool;
        return headerParamsOf(tool) && withoutMembers(tool, (name) => name === 'execution');
      })
    : result;
  const lacking = [
    ...(lacks(converted, 'resultType') ? ['"resultType":"complete"'] : []),
    ...(cacheable.has(method) && lacks(converted, 'ttlMs') ? ['"ttlMs":0'] : []),
    ...(cacheable.has(method) && lacks(converted, 'cacheScope') ? ['"cacheScope":"private"'] : []),
  ];
  return lacking.length === 0 ? converted : withFirst(converted, lacking.join(','));
}

/**
 * True if a modern upstream's answer contains the required members, so that it is forwarded unchanged. Some servers
 * omit them, and official clients then reject the whole result. Searches the text for the names instead of parsing it.
 */
export function namesDemanded(method: string, answer: string): boolean {
  if (!answer.includes('"resultType"')) return false;
  return !cacheable.has(method) || (answer.includes('"ttlMs"') && answer.includes('"cacheScope"'));
}

/**
 * An error with the codes of the revision: a missing resource is an invalid parameter; codes with an older meaning or
 * none (-32000 … -32099) become an internal error with the original in `data`. Null when it is unchanged.
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

/** Error code of a missing resource up to 2025-11-25. */
const RESOURCE_NOT_FOUND = -32002;

/** Notifications that legacy servers may send on any stream and this revision sends only to subscribers. */
const ofSubscriptions: ReadonlySet<string> = new Set([
  ...listChanges.keys(),
  RESOURCE_UPDATED,
  'notifications/elicitation/complete',
]);

/** True if a notification may precede the answer on its stream. */
export function isOfRequest(method: string): boolean {
  return !ofSubscriptions.has(method);
}

function lacks(object: string, name: string): boolean {
  return !object.includes(`"${name}"`) || !members(object).has(name);
}
