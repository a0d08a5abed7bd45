/**
 * Explains why a connection to Postgres failed, by its error: SQLSTATE, code of the operating system or of TLS, or
 * message.
 */
import { faultsOf, type Check } from './check.js';

/** Returns a check. @param cause matches the code, or the message if there is no code */
function row(asks: string, cause: RegExp, fault: string, remedy: string): Check<Error> {
  const find = (error: Error) => {
    const { code, message } = error as NodeJS.ErrnoException;
    return cause.test(code === undefined || code === '08P01' ? message : code)
      ? { reason: message || code || '' }
      : null;
  };
  return { asks, find, fault, remedy };
}

const serverChecks = [
  row(
    'a free connection',
    /^53/,
    'Postgres has no connection left for the service ({reason})',
    'raise `max_connections`, or the limit by `ALTER ROLE … CONNECTION LIMIT` or `ALTER DATABASE … CONNECTION LIMIT`',
  ),
  row(
    'user and password',
    /^28|^SASL: .*password/,
    'Postgres refuses the user or the password of DATABASE_URL ({reason})',
    'correct them, with reserved characters percent-encoded (`@` is `%40`)',
  ),
  row(
    'the database exists',
    /^3D000/,
    'The database of DATABASE_URL cannot be used ({reason})',
    "create it with `CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`, or correct DATABASE_URL",
  ),
  row(
    'TLS',
    /^The server does not support SSL/,
    'Postgres offers no TLS, which DATABASE_URL requires',
    'turn on `ssl` in postgresql.conf, or remove `sslmode` from DATABASE_URL',
  ),
  row(
    'certificates',
    /^[A-Z_]*(CERT|UNABLE_TO_)[A-Z_]*$/,
    'The database cannot be used ({reason})',
    'check DATABASE_URL and NODE_EXTRA_CA_CERTS',
  ),
  row(
    '`options` and a pooler',
    /startup parameter: options/,
    'The pooler refuses the `options` of DATABASE_URL ({reason})',
    'remove them there, and set them by `ALTER ROLE … SET`',
  ),
  row(
    'an address',
    /^(ECONN|ENOTFOUND|EAI_|ETIMEDOUT|EHOST|ENET|57|08)|^(timeout expired|Connection terminated)/,
    'The database cannot be used ({reason})',
    'check DATABASE_URL',
  ),
];

export const connectChecks = [
  ...serverChecks,
  row(
    'files of DATABASE_URL',
    /^(ENOENT|EACCES|EISDIR)$/,
    'DATABASE_URL names a file or a socket that cannot be opened ({reason})',
    'correct its path or its rights',
  ),
];

/** Returns a message for the operator; null for an error unrelated to DATABASE_URL. */
export function databaseFault(error: unknown): string | null {
  return faultsOf(serverChecks, error as Error)[0]?.text ?? null;
}
