import type { EntityManager } from 'typeorm';

/** The account that makes a change, and its credential: an API key, a client authorization or a browser session. */
export interface Actor {
  accountId: string;
  /** Id of the key, authorization or session; absent for a user with a link. */
  keyId?: string | null;
  /** The key that began the authorization or session. */
  rootKeyId?: string;
}

/**
 * Runs `work` in a transaction whose changes are recorded as those of an actor; within another transaction, they become
 * the actor's from here on. Triggers write the record.
 */
export function transactionOf<Result>(
  database: EntityManager | { manager: EntityManager },
  actor: Actor,
  work: (tx: EntityManager) => Promise<Result>,
): Promise<Result> {
  return ('manager' in database ? database.manager : database).transaction(async (tx) => {
    await setActor(tx, actor);
    return work(tx);
  });
}

export async function setActor(tx: EntityManager, { accountId, keyId, rootKeyId }: Actor): Promise<void> {
  await tx.query(`SELECT set_config('slipway.actor', $1, true), set_config('slipway.credential', $2, true)`, [
    accountId,
    rootKeyId ?? keyId ?? '',
  ]);
}
