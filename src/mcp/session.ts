import { isObject } from '../platform/text/json-object.js';
import { UpstreamError } from './mcp-errors.js';
import { CLIENT_INFO, LEGACY_VERSIONS, MODERN_VERSION, type ServerHello, type ServerInfo } from './protocol.js';

/** What we send to open a session. We declare no capabilities: nobody behind a shared session could be asked anything. */
export const initializeParams = JSON.stringify({
  protocolVersion: LEGACY_VERSIONS[0],
  capabilities: {},
  clientInfo: CLIENT_INFO,
});

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
 * @throws UpstreamError when it is none, or names a protocol version we do not speak
 */
export function helloOfInitialize(result: unknown, url: URL): ServerHello {
  const { protocolVersion, capabilities, instructions, serverInfo: info } = record(result);
  if (typeof protocolVersion !== 'string') {
    const message = `${url.host} answered "initialize" without a protocol version: it is no MCP server.`;
    throw new UpstreamError(message, undefined, false, 'not our MCP');
  }
  if (!(LEGACY_VERSIONS as readonly string[]).includes(protocolVersion)) {
    throw new UpstreamError(
      `${url.host} speaks MCP ${protocolVersion.slice(0, 20)}, which Slipway does not know: ` +
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

/**
 * What a `server/discover` result says.
 *
 * @throws UpstreamError when the server speaks no version of ours
 */
export function helloOfDiscover(result: unknown, url: URL): ServerHello {
  const { supportedVersions, capabilities, instructions, _meta } = record(result);
  if (!Array.isArray(supportedVersions) || !supportedVersions.includes(MODERN_VERSION)) {
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
