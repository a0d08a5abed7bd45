import type { DataSource } from 'typeorm';
import { generateApiKey, hashApiKey, prefixOf } from './api-key.js';
import { ApiKeysRepository } from './api-keys.repository.js';

/** Name of the operator's account, which the first start creates. */
export const OPERATOR = 'operator';

/**
 * Creates the operator with a first key in an empty database; does nothing in any other. Call it under the migration lock,
 * so that processes that start together create one operator.
 *
 * @param chosen the key to use instead of a generated one
 * @returns the generated key, to be shown once; null when none was generated
 */
export async function ensureOperator(source: DataSource, chosen: string | null): Promise<string | null> {
  const rows = new ApiKeysRepository(source);
  if (!(await rows.createOperator(OPERATOR))) return null;
  const key = chosen ?? generateApiKey();
  await rows.addKey(OPERATOR, { name: 'first key', prefix: prefixOf(key), hash: hashApiKey(key) });
  return chosen === null ? key : null;
}

/** Adds a key to an account, for the command line. @returns the key; null when there is no such account */
export async function addKey(source: DataSource, account: string, name: string): Promise<string | null> {
  const key = generateApiKey();
  const isAdded = await new ApiKeysRepository(source).addKey(account, {
    name,
    prefix: prefixOf(key),
    hash: hashApiKey(key),
  });
  return isAdded ? key : null;
}
