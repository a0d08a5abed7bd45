import { QueryFailedError, QueryRunnerAlreadyReleasedError, QueryRunnerProviderAlreadyReleasedError } from 'typeorm';
import { types } from 'node:util';
import { UnavailableError } from '../errors/domain-error.js';

/** Time after which clients retry: a restart of Postgres takes about this long. */
const RETRY_AFTER_SECONDS = 2;

export class DatabaseUnreachableError extends UnavailableError {
  constructor(detail?: unknown) {
    super('The database does not answer right now: try again in a few seconds', RETRY_AFTER_SECONDS, detail);
  }
}

/**
 * SQLSTATEs that report it: class 08 (connection), 53 (no room: connections, memory, disk), 57P01 to 57P03 (stopping,
 * crashed, starting), 25P03 (a transaction was left open too long, and its connection with it), 25006 (it only reads: a
 * standby, or a primary that was replaced); and the operating system's codes for a socket or a name.
 */
const AWAY_CODE =
  /^(08...|53...|57P0[123]|25P03|25006|ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)$/;

/** Messages of node-postgres and its pool without a code. */
const AWAY_MESSAGE =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error|Client was closed)/;

/** Errors of TypeORM in a transaction whose connection broke between two of its queries. */
const BROKEN_TRANSACTION = [QueryRunnerAlreadyReleasedError, QueryRunnerProviderAlreadyReleasedError];

/** Returns undefined for errors that are not those of a query. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof QueryFailedError ? (error.driverError as { code?: string }).code : undefined;
}

/** Returns true if a unique index rejected the row (SQLSTATE 23505). */
export function isUniqueViolation(error: unknown): boolean {
  return codeOf(error) === '23505';
}

/** Returns true if a foreign key rejected the change (SQLSTATE 23503; RESTRICT raises 23001 since Postgres 18). */
export function isForeignKeyViolation(error: unknown): boolean {
  const code = codeOf(error);
  return code === '23503' || code === '23001';
}

/**
 * Returns true when a query failed because the database cannot be reached, whatever the query. Only for errors that
 * reached the outermost handler: clients of other servers wrap their own socket errors.
 */
export function isDatabaseUnreachable(error: unknown): boolean {
  if (!types.isNativeError(error)) return false;
  if (BROKEN_TRANSACTION.some((type) => error instanceof type)) return true;
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === 'string' ? AWAY_CODE.test(code) : AWAY_MESSAGE.test(error.message);
}

/**
 * Replaces the error of a statement that a foreign key or a unique index rejected; any other error is rethrown. Use as
 * `statement.catch(onViolation({ unique: () => new … }))`.
 */
export function onViolation(replace: { foreignKey?: () => Error; unique?: () => Error }): (error: unknown) => never {
  return (error) => {
    if (replace.foreignKey && isForeignKeyViolation(error)) throw replace.foreignKey();
    if (replace.unique && isUniqueViolation(error)) throw replace.unique();
    throw error;
  };
}
