import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import type { Identity } from './identity.js';

/** An identity that signs in, with the sealed refresh token of its issuer; null for none. */
export interface SigningIn extends Identity {
  refreshToken: string | null;
}

/** An identity of an account. */
export interface LinkedIdentity {
  name: string;
  signedInAt: Date;
}

/** SQL on the table `identities`. */
@Injectable()
export class IdentitiesRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /**
   * Finds the account of an identity that signs in, and notes the sign-in.
   *
   * @param create creates the account of a new identity within the transaction; throws for one that gets none
   * @returns the id of the account
   */
  signIn(identity: SigningIn, create: (tx: EntityManager) => Promise<string>): Promise<string> {
    return this.database.transaction(async (tx) => {
      await lock(identity, tx);
      const [[identityRow]] = await tx.query<[{ accountId: string }[]]>(
        `UPDATE identities SET name = $3, refresh_token = $4, signed_in_at = now() WHERE issuer = $1 AND subject = $2
         RETURNING account_id AS "accountId"`,
        [identity.issuer, identity.subject, identity.name, identity.refreshToken],
      );
      if (identityRow) return identityRow.accountId;
      const accountId = await create(tx);
      await add(identity, accountId, tx);
      return accountId;
    });
  }

  /** Adds an identity to an account. @returns false if it is that of another account */
  link(identity: SigningIn, accountId: string): Promise<boolean> {
    return this.database.transaction(async (tx) => {
      await lock(identity, tx);
      return add(identity, accountId, tx);
    });
  }

  /** Identities of an account, the last used first. */
  list(accountId: string): Promise<LinkedIdentity[]> {
    return this.database.query(
      `SELECT name, signed_in_at AS "signedInAt" FROM identities WHERE account_id = $1
        ORDER BY signed_in_at DESC, issuer, subject LIMIT 100`,
      [accountId],
    );
  }
}

/** Keeps other transactions with this identity waiting until this one ends. */
async function lock({ issuer, subject }: Identity, tx: EntityManager): Promise<void> {
  await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`slipway.identities ${issuer} ${subject}`]);
}

/** Adds an identity to an account. @returns false if it is that of another account */
async function add(
  { issuer, subject, name, refreshToken }: SigningIn,
  accountId: string,
  tx: EntityManager,
): Promise<boolean> {
  const added = await tx.query<unknown[]>(
    `INSERT INTO identities AS i (issuer, subject, account_id, name, refresh_token) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (issuer, subject) DO UPDATE SET name = $4, refresh_token = $5, signed_in_at = now() WHERE i.account_id = $3
     RETURNING issuer`,
    [issuer, subject, accountId, name, refreshToken],
  );
  return added.length > 0;
}
