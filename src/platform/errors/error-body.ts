import { isStorageFull, StorageFullError } from '../blobs/storage-space.js';
import { codeOf, DatabaseUnreachableError, isDatabaseUnreachable } from '../database/postgres-errors.js';
import { DomainError, statusOf, type ErrorKind, type ErrorReader } from './domain-error.js';
import type { ErrorFamily } from './error-form.decorator.js';

export interface ErrorAnswer {
  status: number;
  headers: Record<string, string>;
  body: object;
}

/**
 * Returns JSON-RPC's own codes where it has them; otherwise Slipway's, -33000 less the status, outside of the reserved range.
 */
export function rpcCodeOf(status: number): number {
  if (status === 400) return -32600;
  return status === 500 ? -32603 : -33_000 - status;
}

/** The response header with the advice of an error whose text the contract fixes. Its value is percent-encoded. */
export const HINT_HEADER = 'slipway-hint';
const HINT_BYTES_MAX = 512;

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

/** SQLSTATE of Postgres on a full disk. */
const DISK_FULL = '53100';

/** Returns the domain error for a thrown value; null for an unexpected one. */
export function domainErrorOf(error: unknown): DomainError | null {
  if (error instanceof DomainError) return error;
  if (codeOf(error) === DISK_FULL || isStorageFull(error)) return new StorageFullError(error);
  return isDatabaseUnreachable(error) ? new DatabaseUnreachableError(error) : null;
}

/**
 * Returns the response to an error. Its body has only the fields of its family: where the contract fixes the text, the advice is the header
 * {@link HINT_HEADER}, and in a JSON-RPC error `data.hint`. Anything that is not a domain error ({@link domainErrorOf})
 * becomes a 500 without internal details.
 *
 * A 409, a 500 and everything an upstream caused carry `x-should-retry: false`: otherwise published clients repeat 409
 * and 5xx twice, even for a tool call.
 *
 * @param reader absent where the caller is unknown
 */
export function errorAnswer(error: unknown, family: ErrorFamily, reader?: ErrorReader): ErrorAnswer {
  const all = domainErrorOf(error);
  const domainError = reader ? all?.forReader(reader) : all;
  const kind = domainError?.kind ?? 'internal';
  const code = domainError?.code ?? 'internal_error';
  const message = domainError?.message ?? 'Internal server error';
  const headers: Record<string, string> = { ...domainError?.headers };
  if (kind === 'unauthenticated') {
    const further = domainError?.challenge === undefined ? '' : `, ${domainError.challenge}`;
    const description = message.replace(/["\\]/g, "'");
    headers['www-authenticate'] = `Bearer realm="slipway", error_description="${description}"${further}`;
  }
  // One connection is accepted in a turn of the event loop, so a caller that repeats without a pause gets one response
  // a turn, and other requests run in between: with 24 such callers, their p95 was 31 to 40 ms, and 14 to 20 with this
  // (`node bench/hostile.mjs --only w4`).
  if (kind === 'rate_limited') headers['connection'] = 'close';
  if (domainError?.retryAfterSeconds !== undefined) headers['retry-after'] = String(domainError.retryAfterSeconds);
  if (domainError?.noRetry || (domainError?.retryAfterSeconds === undefined && notRepeatable.has(kind))) {
    headers['x-should-retry'] = 'false';
  }
  const status = statusOf[kind];
  const text = domainError?.registryText ?? message;
  const hint = domainError?.advice ?? (text === message || family === 'connections' ? undefined : message);
  if (hint !== undefined && family !== 'json-rpc') {
    // `%`, line ends and non-ASCII characters are percent-encoded UTF-8.
    let value = '';
    for (const character of hint.toWellFormed()) {
      const encoded = /^[ -$&-~]$/.test(character) ? character : encodeURIComponent(character);
      if (value.length + encoded.length > HINT_BYTES_MAX) break;
      value += encoded;
    }
    headers[HINT_HEADER] = value;
  }
  switch (family) {
    case 'json-rpc':
      return {
        status,
        headers,
        body: {
          jsonrpc: '2.0',
          id: null,
          error: {
            code: domainError?.rpcCode ?? rpcCodeOf(status),
            message,
            ...(domainError?.advice !== undefined && { data: { hint: domainError.advice } }),
          },
        },
      };
    case 'connections':
      return { status, headers, body: domainError?.ownBody ?? { error: code, message } };
    case 'publishing':
      return { status, headers, body: { error: text, code: code.toUpperCase() } };
    case 'registry':
      return { status, headers, body: { error: text } };
  }
}
