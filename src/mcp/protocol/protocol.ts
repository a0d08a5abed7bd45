import { VERSION } from '../../config/version.js';

/** Revisions that begin with `initialize`, newest first; the first one is offered to upstreams. */
export const LEGACY_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'] as const;

/** Stateless revision: no handshake; every request carries an envelope. */
export const MODERN_VERSION = '2026-07-28';

/** Concurrent requests to upstreams that one request causes. */
export const PARALLEL = 8;

/** Upper limit of the `ttlMs` that a server sends. */
export const TTL_MS_MAX = 60 * 60_000;

export const envelope = {
  version: 'io.modelcontextprotocol/protocolVersion',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
} as const;

/** `_meta` name of the `subscriptions/listen` request to which a notification belongs. */
export const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

/** `_meta` name of the minimum log level that a modern client requests. */
export const LOG_LEVEL_KEY = 'io.modelcontextprotocol/logLevel';

export const CLIENT_INFO = { name: 'slipway', version: VERSION };

/**
 * JSON-RPC codes. Slipway's own are outside -32768…-32000, which JSON-RPC and MCP reserve, except `inputRequired`,
 * which published clients know.
 */
export const rpcCode = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  /** The session of `Mcp-Session-Id` has closed; sent at MCP addresses, with HTTP 404. */
  sessionLost: -32001,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
  /**
   * The caller must supply values first, listed in `data`. A code of the service for which published clients were
   * written.
   */
  inputRequired: -32002,
  /** The upstream requires authorization; `data` contains the remedy. */
  authRequired: -33001,
  /** The upstream is down or does not speak MCP. */
  upstreamError: -33002,
  /** The upstream did not respond in time. The request might have run. */
  timeout: -33003,
  /** The client cancelled the call; never sent. */
  cancelled: -33004,
  /** The server has no release that runs here. */
  notRunnable: -33005,
  /** The request has passed this service before. */
  loop: -33006,
} as const;

/** Name and version of a server. Unknown fields are preserved. */
export interface ServerInfo {
  name: string;
  version: string;
  title?: string;
  description?: string;
  websiteUrl?: string;
  icons?: { src: string; mimeType?: string; sizes?: string[] }[];
}

/** `legacy`: revisions that begin with `initialize`; `modern`: stateless, 2026-07-28 and later. */
export type Era = 'legacy' | 'modern';

export interface UpstreamIdentity {
  era: Era;
  protocolVersion: string;
  capabilities: Record<string, unknown>;
  serverInfo: ServerInfo;
  instructions?: string;
  /** The upstream restores the sessions of callers, so that they outlive the processes that opened them. */
  restoresSessions?: true;
  /** The upstream has no sessions, and therefore no stream for notifications outside of calls. */
  hasNoStream?: true;
}
