import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, In, type EntityManager } from 'typeorm';
import type { QueryDeepPartialEntity } from 'typeorm/query-builder/QueryPartialEntity.js';
import { AccountQuotas } from '../auth/account-quota.decorator.js';
import { Tuning } from '../../config/tuning.js';
import type { ServerSnapshot } from '../servers/server.types.js';
import { NotFoundError } from '../../platform/errors/domain-error.js';
import { isFinal, isResumable, statusesBefore, type ReleaseStatus } from './release-state.js';
import { Release, type ReleaseArtifact } from './release.entity.js';
import { deletionTime } from '../../platform/database/deletion-time.js';

/** Columns that are read only by name: each can have megabytes, or is secret. */
type HiddenColumn = 'serverCard' | 'sealedScanCredentials' | 'snapshot';

export interface Claim {
  releaseId: string;
  attempt: number;
  holder: string;
}

/** Columns that a worker changes; another status releases its lease. */
export type ReleaseChange = QueryDeepPartialEntity<Release> & { status?: ReleaseStatus };

export type ExpiredRelease = Pick<Release, 'id' | 'attempt' | 'stage'>;

export type Bundle = Pick<ReleaseArtifact, 'releaseId' | 'hash' | 'bytes'> & { publishedAt: Date };

const DELETED_MAX = 1_000;

/** Returns the SQL of a lease's expiry by the database's clock, which all workers share. */
export function leaseExpirySql(leaseMs: number): string {
  return `now() + interval '${Math.round(leaseMs)} milliseconds'`;
}

/** Returns the deadline of a queued job: four leases, because a queue can be busy. */
export function queueDeadlineSql(leaseMs: number): string {
  return leaseExpirySql(4 * leaseMs);
}

/** Returns the SQL of expired rows, without those that another transaction has locked. */
function expired(condition: string): string {
  return `id IN (SELECT id FROM releases WHERE ${condition} AND lease_until < now() FOR UPDATE SKIP LOCKED)`;
}

/** Removes scan credentials as soon as the status is final. */
function endOfLease(status: ReleaseStatus): QueryDeepPartialEntity<Release> {
  return {
    status,
    leaseHolder: null,
    leaseUntil: null,
    updatedAt: () => 'now()',
    ...(isFinal(status) ? { sealedScanCredentials: null } : {}),
  };
}

const ACCOUNT_RELEASES = `namespaces n JOIN servers s ON s.namespace_id = n.id JOIN releases r ON r.server_id = s.id
  WHERE n.account_id = a.id`;

@AccountQuotas({
  counts: {
    releases: `SELECT count(*) FROM ${ACCOUNT_RELEASES}`,
    // A file that several releases share is counted once.
    artifactBytes: `SELECT coalesce(sum(bytes), 0) FROM (SELECT DISTINCT f.hash, f.bytes FROM release_artifacts f
      JOIN (SELECT r.id FROM ${ACCOUNT_RELEASES}) AS r ON r.id = f.release_id) AS files`,
  },
  owners: {
    releaseId: `SELECT n.account_id FROM releases r JOIN servers s ON s.id = r.server_id
      JOIN namespaces n ON n.id = s.namespace_id WHERE r.id = $1`,
  },
})
@Injectable()
export class ReleasesRepository {
  private readonly leaseMs: number;

  constructor(
    @InjectDataSource() private readonly database: DataSource,
    { releaseLeaseMs }: Tuning,
  ) {
    this.leaseMs = releaseLeaseMs;
  }

  findWith(id: string, columns: HiddenColumn[]): Promise<Release | null> {
    return this.database.manager
      .createQueryBuilder(Release, 'release')
      .addSelect(columns.map((column) => `release.${column}`))
      .where({ id })
      .getOne();
  }

  /**
   * Finds the bundle of the current release, or else of the latest successful one with a bundle. @throws NotFoundError
   */
  async findBundle(serverId: string): Promise<Bundle> {
    const [bundle] = await this.database.query<Bundle[]>(
      `SELECT r.id AS "releaseId", a.hash, a.bytes, r.updated_at AS "publishedAt"
         FROM releases r
         JOIN release_artifacts a ON a.release_id = r.id AND a.kind = 'bundle'
         JOIN servers s ON s.id = r.server_id
        WHERE r.server_id = $1 AND r.status = 'SUCCESS'
        ORDER BY r.id = s.current_release_id DESC NULLS LAST, r.seq DESC
        LIMIT 1`,
      [serverId],
    );
    if (!bundle) throw new NotFoundError('Bundle not found: the server has no successful release of type stdio');
    return bundle;
  }

  async accountNames(ids: string[]): Promise<Map<string, string>> {
    const rows = await this.database.query<{ id: string; name: string }[]>(
      'SELECT id, name FROM accounts WHERE id = ANY($1::uuid[])',
      [ids],
    );
    return new Map(rows.map(({ id, name }) => [id, name]));
  }

  /**
   * Stores a release with the current time, not that of the start of the transaction, which might have waited for the server's
   * lock.
   */
  async insertQueued(release: QueryDeepPartialEntity<Release>, tx: EntityManager): Promise<void> {
    const leaseUntil = () => queueDeadlineSql(this.leaseMs);
    const clock = () => 'clock_timestamp()';
    await tx
      .createQueryBuilder()
      .insert()
      .into(Release)
      .values({ ...release, status: 'QUEUED', leaseUntil, createdAt: clock, updatedAt: clock })
      .updateEntity(false)
      .execute();
  }

