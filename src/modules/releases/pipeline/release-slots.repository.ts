/**
 * Shares the workers among accounts: all workers together run three releases of an account concurrently, so that
 * upstreams that never respond occupy only the slots of their own account.
 *
 * A slot is a row of `releases` with a lease. A release without a free slot waits with `lease_until = 'infinity'` and
 * without a job; the worker that finishes a release of the account enqueues the oldest waiting ones.
 *
 * A dead worker keeps its slot until its lease expires.
 */
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { Tuning } from '../../../config/tuning.js';
import { SERVER_NAMES, type LogNames } from '../../../platform/telemetry/log-names.repository.js';
import { leaseExpirySql, queueDeadlineSql, type Claim } from '../releases.repository.js';
import type { RunReleaseJob } from '../releases.queue.js';

/** Counts all workers together; a worker runs 8 releases of any accounts. */
const ACCOUNT_SLOTS = 3;

const WAITS = `'infinity'`;

const WITH_ACCOUNT = `releases r JOIN servers s ON s.id = r.server_id JOIN namespaces n ON n.id = s.namespace_id`;

function freeSlots(accountId: string): string {
  return `(SELECT GREATEST(0, ${ACCOUNT_SLOTS} - count(*)) FROM ${WITH_ACCOUNT}
    WHERE n.account_id = ${accountId} AND r.status = 'WORKING' AND r.lease_holder IS NOT NULL AND r.lease_until >= now())`;
}

/** SQL condition of a release without a claim; $1 is the id, $2 the attempt. */
const IS_FREE = `id = $1 AND attempt = $2 AND status IN ('QUEUED', 'WORKING')
  AND (lease_holder IS NULL OR lease_until < now())`;

@Injectable()
export class ReleaseSlotsRepository {
  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly tuning: Tuning,
  ) {}

  /**
   * Claims a slot for a release, which waits if its account has no free slot.
   *
   * @returns the server, and the account, whose next release is due when this one finishes; null if the release was not
   * claimed
   */
  async claimSlot(claim: Claim): Promise<Required<Pick<LogNames, 'server' | 'account'>> | null> {
    const { releaseId, attempt, holder } = claim;
    return this.database.transaction(async (tx) => {
      const sql = `SELECT ${SERVER_NAMES} FROM ${WITH_ACCOUNT} WHERE r.id = $1`;
      const [names] = await tx.query<{ server: string; account: string }[]>(sql, [releaseId]);
      if (!names) return null;
      await lock(names.account, tx);
      const [rows] = await tx.query<[unknown[]]>(
        `UPDATE releases SET status = 'WORKING', lease_holder = $3, lease_until = ${leaseExpirySql(this.tuning.releaseLeaseMs)},
                updated_at = CASE status WHEN 'WORKING' THEN updated_at ELSE now() END
          WHERE ${IS_FREE} AND ${freeSlots('$4')} > 0
          RETURNING id`,
        [releaseId, attempt, holder, names.account],
      );
      if (rows.length > 0) return names;
      const wait = `UPDATE releases SET lease_holder = NULL, lease_until = ${WAITS} WHERE ${IS_FREE}`;
      await tx.query(wait, [releaseId, attempt]);
      return null;
    });
  }

  /** Claims free slots for waiting releases, oldest first. @returns their jobs */
  async endWaits(accountId: string): Promise<RunReleaseJob[]> {
    return this.database.transaction(async (tx) => {
      await lock(accountId, tx);
      const [rows] = await tx.query<[RunReleaseJob[]]>(
        `UPDATE releases SET attempt = attempt + 1, lease_until = ${queueDeadlineSql(this.tuning.releaseLeaseMs)}
          WHERE id IN (SELECT r.id FROM ${WITH_ACCOUNT}
                        WHERE n.account_id = $1 AND r.status IN ('QUEUED', 'WORKING') AND r.lease_until = ${WAITS}
                        ORDER BY r.seq LIMIT ${freeSlots('$1')} FOR UPDATE OF r SKIP LOCKED)
          RETURNING id AS "releaseId", attempt`,
        [accountId],
      );
      return rows;
    });
  }

  async waitingAccounts(): Promise<string[]> {
    const rows = await this.database.query<{ id: string }[]>(
      `SELECT DISTINCT n.account_id AS id FROM ${WITH_ACCOUNT}
        WHERE r.status IN ('QUEUED', 'WORKING') AND r.lease_until = ${WAITS}`,
    );
    return rows.map(({ id }) => id);
  }
}

async function lock(accountId: string, tx: EntityManager): Promise<void> {
  await tx.query(`SELECT pg_advisory_xact_lock(hashtextextended('release slots ' || $1, 0))`, [accountId]);
}
