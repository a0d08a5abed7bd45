import { StorageFullError } from '../blobs/storage-space.js';
import { codeOf, DatabaseAwayError, isDatabaseAway } from '../database/postgres-errors.js';
import { DomainError, statusOf, type ErrorKind } from './domain-error.js';

/**
 * The two bodies of the contract (Spec 7): `connections` answers `{error: code, message}`, `registry` answers
 * `{error: message}`. What publishes a skill answers `{error: message, code: CODE}`, MCP endpoints JSON-RPC errors. A hint
 * is a further member `hint`, so that the texts stay those of the contract.
 */
export type ErrorFamily = 'registry' | 'connections' | 'publishing' | 'json-rpc';

export interface ErrorAnswer {
  status: number;
  headers: Record<string, string>;
  body:
    | { error: string; message?: string; code?: string; hint?: string }
    | { jsonrpc: '2.0'; id: null; error: { code: number; message: string; data?: unknown } }
    | object;
}

/** JSON-RPC's own codes where it has them; otherwise ours, -33000 less the status, outside of what it reserves. */
export function rpcCodeOf(status: number): number {
  if (status === 400) return -32600;
  return status === 500 ? -32603 : -33_000 - status;
}

/** Failures that published clients would repeat although the outcome stays the same, or a tool would run twice. */
const notRepeatable: ReadonlySet<ErrorKind> = new Set([
  'conflict',
  'unprocessable',
  'internal',
  'upstream',
  'unavailable',
  'timeout',
  'storage_full',
]);

/**
 * The family of a canonical path, which decides for whatever never reaches a route.
 *
 * @param method in any case; without one the path is read, not written
 */
export function familyOf(path: string, method = 'GET'): ErrorFamily {
  if (/^\/connect\/[^/]+\/(?:[^/]+\/mcp|\.mcp)\/?$|^\/run\/./.test(path)) return 'json-rpc';
  if (path === '/connect' || path.startsWith('/connect/')) return 'connections';
  return /^\/skills(\/|$)/.test(path) && /^(PUT|POST)$/i.test(method) ? 'publishing' : 'registry';
}

/** SQLSTATE of Postgres on a full disk. */
const DISK_FULL = '53100';

/** The domain error for a thrown value; null for an unexpected one. */
export function domainErrorOf(error: unknown): DomainError | null {
  if (error instanceof DomainError) return error;
  if (codeOf(error) === DISK_FULL) return new StorageFullError(error);
  return isDatabaseAway(error) ? new DatabaseAwayError(error) : null;
}

/**
 * The response to an error. Anything that is not a domain error ({@link domainErrorOf}) becomes a 500 that says
 * nothing internal.
 *
 * A 409, a 500 and everything an upstream caused carry `x-should-retry: false`: published clients repeat 409 and 5xx twice,
 * a tool call too, unless told not to.
 */
export function errorAnswer(error: unknown, family: ErrorFamily): ErrorAnswer {
  const known = domainErrorOf(error);
  const kind = known?.kind ?? 'internal';
  const code = known?.code ?? 'internal_error';
  const message = known?.message ?? 'Internal server error';
  const headers: Record<string, string> = { ...known?.headers };
  if (kind === 'unauthenticated') {
    headers['www-authenticate'] = `Bearer realm="slipway", error_description="${message.replace(/["\\]/g, "'")}"`;
  }
  // One connection is accepted in a turn of the event loop, so a caller that repeats without a pause gets one answer a turn,
  // and others' requests run in between: their p95 was 31 to 40 ms beside 24 such callers, and 14 to 20 with this
  // (`npm run bench:hostile -- --only w4`).
  if (kind === 'rate_limited') headers['connection'] = 'close';
  if (known?.retryAfterSeconds !== undefined) headers['retry-after'] = String(known.retryAfterSeconds);
  if (known?.noRetry || (known?.retryAfterSeconds === undefined && notRepeatable.has(kind))) {
    headers['x-should-retry'] = 'false';
  }
  const status = statusOf[kind];
  const text = known?.registryText ?? message;
  // Where the contract fixes the text, the sentence goes beside it.
  const hint = known?.advice ?? (text === message ? undefined : message);
  switch (family) {
    case 'json-rpc':
      return {
        status,
        headers,
        body: {
          jsonrpc: '2.0',
          id: null,
          error: {
            code: rpcCodeOf(status),
            message,
            ...(known?.advice !== undefined && { data: { hint: known.advice } }),
          },
        },
      };
    case 'connections':
      return { status, headers, body: known?.ownBody ?? { error: code, message, ...hinted(known?.advice) } };
    case 'publishing':
      return { status, headers, body: { error: text, code: code.toUpperCase(), ...hinted(hint) } };
    case 'registry':
      return { status, headers, body: { error: text, ...hinted(hint) } };
  }
}

function hinted(hint: string | undefined): { hint?: string } {
  return hint === undefined ? {} : { hint };
}
