/**
 * The era by which a message is served, and the problems of its form. Pure functions.
 *
 * The body decides, and headers are checked against it. A message with `io.modelcontextprotocol/protocolVersion` in
 * `_meta` is modern (2026-07-28) and needs its envelope and headers. Everything else is legacy: `initialize`,
 * responses, and messages without an envelope.
 *
 * Problems return 400 with a JSON-RPC error: -32600 for a message that is not JSON-RPC, -32602 for a broken envelope,
 * and the codes of the revision for headers that disagree and for unsupported versions (with the supported ones).
 */
import { isObject } from '../../platform/text/json.js';
import { namedBy, type RpcHead } from '../protocol/messages.js';
import { envelope, LEGACY_VERSIONS, LOG_LEVEL_KEY, MODERN_VERSION, rpcCode } from '../protocol/protocol.js';

export const SERVED_VERSIONS: readonly string[] = [MODERN_VERSION, ...LEGACY_VERSIONS];

export interface McpRequestHeaders {
  version?: string;
  method?: string;
  name?: string;
}

/** Reason to reject a message: an HTTP status and a JSON-RPC error. */
export interface Fault {
  status: number;
  code: number;
  message: string;
  data?: unknown;
}

export interface Envelope {
  capabilities: Record<string, unknown>;
  /** Minimum log level; null for no log messages. */
  logLevel: string | null;
}

/** `envelope` is null for notifications, which do not need one. */
export type Classified = { era: 'legacy' } | { era: 'modern'; envelope: Envelope | null } | { era: null; fault: Fault };

const legacy: Classified = { era: 'legacy' };

/** Expects a valid JSON-RPC message ({@link shapeFault}). This function never throws. */
export function classify(message: RpcHead, headers: McpRequestHeaders): Classified {
  const { method } = message;
  if (typeof method !== 'string') return legacy;
  const { _meta } = (message.params ?? {}) as { _meta?: unknown };
  const meta = isObject(_meta) ? _meta : undefined;
  const isRequest = message.id !== undefined;
  const claims = meta !== undefined && envelope.version in meta;
  if (!claims && !headers.version) return legacy;
  const version = headers.version?.trim();
  const namesModern = version !== undefined && version >= MODERN_VERSION;
  if (isRequest && method === 'initialize') {
    const claimed = meta?.[envelope.version];
    const isModern = typeof claimed === 'string' && claimed >= MODERN_VERSION && envelopeProblem(meta ?? {}) === null;
    if (!isModern && namesModern) return mismatch('"initialize" is older than the revision in MCP-Protocol-Version');
    if (!isModern) return legacy;
  }
  if (claims) return isRequest ? modernRequest(message, meta, headers) : modernNotification(message, meta, headers);
  if (namesModern && isRequest) {
    const missing = [envelope.version, envelope.capabilities].filter((key) => meta?.[key] === undefined);
    const needed = `whose requests need ${missing.join(' and ')} in params._meta`;
    return reject(rpcCode.invalidParams, `MCP-Protocol-Version names ${version.slice(0, 40)}, ${needed}`);
  }
  if (namesModern) return methodMismatch(headers, method) ?? { era: 'modern', envelope: null };
  if (version !== undefined && method !== 'initialize' && !SERVED_VERSIONS.includes(version))
    return unsupported(version);
  return legacy;
}

export function shapeFault(message: RpcHead): Fault | null {
  const { jsonrpc } = message as { jsonrpc?: unknown };
  const isAnswer = message.method === undefined && ('result' in message || 'error' in message);
  if (isAnswer) return null;
  if (jsonrpc !== '2.0') return invalid('jsonrpc must be "2.0"');
  if (typeof message.method !== 'string') return invalid('method must be a string');
  if (message.id !== undefined && typeof message.id !== 'string' && typeof message.id !== 'number') {
    return invalid('id must be a string or a number');
  }
  // Serializers of some clients write null for absent members.
  const params = message.params ?? {};
  if (!isObject(params)) return invalid('params must be an object');
  if (params._meta === undefined || params._meta === null || isObject(params._meta)) return null;
  return { status: 400, code: rpcCode.invalidParams, message: 'params._meta must be an object' };
}

export function invalid(message: string): Fault {
  return { status: 400, code: rpcCode.invalidRequest, message };
}

