import { memberText, withMember, withoutMembers, withoutMeta } from '../../protocol/json-edit.js';
import { members, slice } from '../../protocol/json-text.js';
import { envelope, LOG_LEVEL_KEY } from '../../protocol/protocol.js';

/** Prefix of names that describe one hop and are not forwarded. */
const RESERVED = 'io.modelcontextprotocol/';

const ofTheClient: ReadonlySet<string> = new Set([envelope.version, envelope.capabilities, envelope.clientInfo]);

export function paramsForModern(params: string): string {
  return withoutMeta(params, (name) => ofTheClient.has(name));
}

export function paramsForLegacy(params: string): string {
  return withoutMeta(params, (name) => name.startsWith(RESERVED));
}

export function withLogLevel(params: string | undefined, level: string): string {
  const paramsText = params ?? '{}';
  const span = members(paramsText).get('_meta');
  const meta = span && paramsText[span[0]] === '{' ? slice(paramsText, span) : '{}';
  return withMember(paramsText, '_meta', withMember(meta, LOG_LEVEL_KEY, JSON.stringify(level)));
}

/** Returns the `_meta` of a modern result for a legacy client; null when it becomes empty. */
export function metaForLegacy(meta: string): string | null {
  if (!meta.startsWith('{') || !meta.includes(RESERVED)) return meta;
  const rest = withoutMembers(meta, (name) => name.startsWith(RESERVED));
  return /^\{\s*\}$/.test(rest) ? null : rest;
}

/** Adds the subscription id to a notification. @param subscriptionId JSON text */
export function withSubscription(notification: string, subscriptionId: string): string {
  const text = memberText(notification, 'params');
  const params = text?.startsWith('{') ? text : '{}';
  const meta = memberText(params, '_meta') ?? '{}';
  const ownMeta = withMember(meta.startsWith('{') ? meta : '{}', `${RESERVED}subscriptionId`, subscriptionId);
  return withMember(notification, 'params', withMember(params, '_meta', ownMeta));
}

export function serverMeta(serverInfo: unknown): string {
  return JSON.stringify({ [`${RESERVED}serverInfo`]: serverInfo });
}

export function subscriptionMeta(subscriptionId: string): string {
  return `{"${RESERVED}subscriptionId":${subscriptionId}}`;
}
