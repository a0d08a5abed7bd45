/** Names and numbers of the Model Context Protocol, and the ones we add where it leaves them to us. */

/** Revisions that begin with `initialize`, newest first; the first one is what we offer. */
export const LEGACY_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'] as const;

/** The stateless revision: no handshake, every request carries its own envelope. */
export const MODERN_VERSION = '2026-07-28';

/** Members of a modern request's `params._meta`. */
export const envelope = {
  version: 'io.modelcontextprotocol/protocolVersion',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
} as const;

/** The member of `_meta` that says by which `subscriptions/listen` a notification came. */
export const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

/** How we introduce ourselves to upstreams. */
export const CLIENT_INFO = { name: 'slipway', version: '0.1.0' };

/**
 * JSON-RPC codes. Those of ours, but for the one that published clients know, lie outside -32768…-32000, which JSON-RPC and MCP reserve.
 */
export const rpcCode = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
  /** The caller must give values first; `data` says which. The code is that of the service our clients were made for. */
  inputRequired: -32002,
  /** The upstream wants authorization; `data` says what to do. */
  authRequired: -33001,
  /** The upstream is down or does not speak MCP. */
  upstreamError: -33002,
  /** The upstream did not answer in time. Whether it acted is unknown. */
  timeout: -33003,
  /** The client cancelled the call; nobody should read this. */
  cancelled: -33004,
  /** There is nothing to call: the server has no release that runs here. */
  notRunnable: -33005,
  /** The request has come through this service before. */
  loop: -33006,
} as const;

/** What an MCP server says of itself when a session begins. Fields it adds stay. */
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

/** What a handshake told us. */
export interface UpstreamIdentity {
  era: Era;
  protocolVersion: string;
  capabilities: Record<string, unknown>;
  serverInfo: ServerInfo;
  instructions?: string;
}
