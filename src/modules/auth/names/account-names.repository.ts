import type { DataSource, EntityManager } from 'typeorm';
import { toSkeletons } from './name-skeletons.js';

const BATCH = 1_000;

/**
 * Computes the missing skeletons, of accounts of earlier versions and of operators. Skips accounts that are being changed: waiting could be
 * a deadlock.
 */
export async function storeSkeletons(database: DataSource): Promise<void> {
  const store = async (tx: EntityManager) => {
    const accounts = await tx.query<{ id: string; name: string }[]>(
      `SELECT id, name FROM accounts WHERE name_skeletons IS NULL LIMIT ${BATCH} FOR NO KEY UPDATE SKIP LOCKED`,
    );
    const skeletons = Object.fromEntries(accounts.map(({ id, name }) => [id, toSkeletons(name)]));
    await tx.query(
      `UPDATE accounts SET name_skeletons = ARRAY(SELECT jsonb_array_elements_text(value))
         FROM jsonb_each($1) WHERE id = key::uuid`,
      [skeletons],
    );
    return accounts.length;
  };
  while ((await database.transaction(store)) === BATCH);
}

/**
 * Returns whether the name looks like that of another account. Keeps other transactions from adding user names until
 * this one ends.
 */
export async function isImitation(tx: EntityManager, name: string, skeletons: string[] | null): Promise<boolean> {
  await tx.query(`SELECT pg_advisory_xact_lock(hashtext('slipway.accounts.names'))`);
  // A separate statement sees rows that were committed before the lock.
  const accounts = await tx.query<unknown[]>(
    'SELECT FROM accounts WHERE name_skeletons && $1::text[] AND name <> $2 LIMIT 1',
    [skeletons, name],
  );
  return accounts.length > 0;
}
