import type { DataSource } from 'typeorm';
import { generateApiKey, hashApiKey, prefixOf } from './api-key.js';

const INSERT_KEY = `
  INSERT INTO api_keys (account_id, name, prefix, hash) SELECT id, $1, $2, $3 FROM accounts WHERE name = $4
  ON CONFLICT (hash) DO NOTHING RETURNING id`;

/** The operator's account: it exists from the first start on. */
export const OPERATOR = 'operator';

/**
 * Creates the operator with a first key on an empty database; does nothing on any other. Call it under the migration
 * lock, so that processes that start together make one.
 *
 * @param given the key to use instead of a generated one
 * @returns the generated key, to be shown once; null when there is nothing to show
 */
export async function ensureOperator(source: DataSource, given: string | null): Promise<string | null> {
  const created = await source.query<unknown[]>(
    `INSERT INTO accounts (name, kind, is_operator) SELECT $1, 'user', true
      WHERE NOT EXISTS (SELECT 1 FROM accounts) RETURNING id`,
    [OPERATOR],
  );
  if (created.length === 0) return null;
  const key = given ?? generateApiKey();
  await source.query(INSERT_KEY, ['first key', prefixOf(key), hashApiKey(key), OPERATOR]);
  return given === null ? key : null;
}

/**
 * Makes one more key for an account, for the command line.
 *
 * @returns the key, or null when there is no such account
 */
export async function addKey(source: DataSource, account: string, name: string): Promise<string | null> {
  const key = generateApiKey();
  const created = await source.query<unknown[]>(INSERT_KEY, [name, prefixOf(key), hashApiKey(key), account]);
  return created.length === 0 ? null : key;
}
