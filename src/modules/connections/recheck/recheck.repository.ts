import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { Env } from '../../../config/env.js';
import { LogNamesRepository, type LogNames } from '../../../platform/telemetry/log-names.repository.js';
import { StatusesRepository } from '../core/status.repository.js';
import type { CheckedConnection } from './connection-check.js';

/** Pause between sweeps; a sweep takes two cheap queries if nothing is due. */
const SWEEP_PAUSE_MS = 4_000;

/** Adds up to half at random, so that processes do not sweep in step. */
export function sweepPauseMs(): number {
  return SWEEP_PAUSE_MS * (1 + Math.random() / 2);
}

/** Size of a batch; connections that share a public URL with one of the batch are claimed as well. */
export const RECHECK_BATCH = 20;
const SHARED_MAX = 10_000;

/** Maximum number of due connections that are postponed because a call has just succeeded. */
const POSTPONED_MAX = 1_000;

/** Maximum number of considered connections; at most half a batch goes to one account. */
const CONSIDERED_MAX = 1_000;

export const REFRESH_BATCH = 20;

export interface ClaimedConnection extends CheckedConnection {
  /** Null for a registry server. */
  mcpUrl: string | null;
  /** True if the connection sends no credentials, so that one check serves all connections to its URL. */
  isShared: boolean;
  accountId: string;
}

export interface DueToken extends CheckedConnection {
  upstreamUrl: string;
  dueAt: Date;
}

/** Due rechecks. SQL names the tables of other modules, because entities are not shared. */
@Injectable()
export class RechecksRepository {
  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly statusesRepository: StatusesRepository,
    private readonly env: Env,
  ) {}

  namesOf({ id }: CheckedConnection): Promise<LogNames> {
    return LogNamesRepository.find(this.database, 'connection', id);
  }

  /**
   * Moves `next_check_at` past the end of the check, so that another process claims the connections of a process that dies. Claims run one
   * at a time, so that one process gets all connections to one public URL.
   */
  claimDue(): Promise<ClaimedConnection[]> {
    return this.database.transaction(async (tx) => {
      const [{ isMine }] = await tx.query<[{ isMine: boolean }]>(
        `SELECT pg_try_advisory_xact_lock(hashtext('slipway.connections.recheck')) AS "isMine"`,
      );
      if (!isMine) return [];
      // A successful call replaces a check: the next one is due after the same interval.
      await tx.query(
        `UPDATE connections SET next_check_at = last_ok_at + $1 * interval '1 second'
        WHERE id IN (SELECT id FROM connections
                      WHERE id IN (SELECT id FROM connections WHERE next_check_at <= now()
                                    ORDER BY next_check_at LIMIT ${POSTPONED_MAX})
                        AND status_state = 'connected'
                        AND ($1::float8 IS NULL OR last_ok_at > now() - $1 * interval '1 second')
                        FOR UPDATE SKIP LOCKED)`,
        [this.statusesRepository.recheckSeconds],
      );
      return this.claim(tx);
    });
  }

  async hastenBroken(serverId: string): Promise<void> {
    await this.database.query(
      `UPDATE connections SET next_check_at = now()
        WHERE server_id = $1 AND status_state = 'error' AND next_check_at > now()`,
      [serverId],
    );
  }

  /**
   * Returns due tokens, the earliest first, of connections that worked within the last 24 hours: others are unused, and a call would have refreshed
   * their tokens. Skips locked rows, which another process is refreshing.
   *
   * @param after continues after this token
   */
  dueTokens(after: DueToken | null): Promise<DueToken[]> {
    return this.database.query<DueToken[]>(
      `SELECT c.id, c.revision, u.upstream_url AS "upstreamUrl", u.due_at AS "dueAt"
         FROM upstream_credentials u JOIN connections c ON c.id = u.owner_id
        WHERE u.owner_kind = 'connection' AND u.state = 'active'
          AND u.due_at <= now() AND u.due_at > now() - interval '25 hours'
          AND (u.retry_at IS NULL OR u.retry_at <= now())
          AND c.last_ok_at > now() - interval '24 hours'
          AND ($1::timestamptz IS NULL OR (u.due_at, c.id) > ($1, $2::uuid))
        ORDER BY u.due_at, c.id LIMIT ${REFRESH_BATCH} FOR UPDATE OF u SKIP LOCKED`,
      [after?.dueAt ?? null, after?.id ?? null],
    );
  }

  private async claim(tx: EntityManager): Promise<ClaimedConnection[]> {
    const isShared = `target_kind = 'url' AND sealed_headers IS NULL AND sealed_url IS NULL AND NOT EXISTS (
      SELECT 1 FROM upstream_credentials u WHERE u.owner_kind = 'connection' AND u.owner_id = connections.id)`;
    const account = '(SELECT n.account_id FROM namespaces n WHERE n.id = connections.namespace_id)';
    const columns = `id, revision, mcp_url AS "mcpUrl", ${isShared} AS "isShared", ${account} AS "accountId"`;
    // A check takes at most one handshake timeout, plus the same time waiting for a slot.
    const until = new Date(Date.now() + 2 * this.env.upstreamConnectTimeoutMs + 10_000);
    const [due] = await tx.query<[ClaimedConnection[]]>(
      `UPDATE connections SET next_check_at = $1
        WHERE id IN (SELECT id FROM connections
                      WHERE next_check_at <= now() AND id IN (
                        SELECT id FROM (
                          SELECT id, next_check_at, row_number() OVER (PARTITION BY ${account} ORDER BY next_check_at) AS place
                            FROM (SELECT id, next_check_at, namespace_id FROM connections WHERE next_check_at <= now()
                                   ORDER BY next_check_at LIMIT ${CONSIDERED_MAX}) AS connections) AS due
                         ORDER BY place > ${RECHECK_BATCH / 2}, next_check_at LIMIT ${RECHECK_BATCH})
                      FOR UPDATE SKIP LOCKED)
        RETURNING ${columns}`,
      [until],
    );
    const urls = due.flatMap(({ isShared, mcpUrl }) => (isShared ? [mcpUrl] : []));
    if (urls.length === 0) return due;
    const [siblings] = await tx.query<[ClaimedConnection[]]>(
      `UPDATE connections SET next_check_at = $1
        WHERE id IN (SELECT id FROM connections
                      WHERE mcp_url = ANY($2) AND next_check_at IS NOT NULL AND NOT (id = ANY($3)) AND ${isShared}
                      LIMIT ${SHARED_MAX} FOR UPDATE SKIP LOCKED)
        RETURNING ${columns}`,
      [until, urls, due.map(({ id }) => id)],
    );
    return [...due, ...siblings];
  }
}
