import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { transactionOf, type Actor } from '../../platform/database/actor.js';
import type { AccountLimits } from '../../config/account-limits.js';
import { PreparedStatement } from '../../platform/database/prepared-statement.js';
import { OVERRIDES } from './account-limits.access.js';
import { revocableBy, ROLES } from './memberships.access.js';
import { generateApiKey, prefixOf, hashApiKey } from './api-key.js';

export const OPERATOR = 'operator';

interface KeyRow {
  id: string;
  accountId: string;
  hash: Buffer;
  expiresAt: Date | null;
  isOperator: boolean;
  isDisabled: boolean;
  isSuspended: boolean;
  /** Scopes in the form of {@link parseScope}; null: all rights of the account. */
  scopes: string[] | null;
  /** The account's own limits; null without any. */
  overrides: Partial<AccountLimits> | null;
  /** Memberships in the form of `readMemberships`. */
  roles: string | null;
  loginsEpoch: number;
}

const PERSON = new PreparedStatement<Pick<KeyRow, 'roles' | 'loginsEpoch'>>(
  `SELECT a.logins_epoch AS "loginsEpoch", ${ROLES} FROM accounts a WHERE a.id = $1 AND a.disabled_at IS NULL`,
);

interface KeyUse {
  at: Date;
  address: string;
}

/** SQL: the keys of account `a` are suspended. Those of operators never are. */
const IS_SUSPENDED = '(a.credentials_suspended_at IS NOT NULL AND NOT a.is_operator)';

const KEY_BY_HASH = new PreparedStatement<KeyRow>(
  `SELECT k.id, k.account_id AS "accountId", k.hash, k.expires_at AS "expiresAt", k.scopes,
          a.is_operator AS "isOperator", a.disabled_at IS NOT NULL AS "isDisabled", ${IS_SUSPENDED} AS "isSuspended",
          a.logins_epoch AS "loginsEpoch", ${OVERRIDES}, ${ROLES}
     FROM api_keys k JOIN accounts a ON a.id = k.account_id WHERE k.hash = $1`,
);

/** Returns valid keys that never expire, and keys that were not used for 90 days, as `"name" of account`, oldest first. */
export async function keyFaults(database: {
  query<T>(sql: string): Promise<T>;
}): Promise<{ lasting: string[]; unused: string[] }> {
  const rows = await database.query<{ name: string; lasting: boolean; unused: boolean }[]>(
    `SELECT format('"%s" of %s', k.name, a.name) AS name, k.expires_at IS NULL AS lasting,
            coalesce(k.last_used_at, k.created_at) < now() - interval '90 days' AS unused
       FROM api_keys k JOIN accounts a ON a.id = k.account_id
      WHERE (k.expires_at IS NULL OR k.expires_at > now()) AND a.disabled_at IS NULL ORDER BY k.created_at`,
  );
  const namesOf = (fault: 'lasting' | 'unused') => rows.filter((row) => row[fault]).map(({ name }) => name);
  return { lasting: namesOf('lasting'), unused: namesOf('unused') };
}

/** The keys $1, and those created with them, even if those were revoked long ago. */
const MADE_KEYS = `WITH RECURSIVE made AS (SELECT unnest($1::uuid[]) AS id UNION
  SELECT c.target_id FROM changes c JOIN made ON c.credential_id = made.id WHERE c.action = 'key.created') SELECT id FROM made`;

