import type { IncomingMessage } from 'node:http';
import { RpcError, type RpcMessage } from './upstream-exchange.js';

/** The revision without handshake and session. */
export const MODERN_VERSION = '2026-07-28';

/** The revisions with `initialize`, newest first. */
export const LEGACY_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];

const prefix = 'io.modelcontextprotocol/';
const nameKeys: Record<string, string> = { 'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri' };

/**
 * Refuses what a server of 2026-07-28 alone refuses, with the statuses and codes of the official SDK 2.4:
 * -32022 for another revision or none, -32602 for an incomplete `_meta`, -32020 where headers and body differ.
 */
export function checkModern(req: IncomingMessage, message: RpcMessage): void {
  const params = (message.params ?? {}) as RpcMessage;
  const meta = (params._meta ?? {}) as RpcMessage;
  const header = req.headers['mcp-protocol-version'];
  const version = meta[`${prefix}protocolVersion`];

  if (message.method === 'initialize' && header === MODERN_VERSION) throw mismatch('initialize with a modern header');
  const named = message.method === 'initialize' ? params.protocolVersion : (version ?? header);
  if (named !== MODERN_VERSION && (version === undefined || version === header)) {
    const data = { supported: [MODERN_VERSION], requested: named };
    throw new RpcError(-32022, `Unsupported protocol version: ${String(named)}`, data, 400);
  }
  if (version !== undefined && version !== header) throw mismatch(`MCP-Protocol-Version is not ${String(version)}`);
  for (const key of ['protocolVersion', 'clientCapabilities']) {
    if (meta[prefix + key] === undefined) {
      throw new RpcError(-32602, `Invalid params: _meta lacks ${prefix}${key}`, undefined, 400);
    }
  }
  if (req.headers['mcp-method'] !== message.method) throw mismatch(`Mcp-Method is not ${String(message.method)}`);
  const nameKey = nameKeys[String(message.method)];
  if (nameKey && decodeHeader(req.headers['mcp-name']) !== params[nameKey]) {
    throw mismatch(`Mcp-Name is not ${String(params[nameKey])}`);
  }
}

/** Refuses a revision header no legacy server knows. Without a header 2025-03-26 is assumed. */
export function checkLegacyVersion(req: IncomingMessage): void {
  const header = req.headers['mcp-protocol-version'];
  if (header === undefined || LEGACY_VERSIONS.includes(String(header))) return;
  const supported = LEGACY_VERSIONS.join(', ');
  const text = `Bad Request: Unsupported protocol version: ${String(header)} (supported versions: ${supported})`;
  throw new RpcError(-32000, text, undefined, 400, true);
}

/** A result with the further members of 2026-07-28. Lists must not be cached. */
export function toModernResult(method: string, result: object, serverInfo: object): object {
  const isCacheable = /list$|^resources\/read$|^server\/discover$/.test(method);
  const cache = isCacheable ? { ttlMs: 0, cacheScope: 'private' } : {};
  return { resultType: 'complete', ...cache, ...result, _meta: { [`${prefix}serverInfo`]: serverInfo } };
}

function mismatch(text: string): RpcError {
  return new RpcError(-32020, `Bad Request: the request headers and body disagree: ${text}`, undefined, 400);
}

function decodeHeader(value: string | string[] | undefined): string | undefined {
  if (typeof value !== 'string') return undefined;
  const encoded = /^=\?base64\?(.*)\?=$/.exec(value)?.[1];
  return encoded === undefined ? value : Buffer.from(encoded, 'base64').toString('utf8');
}
