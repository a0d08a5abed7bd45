import { isObject } from '../../platform/text/json.js';
import { LEGACY_VERSIONS, type UpstreamIdentity } from '../protocol/protocol.js';
import { serverMeta } from './bridge/hop.js';
import { SERVED_VERSIONS } from './classify.js';

/** The revision a legacy session goes by: the client's if we know it, else the newest. */
export function agreedVersion(params: unknown): string {
  const requested = isObject(params) ? params.protocolVersion : undefined;
  return LEGACY_VERSIONS.find((version) => version === requested) ?? LEGACY_VERSIONS[0];
}

/** Our answer to `initialize`, JSON text: the upstream's, less what we do not pass on. */
export function initializeResult(hello: UpstreamIdentity, protocolVersion: string): string {
  const { capabilities, serverInfo, instructions } = hello;
  return JSON.stringify({ protocolVersion, capabilities: legacyCapabilities(capabilities), serverInfo, instructions });
}

/**
 * Our answer to `server/discover`, JSON text. Tasks of 2025-11-25 do not exist in this revision; the log level of a legacy
 * upstream is set for its whole session, which callers share, so none of them may.
 */
export function discoverResult({ era, capabilities, serverInfo, instructions }: UpstreamIdentity): string {
  const { tasks: _tasks, logging, ...kept } = capabilities;
  const own = JSON.stringify({
    resultType: 'complete',
    ttlMs: 0,
    cacheScope: 'private',
    supportedVersions: SERVED_VERSIONS,
    capabilities: { ...kept, ...(era === 'modern' && logging !== undefined ? { logging } : {}) },
    instructions,
  });
  return `${own.slice(0, -1)},"_meta":${serverMeta(serverInfo)}}`;
}

/** What works through us in a session: lists and their changes, subscriptions, log messages. Tasks do not. */
function legacyCapabilities(capabilities: Record<string, unknown>): Record<string, unknown> {
  const flags = (value: unknown, names: readonly string[]) =>
    Object.fromEntries(names.filter((name) => isObject(value) && value[name] === true).map((name) => [name, true]));
  const kept = (name: string, names: readonly string[] = []) =>
    capabilities[name] === undefined ? {} : { [name]: flags(capabilities[name], names) };
  return {
    ...kept('tools', ['listChanged']),
    ...kept('prompts', ['listChanged']),
    ...kept('resources', ['listChanged', 'subscribe']),
    ...kept('completions'),
    ...kept('logging'),
  };
}
