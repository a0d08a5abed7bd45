import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { Env } from '../../../config/env.js';
import { leaseExpirySql, queueDeadlineSql } from '../release-lease.js';
import { ReleasesQueue } from '../releases.queue.js';

/** How many releases of one account are worked on at once in the whole service; a worker runs 8, of whomever. */
const ACCOUNT_SLOTS = 3;

/** Stands in `lease_until` of a release that no job is on its way for: it waits until its account has a slot. */
const WAITS = `'infinity'`;

const WITH_ACCOUNT = `releases r JOIN servers s ON s.id = r.server_id JOIN namespaces n ON n.id = s.namespace_id`;

/** How many slots an account has left. A worker that died holds its slot until its lease is over. */
function freeSlots(accountId: string): string {
  return `(SELECT GREATEST(0, ${ACCOUNT_SLOTS} - count(*)) FROM ${WITH_ACCOUNT}
    WHERE n.account_id = ${accountId} AND r.status = 'WORKING' AND r.lease_holder IS NOT NULL AND r.lease_until >= now())`;
}

/**
 * Shares the workers among accounts: upstreams that never answer keep a few slots busy, and not everybody waiting.
 *
 * Whoever counts an account's slots locks the account first. So a release that is told to wait while another one ends is
 * either seen by who ends it, or sees the slot that became free.
 */
@Injectable()
export class ReleaseSlots {
  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly queue: ReleasesQueue,
    private readonly env: Env,
  ) {}

  /**
   * Takes a release for `holder`, or has it wait for a slot of its account.
   *
   * @returns the account, whose next release is due when this one ends; null when it was not taken
   */
  async take(releaseId: string, attempt: number, holder: string): Promise<string | null> {
    const isFree = `id = $1 AND attempt = $2 AND status IN ('QUEUED', 'WORKING')
          AND (lease_holder IS NULL OR lease_until < now())`;
    return this.database.transaction(async (tx) => {
      const accountId = await accountOf(releaseId, tx);
      if (accountId === null) return null;
      await lock(accountId, tx);
      const [taken] = await tx.query<[unknown[]]>(
        `UPDATE releases SET status = 'WORKING', lease_holder = $3, lease_until = ${leaseExpirySql(this.env.releaseLeaseMs)},
                updated_at = CASE status WHEN 'WORKING' THEN updated_at ELSE now() END
          WHERE ${isFree} AND ${freeSlots('$4')} > 0
          RETURNING id`,
        [releaseId, attempt, holder, accountId],
      );
      if (taken.length > 0) return accountId;
      const waits = `UPDATE releases SET lease_holder = NULL, lease_until = ${WAITS} WHERE ${isFree}`;
      await tx.query(waits, [releaseId, attempt]);
      return null;
    });
  }

  /** Asks for the oldest releases of an account that wait, as many as it has slots for. */
  async next(accountId: string): Promise<void> {
    const due = await this.database.transaction(async (tx) => {
      await lock(accountId, tx);
      const [rows] = await tx.query<[{ id: string; attempt: number }[]]>(
        `UPDATE releases SET attempt = attempt + 1, lease_until = ${queueDeadlineSql(this.env.releaseLeaseMs)}
          WHERE id IN (SELECT r.id FROM ${WITH_ACCOUNT}
                        WHERE n.account_id = $1 AND r.status IN ('QUEUED', 'WORKING') AND r.lease_until = ${WAITS}
                        ORDER BY r.seq LIMIT ${freeSlots('$1')} FOR UPDATE OF r SKIP LOCKED)
          RETURNING id, attempt`,
        [accountId],
      );
      return rows;
    });
    for (const { id, attempt } of due) this.queue.enqueue({ releaseId: id, attempt });
  }

  /** Does so for every account: whoever should have asked may have died. */
  async nextOfAll(): Promise<void> {
    const accounts = await this.database.query<{ id: string }[]>(
      `SELECT DISTINCT n.account_id AS id FROM ${WITH_ACCOUNT}
        WHERE r.status IN ('QUEUED', 'WORKING') AND r.lease_until = ${WAITS}`,
    );
    for (const { id } of accounts) await this.next(id);
  }
}

async function accountOf(releaseId: string, tx: EntityManager): Promise<string | null> {
  const sql = `SELECT n.account_id AS id FROM ${WITH_ACCOUNT} WHERE r.id = $1`;
  const [account] = await tx.query<{ id: string }[]>(sql, [releaseId]);
  return account?.id ?? null;
}

async function lock(accountId: string, tx: EntityManager): Promise<void> {
  await tx.query(`SELECT pg_advisory_xact_lock(hashtextextended('release slots ' || $1, 0))`, [accountId]);
}
