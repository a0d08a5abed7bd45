import { createHash } from 'node:crypto';
import { isObject } from '../../platform/text/json.js';
import { UpstreamError } from './mcp-errors.js';
import type { CallerProfile } from './channel.js';
import {
  CLIENT_INFO,
  LEGACY_VERSIONS,
  MODERN_VERSION,
  type Era,
  type UpstreamIdentity,
  type ServerInfo,
} from './protocol.js';

/** @param capabilities of the session's caller; none for a session that callers share */
export function initializeParams(capabilities: Record<string, unknown> = {}): string {
  const { elicitation, sampling, roots } = capabilities;
  const served = { elicitation, sampling, roots, ...extrasOf(capabilities) };
  return JSON.stringify({ protocolVersion: LEGACY_VERSIONS[0], capabilities: served, clientInfo: CLIENT_INFO });
}

const ASKED = ['elicitation', 'sampling', 'roots'];
const MODES = ['form', 'url', 'tools', 'context'];

export const EXTRAS_BYTES_MAX = 1_024;

/** Extension of MCP 2026-07-28 for tasks. Sessions have tasks of another form. */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

/**
 * Returns `extensions` and `experimental` of a client's capabilities, as a session declares them to a server. Empty
 * ones are left out, and all of them above 1 KB of JSON text.
 */
export function extrasOf({ extensions, experimental }: Record<string, unknown>): Record<string, unknown> {
  const { [TASKS_EXTENSION]: _tasks, ...passed } = record(extensions);
  const all = Object.entries({ extensions: passed, experimental: record(experimental) });
  const extras = Object.fromEntries(all.filter(([, value]) => Object.keys(value).length > 0));
  return Buffer.byteLength(JSON.stringify(extras)) > EXTRAS_BYTES_MAX ? {} : extras;
}

export function canBeAsked(capabilities: Record<string, unknown>): boolean {
  return ASKED.some((name) => isObject(capabilities[name]));
}

/**
 * Returns the profile for requests during which the client is not called, such as those for lists: some servers offer tools by
 * the capabilities of their client. Callers with the same capabilities share its session of a legacy upstream.
 * Undefined without capabilities.
 */
export function sharedProfile(era: Era, capabilities: Record<string, unknown>): CallerProfile | undefined {
  const pick = (value: object) => Object.fromEntries(MODES.filter((mode) => mode in value).map((mode) => [mode, {}]));
  const entries = ASKED.flatMap((name) =>
    isObject(capabilities[name]) ? [[name, pick(capabilities[name])] as const] : [],
  );
  const declared = era === 'modern' ? capabilities : { ...Object.fromEntries(entries), ...extrasOf(capabilities) };
  if (Object.keys(declared).length === 0) return undefined;
  const key = `shared ${createHash('sha256').update(JSON.stringify(declared)).digest('base64url')}`;
  return { key, capabilities: declared, mayShare: true, isShared: true };
}

function record(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {};
}

function serverInfo(value: unknown): ServerInfo {
  const info = record(value);
  return {
    ...info,
    name: typeof info.name === 'string' ? info.name : 'unnamed',
    version: typeof info.version === 'string' ? info.version : '',
  };
}

/**
 * @param host name of the server for error messages, or its URL
 * @throws UpstreamError when the result is malformed, or names an unsupported protocol version
 */
export function identityOfInitialize(result: unknown, { host }: { host: string }): UpstreamIdentity {
  const { protocolVersion, capabilities, instructions, serverInfo: info } = record(result);
  if (typeof protocolVersion !== 'string') {
    const message = `${host} answered "initialize" without a protocol version: it is not an MCP server.`;
    throw new UpstreamError(message, { outcomeUnknown: false, failure: 'not our MCP' });
  }
  if (!(LEGACY_VERSIONS as readonly string[]).includes(protocolVersion)) {
    throw new UpstreamError(
      `${host} speaks MCP ${protocolVersion.slice(0, 20)}, which Slipway does not know: ` +
        `it speaks ${[MODERN_VERSION, ...LEGACY_VERSIONS].join(', ')}.`,
      { outcomeUnknown: false, failure: 'not our MCP' },
    );
  }
  return {
    era: 'legacy',
    protocolVersion,
    capabilities: record(capabilities),
    serverInfo: serverInfo(info),
    ...(typeof instructions === 'string' ? { instructions } : {}),
  };
}

/** Returns the versions in a `server/discover` result; null without any. */
export function versionsOfDiscover(result: unknown): unknown[] | null {
  const { supportedVersions } = record(result);
  return Array.isArray(supportedVersions) ? supportedVersions : null;
}

/**
 * Reads the identity in a result. A result without versions is treated as modern.
 *
 * @throws UpstreamError when the server supports none of our versions
 */
export function identityOfDiscover(result: unknown, url: URL): UpstreamIdentity {
  if (!isObject(result))
    throw new UpstreamError(`${url.host} answered "server/discover" with something that is not an MCP answer.`);
  const { capabilities, instructions, _meta } = result;
  const versions = versionsOfDiscover(result);
  if (versions && !versions.includes(MODERN_VERSION)) {
    const message = `${url.host} does not speak MCP ${MODERN_VERSION} or an older revision Slipway knows.`;
    throw new UpstreamError(message, { outcomeUnknown: false, failure: 'not our MCP' });
  }
  return {
    era: 'modern',
    protocolVersion: MODERN_VERSION,
    capabilities: record(capabilities),
    serverInfo: serverInfo(record(_meta)['io.modelcontextprotocol/serverInfo']),
    ...(typeof instructions === 'string' ? { instructions } : {}),
  };
}