  async cancelUnfinished(serverId: string, tx: EntityManager): Promise<Pick<Release, 'id' | 'stage'>[]> {
    const { raw } = (await tx
      .createQueryBuilder()
      .update(Release)
      .set(endOfLease('CANCELLED'))
      .where({ serverId, status: In(statusesBefore('CANCELLED')) })
      .returning(['id', 'stage'])
      .execute()) as { raw: Pick<Release, 'id' | 'stage'>[] };
    return raw;
  }

  /** @returns the next attempt; null if the release did not wait for authorization */
  async resume(id: string): Promise<number | null> {
    const { raw } = (await this.database.manager
      .createQueryBuilder()
      .update(Release)
      .set({
        status: 'WORKING',
        attempt: () => 'attempt + 1',
        recoveries: 0,
        leaseHolder: null,
        leaseUntil: () => queueDeadlineSql(this.leaseMs),
        updatedAt: () => 'now()',
      })
      .where({ id, status: In(statusesBefore('WORKING').filter(isResumable)) })
      .returning(['attempt'])
      .execute()) as { raw: { attempt: number }[] };
    return raw[0]?.attempt ?? null;
  }

  /** @returns false, with nothing changed, if the worker lost its lease */
  async updateHeld(
    { releaseId: id, attempt, holder: leaseHolder }: Claim,
    change: ReleaseChange,
    tx: EntityManager = this.database.manager,
  ): Promise<boolean> {
    const end = change.status === undefined ? {} : endOfLease(change.status);
    const { affected } = await tx
      .createQueryBuilder()
      .update(Release)
      .set({ attempt, ...end, ...change })
      .where({ id, attempt, leaseHolder, status: 'WORKING' })
      .execute();
    return Boolean(affected);
  }

  /** @returns false if the lease was lost */
  renewLease(claim: Claim): Promise<boolean> {
    return this.updateHeld(claim, { leaseUntil: () => leaseExpirySql(this.leaseMs) });
  }

  /** Hands back a lease, so that the next attempt can claim the release. @returns false if the lease was lost */
  handBackLease(claim: Claim): Promise<boolean> {
    const leaseUntil = () => queueDeadlineSql(this.leaseMs);
    return this.updateHeld(claim, { attempt: claim.attempt + 1, leaseHolder: null, leaseUntil });
  }

  /** Limits the idle time, so that a frozen worker holds no row locks for longer than a lease. */
  async limitIdleTime(tx: EntityManager): Promise<void> {
    await tx.query(`SET LOCAL idle_in_transaction_session_timeout = ${Math.round(this.leaseMs)}`);
  }

  async saveSnapshot(id: string, snapshot: ServerSnapshot, tx: EntityManager): Promise<void> {
    await tx.query('UPDATE releases SET snapshot = $2::jsonb WHERE id = $1', [id, JSON.stringify(snapshot)]);
  }

  /** Restarts releases whose worker died (`wasHeld`) or whose job was lost. */
  async startNextAttempts(): Promise<(ExpiredRelease & { wasHeld: boolean })[]> {
    const [rows] = await this.database.query<[(ExpiredRelease & { wasHeld: boolean })[]]>(
      `UPDATE releases SET attempt = attempt + 1, lease_holder = NULL, lease_until = ${queueDeadlineSql(this.leaseMs)},
              recoveries = recoveries + CASE WHEN expired.held THEN 1 ELSE 0 END
         FROM (SELECT id AS expired_id, lease_holder IS NOT NULL AS held FROM releases
                WHERE status IN ('QUEUED', 'WORKING') AND lease_until < now() FOR UPDATE SKIP LOCKED) expired
        WHERE id = expired_id
        RETURNING id, attempt, stage, held AS "wasHeld"`,
    );
    return rows;
  }

  /** Sets INTERNAL_ERROR after more than `recoveriesMax` deaths of workers. */
  async failUnrecoverable(recoveriesMax: number, tx: EntityManager): Promise<ExpiredRelease[]> {
    const [rows] = await tx.query<[ExpiredRelease[]]>(
      `UPDATE releases SET status = 'INTERNAL_ERROR', lease_holder = NULL, lease_until = NULL, updated_at = now(),
              sealed_scan_credentials = NULL
        WHERE ${expired(`status = 'WORKING' AND lease_holder IS NOT NULL AND recoveries >= ${recoveriesMax}`)}
        RETURNING id, attempt, stage`,
    );
    return rows;
  }

  /**
   * Deletes finished releases that are not current, not among the newest `keep` of their server, and older than `days`.
   * Skips a release that is being promoted, which is locked.
   *
   * @returns the number deleted, at most 1,000
   */
  async deleteOld(keep: number, days: number): Promise<number> {
    const now = await deletionTime(this.database);
    if (!now) return 0;
    const [, deleted] = await this.database.query<[unknown, number]>(
      `DELETE FROM releases WHERE id IN (
         SELECT r.id FROM releases r JOIN servers s ON s.id = r.server_id
          WHERE r.created_at < $3::timestamptz - make_interval(days => $2) AND r.status NOT IN ('QUEUED', 'WORKING', 'AUTH_REQUIRED')
            AND r.id IS DISTINCT FROM s.current_release_id
            AND (SELECT count(*) FROM releases newer WHERE newer.server_id = r.server_id AND newer.seq > r.seq) >= $1
          LIMIT ${DELETED_MAX} FOR UPDATE OF r, s SKIP LOCKED)`,
      [keep, days, now],
    );
    return deleted;
  }

  async timeOutAuthorization(tx: EntityManager): Promise<ExpiredRelease[]> {
    const [rows] = await tx.query<[ExpiredRelease[]]>(
      `UPDATE releases SET status = 'AUTH_TIMEOUT', lease_until = NULL, updated_at = now()
        WHERE ${expired("status = 'AUTH_REQUIRED'")}
        RETURNING id, attempt, stage`,
    );
    return rows;
  }
}
