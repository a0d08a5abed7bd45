import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import type { AccountLimits } from '../../config/account-limits.js';
import { PreparedStatement } from '../../platform/database/prepared-statement.js';
import { OVERRIDES } from './account-limits.access.js';
import { generateApiKey, prefixOf, hashApiKey } from './api-key.js';

/** Name of the operator's account, which the first start creates. */
export const OPERATOR = 'operator';

/** A key with the parts of its account that requests need. */
interface KeyRow {
  id: string;
  accountId: string;
  hash: Buffer;
  expiresAt: Date | null;
  isOperator: boolean;
  /** True while the account is disabled. */
  isDisabled: boolean;
  /** In the form of {@link parseScope}; null: all rights of the account. */
  scopes: string[] | null;
  /** The own limits of the account; null without any. */
  overrides: Partial<AccountLimits> | null;
}

const LOGINS_EPOCH = new PreparedStatement<{ loginsEpoch: number }>(
  'SELECT logins_epoch AS "loginsEpoch" FROM accounts WHERE id = $1 AND disabled_at IS NULL',
);

/** One use of a key, with the client's address. */
interface KeyUse {
  at: Date;
  address: string;
}

const KEY_BY_HASH = new PreparedStatement<KeyRow>(
  `SELECT k.id, k.account_id AS "accountId", k.hash, k.expires_at AS "expiresAt", k.scopes,
          a.is_operator AS "isOperator", a.disabled_at IS NOT NULL AS "isDisabled", ${OVERRIDES}
     FROM api_keys k JOIN accounts a ON a.id = k.account_id WHERE k.hash = $1`,
);

/** Reads and writes accounts and API keys with statements of their own; also used before Nest runs. */
@Injectable()
export class ApiKeysRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /**
   * Creates the operator with a first key in an empty database; does nothing in any other. Call it under the migration lock,
   * so that processes that start together create one operator.
   *
   * @param chosen the key to use instead of a generated one
   * @returns the generated key, to be shown once; null when none was generated
   */
  async ensureOperator(chosen: string | null): Promise<string | null> {
    const created = await this.database.query<unknown[]>(
      `INSERT INTO accounts (name, kind, is_operator) SELECT $1, 'user', true
        WHERE NOT EXISTS (SELECT 1 FROM accounts) RETURNING id`,
      [OPERATOR],
    );
    if (created.length === 0) return null;
    const key = await this.addKey(OPERATOR, 'first key', null, chosen ?? generateApiKey());
    return chosen === null ? key : null;
  }

  /**
   * Adds a key to an account, by the account's name.
   *
   * @param scopes null: all rights of the account
   * @returns the key; null without the account, or when the key exists
   */
  async addKey(account: string, name: string, scopes: string[] | null, key = generateApiKey()): Promise<string | null> {
    const created = await this.database.query<unknown[]>(
      `INSERT INTO api_keys (account_id, name, prefix, hash, scopes) SELECT id, $1, $2, $3, $4 FROM accounts WHERE name = $5
       ON CONFLICT (hash) DO NOTHING RETURNING id`,
      [name, prefixOf(key), hashApiKey(key), scopes, account],
    );
    return created.length > 0 ? key : null;
  }

  /** The account of this name, made as a user if there is none, and the oldest operator. */
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
   * Disables an account or enables it. Ends the logins, sessions and invitations of a disabled one, the latter two in tables of
   * the module `people`, which imports this one.
   *
   * @returns false for an operator, and when there is none
   */
  setDisabled(id: string, disabled: boolean): Promise<boolean> {
    return this.database.transaction(async (tx) => {
      const [changed] = await tx.query<[unknown[]]>(
        `UPDATE accounts SET disabled_at = CASE WHEN $2 THEN coalesce(disabled_at, now()) END,
                logins_epoch = logins_epoch + $2::boolean::int
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

  /** The epoch of the logins of an account; null for a disabled one, and when there is none. */
  async loginsEpochOf(accountId: string): Promise<number | null> {
    return (await LOGINS_EPOCH.findOne(this.database, [accountId]))?.loginsEpoch ?? null;
  }

  /**
   * Lets the browsers and OAuth logins that began with a key hang on another one, in tables of the modules `people` and
   * `authorization-server`, which import this one.
   */
  async moveLogins(tx: EntityManager, from: string, to: string): Promise<void> {
    await tx.query('UPDATE sessions SET key_id = $2 WHERE key_id = $1', [from, to]);
    await tx.query('UPDATE as_grants SET key_id = $2 WHERE key_id = $1', [from, to]);
  }

  /** The key of this hash; null when there is none. */
  findByHash(hash: Buffer): Promise<KeyRow | null> {
    return KEY_BY_HASH.findOne(this.database, [hash]);
  }

  /** The ids among these of keys that were neither revoked nor have expired, of enabled accounts. */
  async validAmong(keyIds: string[]): Promise<Set<string>> {
    const rows = await this.database.query<{ id: string }[]>(
      `SELECT k.id FROM api_keys k JOIN accounts a ON a.id = k.account_id
        WHERE k.id = ANY($1::uuid[]) AND (k.expires_at IS NULL OR k.expires_at > now()) AND a.disabled_at IS NULL`,
      [keyIds],
    );
    return new Set(rows.map(({ id }) => id));
  }

  /**
   * Revokes a key, and with `made` those that were made by it, also when it is gone itself.
   *
   * @param ofOthers counts keys of other accounts that were made by it
   * @returns the ids of the revoked keys
   */
  revoke(
    accountId: string,
    keyId: string,
    { made, ofOthers }: { made: boolean; ofOthers: boolean },
  ): Promise<string[]> {
    return this.database.transaction(async (tx) => {
      const revoked: string[] = [];
      for (;;) {
        // A key of another account ends nothing of this one, whoever asks.
        const [rows] = await tx.query<[{ id: string }[]]>(
          `DELETE FROM api_keys WHERE id IN (
             SELECT id FROM api_keys WHERE account_id = $1 AND id = $2
                 OR $3 AND (account_id = $1 OR $4) AND $2 = ANY(made_by)
                    AND NOT EXISTS (SELECT 1 FROM api_keys root WHERE root.id = $2 AND root.account_id <> $1)
              ORDER BY id FOR UPDATE)
           RETURNING id`,
          [accountId, keyId, made, ofOthers],
        );
        revoked.push(...rows.map(({ id }) => id));
        // Again: a key of the chain may have made one that this statement did not see, and waited for. It makes none now.
        if (rows.length === 0 || !made) return revoked;
      }
    });
  }

  /** Locks keys against revocation and changes, in the order of {@link revoke}. */
  async lock(tx: EntityManager, ids: string[]): Promise<void> {
    await tx.query('SELECT 1 FROM api_keys WHERE id = ANY($1::uuid[]) ORDER BY id FOR NO KEY UPDATE', [ids]);
  }

  /** Sets the last use of keys, by id. */
  async saveLastUses(ids: string[], uses: KeyUse[]): Promise<void> {
    await this.database.query(
      `UPDATE api_keys SET last_used_at = used.at, last_address = used.address
         FROM unnest($1::uuid[], $2::timestamptz[], $3::text[]) AS used(id, at, address)
        WHERE api_keys.id = used.id`,
      [ids, uses.map(({ at }) => at), uses.map(({ address }) => address)],
    );
  }
}
