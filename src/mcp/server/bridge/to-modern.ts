import { isObject } from '../../../platform/text/json.js';
import type { RpcError } from '../../protocol/channel.js';
import { withFirst, withoutMembers } from '../../protocol/json-edit.js';
import { members } from '../../protocol/json-text.js';
import { listChanges, RESOURCE_UPDATED } from '../../protocol/list-pages.js';
import { rpcCode } from '../../protocol/protocol.js';
import { rewriteItems } from './items.js';
import { headerParamsOf } from './header-params.js';

/** What upstreams answer, above all legacy ones, as a client of 2026-07-28 reads it. Pure functions over JSON text. */

/** Results that say how long they may be kept. */
const cacheable: ReadonlySet<string> = new Set([
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
]);

/** A result with what the revision demands of it. Of what is kept nobody tells us when it changes, so nothing is fresh. */
export function modernResult(method: string, result: string): string {
  if (!result.startsWith('{')) return result;
  const own = method === 'tools/list' ? modernTools(result) : result;
  const lacking = [
    ...(lacks(own, 'resultType') ? ['"resultType":"complete"'] : []),
    ...(cacheable.has(method) && lacks(own, 'ttlMs') ? ['"ttlMs":0'] : []),
    ...(cacheable.has(method) && lacks(own, 'cacheScope') ? ['"cacheScope":"private"'] : []),
  ];
  return lacking.length === 0 ? own : withFirst(own, lacking.join(','));
}

/**
 * Whether a modern upstream's answer names what the revision demands of a result, so that it passes as it is. Servers leave
 * it out, and official clients then refuse the whole result. Only the words are looked for: inside, an answer is not read.
 */
export function namesDemanded(method: string, answer: string): boolean {
  if (!answer.includes('"resultType"')) return false;
  return !cacheable.has(method) || (answer.includes('"ttlMs"') && answer.includes('"cacheScope"'));
}

/**
 * An error in the revision's codes: a missing resource is a bad parameter, and codes that meant anything or nothing before
 * (-32000 … -32099) are an internal error that says in `data` what it was. Null when it passes as it is.
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

/** A resource that does not exist, up to 2025-11-25. */
const RESOURCE_NOT_FOUND = -32002;

/** What legacy servers may say on any stream, and this revision tells its subscribers alone. */
const ofSubscriptions: ReadonlySet<string> = new Set([
  ...listChanges.keys(),
  RESOURCE_UPDATED,
  'notifications/elicitation/complete',
]);

/** Whether a notification may stand in the stream of a modern answer. */
export function isOfRequest(method: string): boolean {
  return !ofSubscriptions.has(method);
}

/** Tools without `execution`, which the revision does not have, and without those whose header annotations are invalid. */
function modernTools(result: string): string {
  if (!result.includes('"execution"') && !result.includes('"x-mcp-header"')) return result;
  return rewriteItems(result, 'tools', (tool) => {
    if (!tool.startsWith('{')) return tool;
    if (headerParamsOf(tool) === null) return null;
    return withoutMembers(tool, (name) => name === 'execution');
  });
}

function lacks(object: string, name: string): boolean {
  return !object.includes(`"${name}"`) || !members(object).has(name);
}
