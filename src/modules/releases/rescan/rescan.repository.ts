import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { Env } from '../../../config/env.js';
import { Tuning } from '../../../config/tuning.js';
import { LogNamesRepository, type LogNames } from '../../../platform/telemetry/log-names.repository.js';
import type { ReleaseType } from '../../servers/server.types.js';
import { CHECK_FAILED, type ServerRescan } from './server-rescan.entity.js';

/** Maximum number of concurrent scans of one account in all processes together. */
const ACCOUNT_SCANS = 2;

/** Maximum number of candidates among the requested scans, and among the most overdue ones. */
const CANDIDATES_MAX = 1_000;

/** Time of a scan in addition to its timeout, for waiting for a slot and fetching cards and tokens. */
const OVERHEAD_MS = 60_000;

export interface ClaimedRescan extends Pick<
  ServerRescan,
  'serverId' | 'upstreamUrl' | 'requestedAt' | 'sealedCredentials' | 'failures' | 'reported'
> {
  releaseId: string;
  type: ReleaseType;
  holder: string;
}

export interface RescanPlan {
  serverId: string;
  /** URL to scan periodically; null for scans on request only. */
  upstreamUrl: string | null;
  pauseSeconds: number;
  /** True if the release was scanned just now. */
  isChecked: boolean;
  /** True if it can be scanned without the publisher's credentials. */
  isScannable: boolean;
}

const COLUMNS = `r.server_id AS "serverId", l.id AS "releaseId", l.type, l.upstream_url AS "upstreamUrl",
  r.asked_at AS "requestedAt", r.sealed_credentials AS "sealedCredentials", r.holder, r.failures, r.told AS reported`;

@Injectable()
export class RescansRepository {
  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly env: Env,
    private readonly tuning: Tuning,
  ) {}

  /**
   * Moves the time of a claimed scan past its end, so that scans of a process that dies become due again. An advisory
   * lock allows one claim at a time, so that no account exceeds its share.
   */
  async claim(max: number): Promise<ClaimedRescan[]> {
    return this.database.transaction(async (tx) => {
      const [{ isLocked }] = await tx.query<[{ isLocked: boolean }]>(
        `SELECT pg_try_advisory_xact_lock(hashtext('slipway.releases.rescan')) AS "isLocked"`,
      );
      if (!isLocked) return [];
      const ids = await this.findDue(max, tx);
      if (ids.length === 0) return [];
      // Twice the scan timeout: a module is scanned at two paths.
      const ms = 2 * this.tuning.releaseScanTimeoutMs + this.env.upstreamConnectTimeoutMs + OVERHEAD_MS;
      const until = new Date(Date.now() + ms);
      const [rows] = await tx.query<[ClaimedRescan[]]>(
        `UPDATE server_rescans r SET next_at = $1, holder = $2
           FROM servers s, releases l
          WHERE r.server_id IN (SELECT server_id FROM server_rescans WHERE server_id = ANY($3) AND next_at <= now()
                                   FOR UPDATE SKIP LOCKED)
            AND s.id = r.server_id AND l.id = s.current_release_id
          RETURNING ${COLUMNS}`,
        [until, randomUUID(), ids],
      );
      return rows;
    });
  }

  /** Hands back a scan, which is due again after `seconds`. */
  async giveBack({ serverId, holder }: ClaimedRescan, seconds: number): Promise<void> {
    await this.database.query(
      `UPDATE server_rescans SET holder = NULL, next_at = now() + $1 * interval '1 second'
        WHERE server_id = $2 AND holder = $3`,
      [seconds, serverId, holder],
    );
  }

  /**
   * Stores the result. The next scan is due immediately if one was requested meanwhile.
   *
   * @returns false if the claim was lost, or another release became current
   */
  async conclude(
    { serverId, releaseId, holder, requestedAt }: ClaimedRescan,
    { failures, reported, pauseSeconds }: { failures: number; reported: string | null; pauseSeconds: number },
    tx: EntityManager,
  ): Promise<boolean> {
    const isDone = 'asked_at IS NOT DISTINCT FROM $4';
    const [, affected] = await tx.query<[unknown[], number]>(
      `UPDATE server_rescans r
          SET holder = NULL, failures = $5, told = $6,
              next_at = CASE WHEN NOT (${isDone}) THEN now() WHEN upstream_url IS NULL THEN NULL
                             ELSE now() + $7 * interval '1 second' END,
              sealed_credentials = CASE WHEN ${isDone} THEN NULL ELSE sealed_credentials END,
              asked_at = CASE WHEN ${isDone} THEN NULL ELSE asked_at END
        WHERE server_id = $1 AND holder = $3
          AND EXISTS (SELECT 1 FROM servers s WHERE s.id = $1 AND s.current_release_id = $2)`,
      [serverId, releaseId, holder, requestedAt, failures, reported, pauseSeconds],
    );
    return affected > 0;
  }

  /** Plans a scan; a running one loses its claim. */
  async plan(
    { serverId, upstreamUrl, pauseSeconds, isChecked, isScannable }: RescanPlan,
    tx: EntityManager,
  ): Promise<void> {
    const stands = `NOT $4 AND r.told LIKE '${CHECK_FAILED}%'`;
    await tx.query(
      `INSERT INTO server_rescans AS r (server_id, upstream_url, next_at)
       VALUES ($1, $2, CASE WHEN $2::text IS NOT NULL THEN now() + $3 * interval '1 second' END)
       ON CONFLICT (server_id) DO UPDATE SET upstream_url = EXCLUDED.upstream_url,
         next_at = CASE WHEN $5 AND ${stands} THEN now() ELSE EXCLUDED.next_at END,
         told = CASE WHEN ${stands} THEN '${CHECK_FAILED}of another release' END,
         asked_at = NULL, sealed_credentials = NULL, holder = NULL, failures = 0`,
      [serverId, upstreamUrl, pauseSeconds, isChecked, isScannable],
    );
  }

  namesOf({ serverId }: ClaimedRescan): Promise<LogNames> {
    return LogNamesRepository.find(this.database, 'server', serverId);
  }

  /** @returns false if the release is not current */
  async request(serverId: string, releaseId: string, sealedCredentials: string | null): Promise<boolean> {
    const rows = await this.database.query<unknown[]>(
      `INSERT INTO server_rescans AS r (server_id, next_at, asked_at, sealed_credentials)
       SELECT id, now(), now(), $3 FROM servers WHERE id = $1 AND current_release_id = $2
       ON CONFLICT (server_id) DO UPDATE SET asked_at = now(),
         sealed_credentials = COALESCE(EXCLUDED.sealed_credentials, r.sealed_credentials),
         next_at = CASE WHEN r.holder IS NOT NULL AND r.next_at > now() THEN r.next_at ELSE now() END
       RETURNING server_id`,
      [serverId, releaseId, sealedCredentials],
    );
    return rows.length > 0;
  }

  /** Lists requested scans first, then the most overdue. */
  private async findDue(max: number, tx: EntityManager): Promise<string[]> {
    const account = 'JOIN servers s ON s.id = r.server_id JOIN namespaces n ON n.id = s.namespace_id';
    // Busy accounts are excluded before the limit, so that their servers do not crowd out those of others.
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
}
