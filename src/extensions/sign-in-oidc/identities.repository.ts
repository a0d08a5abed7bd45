import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { type Actor, transactionOf } from '../../extension.js';
import type { Identity } from './identity.js';

export interface SigningIn extends Identity {
  refreshToken: string | null;
  /** The ID token, sealed; null if it is too long to be sent back. */
  idToken: string | null;
}

/** An identity that this process checks. Another check or a sign-in changes `checkedAt`. */
export interface CheckedIdentity extends Pick<Identity, 'issuer' | 'subject'> {
  refreshToken: string;
  checkedAt: Date;
}

export interface LinkedIdentity extends Pick<Identity, 'issuer' | 'subject' | 'name'> {
  signedInAt: Date;
}

/** Assignments of a sign-in. They keep the stored refresh token if there is no new one: some issuers send one only at the first sign-in. */
const SIGNED_IN = 'signed_in_at = now(), checked_at = now(), failed_at = NULL';

const CLAIMED_MAX = 10;

@Injectable()
export class IdentitiesRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /**
   * @param create creates the account of a new identity within the transaction; throws if the identity cannot have one
   * @returns the id of the account
   */
  signIn(identity: SigningIn, create: (tx: EntityManager) => Promise<string>): Promise<string> {
    return this.database.transaction(async (tx) => {
      await lock(identity, tx);
      const [[identityRow]] = await tx.query<[{ accountId: string }[]]>(
        `UPDATE identities SET name = $3, refresh_token = coalesce($4, refresh_token), id_token = $5, ${SIGNED_IN}
          WHERE issuer = $1 AND subject = $2
         RETURNING account_id AS "accountId"`,
        [identity.issuer, identity.subject, identity.name, identity.refreshToken, identity.idToken],
      );
      if (identityRow) return identityRow.accountId;
      const accountId = await create(tx);
      await transactionOf(tx, { accountId }, (ownTx) => add(identity, accountId, ownTx));
      return accountId;
    });
  }

  /** @returns false if the identity belongs to another account */
  link(identity: SigningIn, person: Actor): Promise<boolean> {
    return transactionOf(this.database, person, async (tx) => {
      await lock(identity, tx);
      return add(identity, person.accountId, tx);
    });
  }

  /**
   * Removes an identity from an account, unless it is the only way to sign in: the account has neither a password nor
   * another identity.
   *
   * @param current the issuer, and whether passwords work
   * @returns whether the account has another identity at the issuer; null if nothing was removed
   */
  unlink(
    { issuer, subject }: Pick<Identity, 'issuer' | 'subject'>,
    person: Actor,
    current: { issuer: string; hasPasswords: boolean },
  ): Promise<boolean | null> {
    return transactionOf(this.database, person, async (tx) => {
      // Runs one at a time: two concurrent requests could remove the last two ways to sign in.
      await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`slipway.unlink ${person.accountId}`]);
      const [[removed]] = await tx.query<[{ hasOther: boolean }[]]>(
        `WITH other AS (SELECT EXISTS (SELECT FROM identities
           WHERE account_id = $3 AND issuer = $4 AND (issuer, subject) <> ($1, $2)) AS exists)
         DELETE FROM identities i USING other WHERE i.issuer = $1 AND i.subject = $2 AND i.account_id = $3
            AND (other.exists OR $5 AND EXISTS (SELECT FROM people p WHERE p.account_id = $3 AND p.password_hash IS NOT NULL))
         RETURNING other.exists AS "hasOther"`,
        [issuer, subject, person.accountId, current.issuer, current.hasPasswords],
      );
      return removed?.hasOther ?? null;
    });
  }

  /** Claims identities whose last check was an hour ago, so that no other process checks them. */
  async claimDue(issuer: string): Promise<CheckedIdentity[]> {
    const [claimed] = await this.database.query<[CheckedIdentity[]]>(
      `UPDATE identities SET checked_at = now() WHERE (issuer, subject) IN (
         SELECT issuer, subject FROM identities WHERE issuer = $1 AND refresh_token IS NOT NULL
            AND coalesce(checked_at, signed_in_at) <= now() - interval '1 hour'
          ORDER BY coalesce(checked_at, signed_in_at), subject LIMIT ${CLAIMED_MAX} FOR UPDATE SKIP LOCKED)
       RETURNING issuer, subject, refresh_token AS "refreshToken", checked_at AS "checkedAt"`,
      [issuer],
    );
    return claimed;
  }

  /**
   * Stores a successful check. @param refreshToken sealed; null: unchanged @returns the account; null if the person
   * signed in meanwhile
   */
  async pass({ issuer, subject, checkedAt }: CheckedIdentity, refreshToken: string | null): Promise<string | null> {
    const [[passed]] = await this.database.query<[{ accountId: string }[]]>(
      `UPDATE identities SET failed_at = NULL, refresh_token = coalesce($4, refresh_token)
        WHERE issuer = $1 AND subject = $2 AND checked_at = $3 RETURNING account_id AS "accountId"`,
      [issuer, subject, checkedAt, refreshToken],
    );
    return passed?.accountId ?? null;
  }

  /**
   * Stores a failed check, unless the person signed in meanwhile. @param suspend is called within the transaction,
   * after the second consecutive failure
   */
  fail(
    { issuer, subject, checkedAt }: CheckedIdentity,
    suspend: (accountId: string, tx: EntityManager) => Promise<void>,
  ): Promise<void> {
    return this.database.transaction(async (tx) => {
      const [[failed]] = await tx.query<[{ accountId: string; isSecond: boolean }[]]>(
        `UPDATE identities SET failed_at = coalesce(failed_at, checked_at), refresh_token = CASE WHEN failed_at IS NULL THEN refresh_token END
          WHERE issuer = $1 AND subject = $2 AND checked_at = $3
         RETURNING account_id AS "accountId", failed_at < checked_at AS "isSecond"`,
        [issuer, subject, checkedAt],
      );
      if (failed?.isSecond) await suspend(failed.accountId, tx);
    });
  }

  /** Finds the identity with which an account last signed in; null without one at this issuer. */
  async findLast(accountId: string, issuer: string): Promise<{ subject: string; idToken: string | null } | null> {
    const [last] = await this.database.query<{ subject: string; idToken: string | null }[]>(
      `SELECT subject, id_token AS "idToken" FROM identities WHERE account_id = $1 AND issuer = $2
        ORDER BY signed_in_at DESC, subject LIMIT 1`,
      [accountId, issuer],
    );
    return last ?? null;
  }

  list(accountId: string): Promise<LinkedIdentity[]> {
    return this.database.query(
      `SELECT issuer, subject, name, signed_in_at AS "signedInAt" FROM identities WHERE account_id = $1
        ORDER BY signed_in_at DESC, issuer, subject LIMIT 100`,
      [accountId],
    );
  }
}

/** Blocks other transactions with this identity until this one ends. */
async function lock({ issuer, subject }: Identity, tx: EntityManager): Promise<void> {
  await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`slipway.identities ${issuer} ${subject}`]);
}

/** @returns false if the identity belongs to another account */
async function add(
  { issuer, subject, name, refreshToken, idToken }: SigningIn,
  accountId: string,
  tx: EntityManager,
): Promise<boolean> {
  const added = await tx.query<unknown[]>(
    `INSERT INTO identities AS i (issuer, subject, account_id, name, refresh_token, id_token) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (issuer, subject) DO UPDATE SET name = $4, refresh_token = coalesce($5, i.refresh_token), id_token = $6, ${SIGNED_IN}
       WHERE i.account_id = $3
     RETURNING issuer`,
    [issuer, subject, accountId, name, refreshToken, idToken],
  );
  return added.length > 0;
}