@Injectable()
export class ApiKeysRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /**
   * Creates the operator. Must run under the migration lock, so that processes that start together create one operator.
   *
   * @param chosen the key to use instead of a generated one
   * @returns the generated key, to be shown once; null when none was generated
   */
  async ensureOperator(chosen: string | null): Promise<string | null> {
    const key = chosen ?? generateApiKey();
    // One statement: an operator without a key could not sign in.
    const created = await this.database.query<unknown[]>(
      `WITH operator AS (INSERT INTO accounts (name, kind, is_operator) SELECT $1, 'user', true
                          WHERE NOT EXISTS (SELECT 1 FROM accounts) RETURNING id)
       INSERT INTO api_keys (account_id, name, prefix, hash) SELECT id, 'first key', $2, $3 FROM operator RETURNING id`,
      [OPERATOR, prefixOf(key), hashApiKey(key)],
    );
    return created.length > 0 && chosen === null ? key : null;
  }

  /**
   * @param scopes null: all rights of the account
   * @returns the key; null if the account does not exist or the key already does
   */
  async addKey(account: string, name: string, scopes: string[] | null, key = generateApiKey()): Promise<string | null> {
    const created = await this.database.query<unknown[]>(
      `INSERT INTO api_keys (account_id, name, prefix, hash, scopes) SELECT id, $1, $2, $3, $4 FROM accounts WHERE name = $5
       ON CONFLICT (hash) DO NOTHING RETURNING id`,
      [name, prefixOf(key), hashApiKey(key), scopes, account],
    );
    return created.length > 0 ? key : null;
  }

  async ensureAccount(name: string): Promise<{ accountId: string; operatorId: string }> {
    await this.database.query(`INSERT INTO accounts (name, kind) VALUES ($1, 'user') ON CONFLICT (name) DO NOTHING`, [
      name,
    ]);
    const [row] = await this.database.query<[{ accountId: string; operatorId: string }]>(
      `SELECT id AS "accountId", (SELECT id FROM accounts WHERE is_operator ORDER BY created_at LIMIT 1) AS "operatorId"
         FROM accounts WHERE name = $1`,
      [name],
    );
    return row;
  }

  /**
   * Disables or enables an account. Disabling also revokes client authorizations, sessions and invitations; enabling also lifts a suspension of the credentials.
   *
   * @returns false for an operator, and when the account does not exist
   */
  setDisabled(actor: Actor, id: string, disabled: boolean): Promise<boolean> {
    return transactionOf(this.database, actor, async (tx) => {
      const [changed] = await tx.query<[unknown[]]>(
        `UPDATE accounts SET disabled_at = CASE WHEN $2 THEN coalesce(disabled_at, now()) END,
                logins_epoch = logins_epoch + $2::boolean::int,
                credentials_suspended_at = CASE WHEN $2 THEN credentials_suspended_at END,
                credentials_suspended_for = CASE WHEN $2 THEN credentials_suspended_for END
          WHERE id = $1 AND NOT is_operator RETURNING id`,
        [id, disabled],
      );
      if (changed.length === 0) return false;
      if (disabled) {
        await tx.query('DELETE FROM sessions WHERE account_id = $1', [id]);
        await tx.query('DELETE FROM invitations WHERE account_id = $1', [id]);
      }
      return true;
    });
  }

  /**
   * @param reason null lifts the suspension
   * @returns false without a change
   */
  async setSuspended(accountId: string, reason: string | null, tx = this.database.manager): Promise<boolean> {
    const sql = `UPDATE accounts SET credentials_suspended_at = CASE WHEN $2::text IS NOT NULL THEN now() END, credentials_suspended_for = $2
        WHERE id = $1 AND (credentials_suspended_at IS NULL) = ($2::text IS NOT NULL) RETURNING id`;
    const update = (tx: EntityManager) => tx.query<[unknown[]]>(sql, [accountId, reason]);
    const [changed] = await (reason === null ? transactionOf(tx, { accountId }, update) : update(tx));
    return changed.length > 0;
  }

  /** @returns false for the last operator, for granting it to a disabled account, and when the account does not exist */
  setOperator(actor: Actor, id: string, isOperator: boolean): Promise<boolean> {
    return transactionOf(this.database, actor, async (tx) => {
      // Locked, so that two concurrent requests cannot remove the last two.
      const operators = await tx.query<{ id: string }[]>(
        'SELECT id FROM accounts WHERE is_operator ORDER BY id FOR NO KEY UPDATE',
      );
      if (!isOperator && operators.every((operator) => operator.id === id)) return false;
      const [changed] = await tx.query<[unknown[]]>(
        'UPDATE accounts SET is_operator = $2 WHERE id = $1 AND (disabled_at IS NULL OR NOT $2) RETURNING id',
        [id, isOperator],
      );
      return changed.length > 0;
    });
  }

  /**
   * @returns the members of a deleted organization; null when the account does not exist
   * @throws QueryFailedError (23503) while it owns namespaces
   */
  remove(actor: Actor, id: string): Promise<{ members: string[] } | { lastOwnerOf: string } | 'last operator' | null> {
    return transactionOf(this.database, actor, async (tx) => {
      const operators = await tx.query<{ id: string }[]>(
        'SELECT id FROM accounts WHERE is_operator ORDER BY id FOR NO KEY UPDATE',
      );
      if (operators.length === 1 && operators[0]?.id === id) return 'last operator';
      // Locked as in every change of members, so that two owners who leave concurrently cannot leave the organization without one.
      await tx.query(
        `SELECT 1 FROM accounts WHERE id IN (SELECT organization_id FROM memberships WHERE account_id = $1)
          ORDER BY id FOR NO KEY UPDATE`,
        [id],
      );
      const [last] = await tx.query<{ name: string }[]>(
        `SELECT o.name FROM memberships m JOIN accounts o ON o.id = m.organization_id
          WHERE m.account_id = $1 AND m.role = 'owner' AND NOT EXISTS (
            SELECT FROM memberships other WHERE other.organization_id = o.id AND other.role = 'owner' AND other.account_id <> $1)
          ORDER BY o.name LIMIT 1`,
        [id],
      );
      if (last) return { lastOwnerOf: last.name };
      const members = await tx.query<{ id: string }[]>(
        'SELECT account_id AS id FROM memberships WHERE organization_id = $1',
        [id],
      );
      const [deleted] = await tx.query<[unknown[]]>('DELETE FROM accounts WHERE id = $1 RETURNING id', [id]);
      return deleted.length > 0 ? { members: members.map((member) => member.id) } : null;
    });
  }

  /** Returns null for a disabled account, and when it does not exist. */
  findPerson(accountId: string): Promise<Pick<KeyRow, 'roles' | 'loginsEpoch'> | null> {
    return PERSON.findOne(this.database, [accountId]);
  }

  /** Ties the browser sessions and client authorizations that began with a key to another one. */
  async moveLogins(tx: EntityManager, from: string, to: string): Promise<void> {
    await tx.query('UPDATE sessions SET key_id = $2 WHERE key_id = $1', [from, to]);
    await tx.query('UPDATE as_grants SET key_id = $2 WHERE key_id = $1', [from, to]);
  }

  findByHash(hash: Buffer): Promise<KeyRow | null> {
    return KEY_BY_HASH.findOne(this.database, [hash]);
  }

  async validAmong(keyIds: string[]): Promise<Set<string>> {
    const rows = await this.database.query<{ id: string }[]>(
      `SELECT k.id FROM api_keys k JOIN accounts a ON a.id = k.account_id
        WHERE k.id = ANY($1::uuid[]) AND (k.expires_at IS NULL OR k.expires_at > now()) AND a.disabled_at IS NULL AND NOT ${IS_SUSPENDED}`,
      [keyIds],
    );
    return new Set(rows.map(({ id }) => id));
  }

  rolesOf(ids: string[]): Promise<{ id: string; roles: string | null }[]> {
    return this.database.query(
      `SELECT c.id, ${ROLES} FROM (SELECT id, account_id FROM api_keys UNION ALL SELECT id, account_id FROM as_grants
                                UNION ALL SELECT id, account_id FROM sessions) c
         JOIN accounts a ON a.id = c.account_id WHERE c.id = ANY($1::uuid[])`,
      [ids],
    );
  }

  /**
   * Revokes a key, and with `made` the keys, unused invitations, grants and operator roles created with it, even if the key itself was
   * revoked before. Only the operator revokes those of other accounts, and only owners those of an organization.
   *
   * @returns the revoked keys, all keys whose rights are revoked, the accounts that lost the operator role, and the number of other rows
   */
  revoke(
    caller: Actor & { isOperator: boolean },
    accountId: string,
    keyId: string,
    made: boolean,
  ): Promise<{ revoked: string[]; makers: string[]; operators: string[]; others: number }> {
    return transactionOf(this.database, caller, async (tx) => {
      const revoked: string[] = [];
      for (;;) {
        // A key of another account revokes nothing of this one.
        const [rows] = await tx.query<[{ id: string }[]]>(
          `DELETE FROM api_keys WHERE id IN (
             SELECT id FROM api_keys WHERE account_id = $1 AND id = $2
                 OR $3 AND ${revocableBy('api_keys.account_id', '$4')} AND $2 = ANY(made_by)
                    AND NOT EXISTS (SELECT 1 FROM api_keys root WHERE root.id = $2 AND root.account_id <> $1)
              ORDER BY id FOR UPDATE)
           RETURNING id`,
          [accountId, keyId, made, caller.isOperator],
        );
        revoked.push(...rows.map(({ id }) => id));
        // Again: a key of the chain might have created another one while this statement waited for its lock. It can create no more now.
        if (rows.length === 0 || !made) break;
      }
      if (!made) return { revoked, makers: [], operators: [], others: 0 };
      const makers = (await tx.query<{ id: string }[]>(MADE_KEYS, [[keyId, ...revoked]])).map(({ id }) => id);
      const values = [accountId, makers, caller.isOperator];
      const [, invitations] = await tx.query<[unknown, number]>(
        'DELETE FROM invitations WHERE used_at IS NULL AND made_by_key = ANY($2::uuid[]) AND (created_by = $1 OR $3)',
        values,
      );
      const [, grants] = await tx.query<[unknown, number]>(
        `DELETE FROM grants WHERE id IN (SELECT c.target_id FROM changes c WHERE c.credential_id = ANY($2::uuid[])
            AND c.action IN ('grant.created', 'grant.changed') AND ${revocableBy('c.account_id', '$3')})`,
        values,
      );
      const [operators] = await tx.query<[{ id: string }[]]>(
        `UPDATE accounts SET is_operator = false WHERE is_operator AND $3 AND id <> $1 AND id IN (
           SELECT c.target_id FROM changes c WHERE c.credential_id = ANY($2::uuid[])
              AND c.action = 'account.changed' AND (c.after->>'isOperator')::boolean) RETURNING id`,
        values,
      );
      const others = invitations + grants + operators.length;
      return { revoked, makers, operators: operators.map(({ id }) => id), others };
    });
  }

  /** Locks in the order of {@link revoke}. */
  async lock(tx: EntityManager, ids: string[]): Promise<void> {
    await tx.query('SELECT 1 FROM api_keys WHERE id = ANY($1::uuid[]) ORDER BY id FOR NO KEY UPDATE', [ids]);
  }

  async saveLastUses(ids: string[], uses: KeyUse[]): Promise<void> {
    await this.database.query(
      `UPDATE api_keys SET last_used_at = used.at, last_address = used.address
         FROM unnest($1::uuid[], $2::timestamptz[], $3::text[]) AS used(id, at, address)
        WHERE api_keys.id = used.id`,
      [ids, uses.map(({ at }) => at), uses.map(({ address }) => address)],
    );
  }
}
