import { types } from 'node:util';
import { DomainError } from '../errors/domain-error.js';

/** How long a client should wait before it asks again: a restart of Postgres takes about this long. */
const RETRY_AFTER_SECONDS = 2;

/** The database cannot be reached, is starting or ending, or has no room for one more connection. */
export class DatabaseAwayError extends DomainError {
  readonly kind = 'unavailable';
  readonly code = 'unavailable';
  override readonly retryAfterSeconds = RETRY_AFTER_SECONDS;

  constructor(detail?: unknown) {
    super('The database does not answer right now: try again in a few seconds', detail);
  }
}

/**
 * SQLSTATEs that say so: class 08 (connection), 53 (no room: connections, memory, disk), 57P01 to 57P03 (ending, crashed,
 * starting), 25P03 (a transaction was left open too long, and its connection with it); and what the operating system says of a socket or a name.
 */
const AWAY_CODE =
  /^(08...|53...|57P0[123]|25P03|ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)$/;

/** Messages of node-postgres and its pool that come without a code. */
const AWAY_MESSAGE =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error|Client was closed)/;

/**
 * True when a query failed because the database is away, not because of what was asked. Only for errors that reached the
 * outermost handler: everything that dials somebody else wraps its socket errors itself.
 */
export function isDatabaseAway(error: unknown): boolean {
  if (!types.isNativeError(error)) return false;
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === 'string' ? AWAY_CODE.test(code) : AWAY_MESSAGE.test(error.message);
}
