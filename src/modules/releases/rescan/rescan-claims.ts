import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { Env } from '../../../config/env.js';
import type { ReleaseType } from '../../servers/server.types.js';

/** How many servers of one account are scanned at once in the whole service, so that it does not hold up the others. */
const ACCOUNT_SCANS = 2;

/** So many of those that were asked for, and of those that are due longest, are chosen from. */
const CANDIDATES_MAX = 1_000;

/** Servers at one URL that share a scan. */
const SHARED_MAX = 200;

/** What waits for a slot, and cards and tokens that are asked for beside the scan. */
const ASIDE_MS = 60_000;

/** A server's current release in the hands of one process, to be scanned. */
export interface ClaimedRescan {
  serverId: string;
  releaseId: string;
  type: ReleaseType;
  upstreamUrl: string | null;
  /** When somebody asked for it; null when its time had come. */
  askedAt: Date | null;
  sealedCredentials: string | null;
  holder: string;
  failures: number;
  told: string | null;
  /** Nobody's credentials are sent to its URL, so what one sees is what all see. */
  isShared: boolean;
}

const COLUMNS = `r.server_id AS "serverId", l.id AS "releaseId", l.type, l.upstream_url AS "upstreamUrl",
  r.asked_at AS "askedAt", r.sealed_credentials AS "sealedCredentials", r.holder, r.failures, r.told,
  l.type = 'external_shttp' AND ${isOpen('r')} AS "isShared"`;

/** Nothing is known that would be sent with a request of this row's server. */
function isOpen(row: string): string {
  return `${row}.upstream_url IS NOT NULL AND ${row}.sealed_credentials IS NULL AND NOT EXISTS (
    SELECT 1 FROM upstream_credentials u WHERE u.owner_kind = 'server' AND u.owner_id = ${row}.server_id)`;
}

/** Nobody has this row in hand. */
const IS_FREE = `(holder IS NULL OR next_at <= now())`;

/**
 * Gives each rescan to one process, by moving its time past the end of the scan: those of a process that dies are found
 * when that time has come. Processes claim one after another, which keeps all servers at one public URL in one hand.
 */
@Injectable()
export class RescanClaims {
  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly env: Env,
  ) {}

  /** @param max of what is due; what shares its URL comes along */
  async take(max: number): Promise<ClaimedRescan[]> {
    return this.database.transaction(async (tx) => {
      const [{ mine }] = await tx.query<[{ mine: boolean }]>(
        `SELECT pg_try_advisory_xact_lock(hashtext('slipway.releases.rescan')) AS mine`,
      );
      if (!mine) return [];
      const ids = await this.due(max, tx);
      if (ids.length === 0) return [];
      const due = await this.hold('server_id = ANY($3) AND next_at <= now()', ids, tx);
      const urls = due.flatMap(({ isShared, upstreamUrl }) => (isShared && upstreamUrl !== null ? [upstreamUrl] : []));
      if (urls.length === 0) return due;
      const others = `upstream_url = ANY($3) AND next_at IS NOT NULL AND ${IS_FREE} AND ${isOpen('server_rescans')}`;
      return [...due, ...(await this.hold(others, urls, tx))];
    });
  }

  /** Gives back what was not scanned: it is due in so many seconds. */
  async giveBack(claimed: ClaimedRescan[], seconds: number): Promise<void> {
    await this.database.query(
      `UPDATE server_rescans SET holder = NULL, next_at = now() + $1 * interval '1 second'
        WHERE (server_id, holder) IN (SELECT * FROM unnest($2::uuid[], $3::uuid[]))`,
      [seconds, claimed.map(({ serverId }) => serverId), claimed.map(({ holder }) => holder)],
    );
  }

  /** The servers to scan next: those that somebody asked for, then those that are due longest. */
  private async due(max: number, tx: EntityManager): Promise<string[]> {
    const account = 'JOIN servers s ON s.id = r.server_id JOIN namespaces n ON n.id = s.namespace_id';
    // Those of accounts that have enough under way are passed over first: however many they are, they hide nobody else's.
    const free = (which: string, order: string) => `(
      SELECT r.server_id, r.asked_at, r.next_at, n.account_id FROM server_rescans r ${account}
       WHERE ${which} AND r.next_at <= now() AND s.current_release_id IS NOT NULL
         AND n.account_id NOT IN (SELECT account_id FROM busy WHERE scans >= ${ACCOUNT_SCANS})
       ORDER BY ${order} LIMIT ${CANDIDATES_MAX})`;
    const rows = await tx.query<{ id: string }[]>(
      `WITH busy AS (
         SELECT n.account_id, count(*) AS scans FROM server_rescans r ${account}
          WHERE r.holder IS NOT NULL AND r.next_at > now() GROUP BY 1
       ), candidates AS (
         SELECT *, row_number() OVER (PARTITION BY account_id ORDER BY asked_at, next_at) AS place
           FROM (${free('r.asked_at IS NOT NULL', 'r.asked_at')} UNION ${free('$2', 'r.next_at')}) AS found
       )
       SELECT server_id AS id FROM candidates LEFT JOIN busy USING (account_id)
        WHERE place + coalesce(scans, 0) <= ${ACCOUNT_SCANS} ORDER BY asked_at, next_at LIMIT $1`,
      [max, this.env.releaseRescanHours > 0],
    );
    return rows.map(({ id }) => id);
  }

  /** @param which of the rows, in SQL, with `values` as $3 */
  private async hold(which: string, values: string[], tx: EntityManager): Promise<ClaimedRescan[]> {
    // A module is tried at two paths.
    const until = new Date(
      Date.now() + 2 * this.env.releaseScanTimeoutMs + this.env.upstreamConnectTimeoutMs + ASIDE_MS,
    );
    const [rows] = await tx.query<[ClaimedRescan[]]>(
      `UPDATE server_rescans r SET next_at = $1, holder = $2
         FROM servers s, releases l
        WHERE r.server_id IN (SELECT server_id FROM server_rescans WHERE ${which}
                               LIMIT ${SHARED_MAX} FOR UPDATE SKIP LOCKED)
          AND s.id = r.server_id AND l.id = s.current_release_id
        RETURNING ${COLUMNS}`,
      [until, randomUUID(), values],
    );
    return rows;
  }
}
