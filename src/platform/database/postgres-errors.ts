import { QueryFailedError } from 'typeorm';

/** The SQLSTATE of a failed query; undefined for any other error. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof QueryFailedError ? (error.driverError as { code?: string }).code : undefined;
}

/** A unique index refused the row (SQLSTATE 23505). */
export function isUniqueViolation(error: unknown): boolean {
  return codeOf(error) === '23505';
}

/** A foreign key refused the change (SQLSTATE 23503; 23001 is what RESTRICT raises since Postgres 18). */
export function isForeignKeyViolation(error: unknown): boolean {
  const code = codeOf(error);
  return code === '23503' || code === '23001';
}