/** Decodes a value, which can have the base64 form of MCP 2026-07-28; returns null when this form is invalid. */
export function decodeHeader(value: string): string | null {
  const encoded = /^=\?base64\?(.*)\?=$/s.exec(value)?.[1];
  if (encoded === undefined) return value;
  const bytes = Buffer.from(encoded, 'base64');
  if (bytes.toString('base64') !== encoded) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

export function headerMismatch(problem: string): Fault {
  const message = `The request's headers and body disagree: ${problem}`;
  return { status: 400, code: rpcCode.headerMismatch, message };
}

function modernRequest(message: RpcHead, meta: Record<string, unknown>, headers: McpRequestHeaders): Classified {
  const method = message.method as string;
  const problem = envelopeProblem(meta);
  if (problem) return reject(rpcCode.invalidParams, `params._meta is not an envelope of ${MODERN_VERSION}: ${problem}`);
  const claimed = meta[envelope.version] as string;
  const differs = versionMismatch(headers, claimed) ?? methodMismatch(headers, method);
  if (differs) return differs;
  if (claimed !== MODERN_VERSION) return unsupported(claimed);
  if (headers.version === undefined) return mismatch('MCP-Protocol-Version is missing');
  if (headers.method === undefined) return mismatch('Mcp-Method is missing');
  const name = nameMismatch(headers, method, message.params as Record<string, unknown>);
  if (name) return name;
  const level = meta[LOG_LEVEL_KEY];
  return {
    era: 'modern',
    envelope: {
      capabilities: declaredIn(meta[envelope.capabilities] as Record<string, unknown>),
      logLevel: typeof level === 'string' ? level : null,
    },
  };
}

/** Returns the declared capabilities; null does not declare one. */
function declaredIn(capabilities: Record<string, unknown>): Record<string, unknown> {
  const declared = Object.entries(capabilities).filter(([, value]) => value !== null);
  return Object.fromEntries(declared);
}

function modernNotification(message: RpcHead, meta: Record<string, unknown>, headers: McpRequestHeaders): Classified {
  const claimed = meta[envelope.version];
  if (typeof claimed !== 'string') {
    return reject(rpcCode.invalidParams, `params._meta["${envelope.version}"] must be a string`);
  }
  const differs = versionMismatch(headers, claimed);
  if (differs) return differs;
  const isModern = claimed >= MODERN_VERSION;
  return (isModern ? methodMismatch(headers, message.method as string) : null) ?? { era: 'modern', envelope: null };
}

function versionMismatch({ version }: McpRequestHeaders, claimed: string): Classified | null {
  if (version === undefined || version.trim() === claimed) return null;
  return mismatch(`MCP-Protocol-Version is not ${claimed.slice(0, 40)}`);
}

function methodMismatch({ method: header }: McpRequestHeaders, method: string): Classified | null {
  if (header === undefined || header.trim() === method) return null;
  return mismatch(`Mcp-Method is not ${method.slice(0, 100)}`);
}

function nameMismatch({ name }: McpRequestHeaders, method: string, params: Record<string, unknown>): Classified | null {
  const member = namedBy.get(method);
  if (member === undefined) return null;
  const nameInBody = params[member];
  if (name === undefined) return typeof nameInBody === 'string' ? mismatch('Mcp-Name is missing') : null;
  const decoded = decodeHeader(name.trim());
  if (decoded === null) return mismatch('Mcp-Name is not valid base64');
  return typeof nameInBody !== 'string' || decoded === nameInBody ? null : mismatch(`Mcp-Name is not params.${member}`);
}

function envelopeProblem(meta: Record<string, unknown>): string | null {
  const { version, capabilities, clientInfo } = envelope;
  if (typeof meta[version] !== 'string') return `${version} must be a string`;
  if (meta[capabilities] === undefined) return `${capabilities} is missing`;
  const declared = meta[capabilities];
  if (!isObject(declared)) return `${capabilities} must be an object`;
  const invalid = Object.entries(declared).find(([, value]) => value !== null && !isObject(value));
  if (invalid) return `${capabilities}: "${invalid[0].slice(0, 40)}" must be an object`;
  const info = meta[clientInfo];
  if (
    info !== undefined &&
    info !== null &&
    !(isObject(info) && typeof info.name === 'string' && typeof info.version === 'string')
  ) {
    return `${clientInfo} must be an object with a name and a version`;
  }
  const level = meta[LOG_LEVEL_KEY];
  return level === undefined || level === null || isLogLevel(level) ? null : `${LOG_LEVEL_KEY} must be a log level`;
}

const CLIENT_NAME_CHARS_MAX = 100;

/** Reads the name from `initialize`, or from the envelope of MCP 2026-07-28; null without one. */
export function clientNameIn(params: unknown): string | null {
  if (!isObject(params)) return null;
  const info = params.clientInfo ?? (isObject(params._meta) ? params._meta[envelope.clientInfo] : undefined);
  return isObject(info) && typeof info.name === 'string' ? info.name.slice(0, CLIENT_NAME_CHARS_MAX) : null;
}

const LOG_LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;

export function isLogLevel(value: unknown): value is string {
  return (LOG_LEVELS as readonly unknown[]).includes(value);
}

/** Returns true for a level of at least `least`, and for unknown levels. */
export function isLoud(level: unknown, least: string): boolean {
  const at = (LOG_LEVELS as readonly unknown[]).indexOf(level);
  return at < 0 || at >= (LOG_LEVELS as readonly string[]).indexOf(least);
}

function reject(code: number, message: string): Classified {
  return { era: null, fault: { status: 400, code, message } };
}

function mismatch(problem: string): Classified {
  return { era: null, fault: headerMismatch(problem) };
}

function unsupported(requested: string): Classified {
  const data = { supported: SERVED_VERSIONS, requested };
  return {
    era: null,
    fault: { status: 400, code: rpcCode.unsupportedVersion, message: 'Unsupported protocol version', data },
  };
}
