import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { PreparedStatement } from '../../platform/database/prepared-statement.js';
import type { CredentialOwner } from './credentials.types.js';
import { OAuthClient } from './oauth-client.entity.js';
import { PendingAuthorization } from './pending-authorization.entity.js';
import type { UpstreamCredential } from './upstream-credential.entity.js';
import { deletionTime } from '../../platform/database/deletion-time.js';

/** The page of an expired link can report the expiry meanwhile. */
const KEPT_AFTER_EXPIRY = '1 day';

/** Timeout of a lock: a refresh holds the row of its credential for at most 10 s. */
const LOCK_TIMEOUT = '12s';

const tableOf = { server: 'servers', connection: 'connections' } as const satisfies Record<
  CredentialOwner['kind'],
  string
>;

type CallCredential = Pick<
  UpstreamCredential,
  'id' | 'upstreamUrl' | 'server' | 'sealedTokens' | 'generation' | 'expiresAt' | 'dueAt' | 'retryAt'
>;

const CREDENTIAL_BY_OWNER = new PreparedStatement<CallCredential>(
  `SELECT id, upstream_url AS "upstreamUrl", server, sealed_tokens AS "sealedTokens", generation,
          expires_at AS "expiresAt", due_at AS "dueAt", retry_at AS "retryAt"
     FROM upstream_credentials WHERE owner_kind = $1 AND owner_id = $2`,
);

@Injectable()
export class CredentialsRepository {
  constructor(private readonly database: DataSource) {}

  findForCalls({ kind, id }: CredentialOwner): Promise<CallCredential | null> {
    return CREDENTIAL_BY_OWNER.findOne(this.database, [kind, id]);
  }

  async deleteExpiredLinks(tx: EntityManager): Promise<void> {
    const now = await deletionTime(tx);
    if (!now) return;
    const sql = 'DELETE FROM pending_authorizations WHERE expires_at < $1::timestamptz - $2::interval';
    await tx.query(sql, [now, KEPT_AFTER_EXPIRY]);
  }

  /** @returns false if the authorization was deleted or completed */
  async lockPending(id: string, tx: EntityManager): Promise<boolean> {
    const rows = await tx.query<object[]>(
      'SELECT 1 FROM pending_authorizations WHERE id = $1 AND completed_at IS NULL FOR UPDATE',
      [id],
    );
    return rows.length > 0;
  }

  /** @returns false if the authorization was completed or has expired, or began in another browser */
  async bindBrowser(
    id: string,
    started: Record<'browserHash' | 'stateHash', Buffer> &
      Pick<PendingAuthorization, 'sealedVerifier' | 'accountId' | 'keyId' | 'loginsEpoch'>,
  ): Promise<boolean> {
    const { affected } = await this.database
      .createQueryBuilder()
      .update(PendingAuthorization)
      .set({ startedAt: new Date(), ...started })
      .where('id = :id AND completed_at IS NULL AND expires_at > now()', { id })
      .andWhere('(browser_hash IS NULL OR browser_hash = :browserHash)', { browserHash: started.browserHash })
      .execute();
    return affected === 1;
  }

  /** @returns false if the state was used, or began earlier than `startedAfter` */
  async claimState(id: string, stateHash: Buffer, startedAfter: Date): Promise<boolean> {
    const { affected } = await this.database
      .createQueryBuilder()
      .update(PendingAuthorization)
      .set({ stateHash: null })
      .where('id = :id AND state_hash = :stateHash', { id, stateHash })
      .andWhere('started_at > :startedAfter', { startedAfter })
      .execute();
    return affected === 1;
  }

  /** Deletes shared clients only. */
  async deleteEndedClients(issuer: string, redirectUri: string, endedBy: Date, tx: EntityManager): Promise<void> {
    await tx.query(
      `DELETE FROM oauth_clients
        WHERE issuer = $1 AND redirect_uri = $2 AND owner_id IS NULL AND secret_expires_at <= $3`,
      [issuer, redirectUri, endedBy],
    );
  }

  /**
   * Returns true if, within a day and since the last browser that returned, two browsers were sent to the server with this client and neither
   * returned: the server might have forgotten the client, and report it only on its own page.
   */
  async isUnanswered(clientId: string): Promise<boolean> {
    const [{ unanswered }] = await this.database.query<[{ unanswered: number }]>(
      `WITH sent AS (
         SELECT browser_hash, started_at, state_hash IS NULL AS is_answered FROM pending_authorizations
          WHERE client_row_id = $1 AND started_at > now() - interval '1 day'
       )
       SELECT count(DISTINCT browser_hash)::int AS unanswered FROM sent
        WHERE NOT is_answered
          AND started_at > coalesce((SELECT max(started_at) FROM sent WHERE is_answered), '-infinity')`,
      [clientId],
    );
    return unanswered >= 2;
  }

  /** Does nothing if another process has just stored a client for the same issuer. */
  async insertClient(client: Partial<OAuthClient>, tx: EntityManager): Promise<void> {
    await tx.createQueryBuilder().insert().into(OAuthClient).values(client).orIgnore().execute();
  }

  /** Locks the owner until the transaction ends: it cannot be deleted, and no second client of it can be stored. @returns false without the owner */
  async lockOwner({ kind, id }: CredentialOwner, tx: EntityManager): Promise<boolean> {
    const rows = await tx.query<object[]>(`SELECT 1 FROM ${tableOf[kind]} WHERE id = $1 FOR NO KEY UPDATE`, [id]);
    return rows.length > 0;
  }

  /** Deletes the one of this issuer, and others that no token needs. */
  async deleteClientsOf({ kind, id }: CredentialOwner, issuer: string, tx: EntityManager): Promise<void> {
    await tx.query(
      `DELETE FROM oauth_clients c WHERE owner_kind = $1 AND owner_id = $2
          AND (issuer = $3 OR NOT EXISTS (SELECT 1 FROM upstream_credentials u WHERE u.client_row_id = c.id))`,
      [kind, id, issuer],
    );
  }

  /** Limits the wait for locks. {@link isLockTimeout} recognizes the error. */
  async limitLockWait(tx: EntityManager): Promise<void> {
    await tx.query(`SET LOCAL lock_timeout = '${LOCK_TIMEOUT}'`);
  }
}

/** Returns true for SQLSTATE 55P03: the row was not free in time. */
export function isLockTimeout(error: unknown): boolean {
  return (error as { driverError?: { code?: string } }).driverError?.code === '55P03';
}
