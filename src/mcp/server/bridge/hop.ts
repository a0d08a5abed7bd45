import { memberText, rewriteMembers, withMember, withoutMembers } from '../../protocol/json-edit.js';
import { members, slice } from '../../protocol/json-text.js';
import { envelope } from '../../protocol/protocol.js';
import { LOG_LEVEL_KEY } from '../classify.js';

/** Names in `_meta` that the protocol keeps for itself: they are about one hop, and mean nothing on the next. */
const RESERVED = 'io.modelcontextprotocol/';

const ofTheClient: ReadonlySet<string> = new Set([envelope.version, envelope.capabilities, envelope.clientInfo]);

/** A modern request's params as its upstream's channel takes them: without what the client says of itself. */
export function paramsForModern(params: string): string {
  return withoutMeta(params, (name) => ofTheClient.has(name));
}

/** A modern request's params for a legacy upstream: without anything it would not know. */
export function paramsForLegacy(params: string): string {
  return withoutMeta(params, (name) => name.startsWith(RESERVED));
}

/** A legacy request's params for a modern upstream, asking for log messages of this level and graver. */
export function withLogLevel(params: string | undefined, level: string): string {
  const own = params ?? '{}';
  const span = members(own).get('_meta');
  const meta = span && own[span[0]] === '{' ? slice(own, span) : '{}';
  return withMember(own, '_meta', withMember(meta, LOG_LEVEL_KEY, JSON.stringify(level)));
}

/** A modern result's `_meta` for a legacy client; null when nothing is left of it. */
export function metaForLegacy(meta: string): string | null {
  if (!meta.startsWith('{') || !meta.includes(RESERVED)) return meta;
  const rest = withoutMembers(meta, (name) => name.startsWith(RESERVED));
  return /^\{\s*\}$/.test(rest) ? null : rest;
}

/** A notification as a modern stream's subscriber hears it: marked with the id of its subscription, JSON text. */
export function marked(notification: string, subscriptionId: string): string {
  const given = memberText(notification, 'params');
  const params = given?.startsWith('{') ? given : '{}';
  const meta = memberText(params, '_meta') ?? '{}';
  const own = withMember(meta.startsWith('{') ? meta : '{}', `${RESERVED}subscriptionId`, subscriptionId);
  return withMember(notification, 'params', withMember(params, '_meta', own));
}

/** The `_meta` that says which server a result is from (MCP 2026-07-28), as JSON text. */
export function serverMeta(serverInfo: unknown): string {
  return JSON.stringify({ [`${RESERVED}serverInfo`]: serverInfo });
}

/** The `_meta` of what ends a subscription. */
export function subscriptionMeta(subscriptionId: string): string {
  return `{"${RESERVED}subscriptionId":${subscriptionId}}`;
}

function withoutMeta(params: string, isDropped: (name: string) => boolean): string {
  return rewriteMembers(params, (name, value) => {
    if (name !== '_meta' || !value.startsWith('{')) return value;
    const rest = withoutMembers(value, isDropped);
    return rest !== value && /^\{\s*\}$/.test(rest) ? null : rest;
  });
}
