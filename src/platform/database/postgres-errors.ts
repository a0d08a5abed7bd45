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

/**
 * Replaces the error of a statement that a foreign key or a unique index refused; any other error is thrown as it is.
 * Use as `statement.catch(onViolation({ unique: () => new … }))`.
 */
export function onViolation(replace: { foreignKey?: () => Error; unique?: () => Error }): (error: unknown) => never {
  return (error) => {
    if (replace.foreignKey && isForeignKeyViolation(error)) throw replace.foreignKey();
    if (replace.unique && isUniqueViolation(error)) throw replace.unique();
    throw error;
  };
}
