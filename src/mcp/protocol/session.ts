import { isObject } from '../../platform/text/json.js';
import { UpstreamError } from './mcp-errors.js';
import { CLIENT_INFO, LEGACY_VERSIONS, MODERN_VERSION, type UpstreamIdentity, type ServerInfo } from './protocol.js';

/**
 * What we send to open a session.
 *
 * @param capabilities what the session's caller can be asked; none for a session that callers share, since nobody in
 * particular stands behind it
 */
export function initializeParams(capabilities: Record<string, unknown> = {}): string {
  const { elicitation, sampling, roots } = capabilities;
  const told = { elicitation, sampling, roots };
  return JSON.stringify({ protocolVersion: LEGACY_VERSIONS[0], capabilities: told, clientInfo: CLIENT_INFO });
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
 * What an `initialize` result says.
 *
 * @param host who answered, for sentences: a URL will do
 * @throws UpstreamError when it is none, or names a protocol version we do not speak
 */
export function helloOfInitialize(result: unknown, { host }: { host: string }): UpstreamIdentity {
  const { protocolVersion, capabilities, instructions, serverInfo: info } = record(result);
  if (typeof protocolVersion !== 'string') {
    const message = `${host} answered "initialize" without a protocol version: it is no MCP server.`;
    throw new UpstreamError(message, undefined, false, 'not our MCP');
  }
  if (!(LEGACY_VERSIONS as readonly string[]).includes(protocolVersion)) {
    throw new UpstreamError(
      `${host} speaks MCP ${protocolVersion.slice(0, 20)}, which Slipway does not know: ` +
        `it speaks ${[MODERN_VERSION, ...LEGACY_VERSIONS].join(', ')}.`,
      undefined,
      false,
      'not our MCP',
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

/** The versions a `server/discover` result names; null when it names none. */
export function versionsOfDiscover(result: unknown): unknown[] | null {
  const { supportedVersions } = record(result);
  return Array.isArray(supportedVersions) ? supportedVersions : null;
}

/**
 * What a `server/discover` result says. One that names no versions is taken for a modern one's.
 *
 * @throws UpstreamError when the server speaks no version of ours
 */
export function helloOfDiscover(result: unknown, url: URL): UpstreamIdentity {
  if (!isObject(result)) throw new UpstreamError(`${url.host} answered "server/discover" with what is no MCP.`);
  const { capabilities, instructions, _meta } = result;
  const versions = versionsOfDiscover(result);
  if (versions && !versions.includes(MODERN_VERSION)) {
    const message = `${url.host} does not speak MCP ${MODERN_VERSION} or an older revision Slipway knows.`;
    throw new UpstreamError(message, undefined, false, 'not our MCP');
  }
  return {
    era: 'modern',
    protocolVersion: MODERN_VERSION,
    capabilities: record(capabilities),
    serverInfo: serverInfo(record(_meta)['io.modelcontextprotocol/serverInfo']),
    ...(typeof instructions === 'string' ? { instructions } : {}),
  };
}
