import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { Env } from '../../../config/env.js';
import { parseUrl } from '../../../config/parse-url.js';
import { isDatabaseAway } from '../../../platform/database/database-outage.js';
import { NoSlotError, FairSemaphore } from '../../../platform/limits/fair-semaphore.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { Counts } from '../../../platform/telemetry/figures.js';
import type { ReleaseCurrent } from '../../releases/releases.types.js';
import { ConnectionCheck, type Looked } from './connection-check.js';
import { failedInside } from '../core/connection-status.js';
import { StatusWriter } from '../core/status-writer.js';

/** Connections looked at in one go; those that share their upstream with one of them come along. */
export const RECHECK_BATCH = 20;
const SHARED_MAX = 10_000;

/** So many that are due longest are judged in one go, whether a call put them off. */
const POSTPONED_MAX = 1_000;

/** Looks at once in this process; half of them at one host, and half for one account. */
const LOOKS_MAX = 4;

/** Of so many that are due longest half a batch is taken of one account, unless nobody else has any. */
const CONSIDERED_MAX = 1_000;

interface Claimed extends Looked {
  /** The URL it leads to; null for a registry server. */
  mcpUrl: string | null;
  /** Nobody's credentials are sent there, so what one sees is what all see. */
  isShared: boolean;
  /** Whose namespace it is in. */
  accountId: string;
}

/**
 * Looks again at connections whose time has come. Each is claimed by moving its time past the end of the look, so that the
 * connections of a process that dies are looked at by another one; processes claim one after another, which keeps all
 * connections to one public URL in one hand: they cost one dial.
 */
@Injectable()
export class ConnectionRechecker implements OnModuleInit {
  private readonly logger = new Logger('connections');
  private readonly slots: FairSemaphore;
  /** Looks of this process, each of them for all connections it was for; `late` found no slot in time. */
  readonly looks = new Counts('result', ['done', 'late', 'failed']);

  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly checks: ConnectionCheck,
    private readonly writer: StatusWriter,
    private readonly pubSub: PubSub,
    private readonly env: Env,
  ) {
    this.slots = new FairSemaphore(LOOKS_MAX, env.upstreamConnectTimeoutMs);
  }

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('releases.current', ({ serverId }) => void this.hasten(serverId));
  }

  /** Looks at a batch. @returns how many were due */
  async run(): Promise<number> {
    const claimed = await this.database.transaction((tx) => this.claim(tx));
    const groups = new Map<string, Claimed[]>();
    const looks: Promise<void>[] = [];
    for (const one of claimed) {
      const { mcpUrl } = one;
      if (!one.isShared || mcpUrl === null) {
        looks.push(this.look(mcpUrl, [one], () => this.checks.runAside(one)));
        continue;
      }
      const group = groups.get(mcpUrl);
      if (group) group.push(one);
      else groups.set(mcpUrl, [one]);
    }
    for (const [url, group] of groups) looks.push(this.look(url, group, () => this.checks.runPublic(url, group)));
    await Promise.all(looks);
    return claimed.length;
  }

  /** What does not work is looked at in the next sweep. Told to every process; the first one does it. */
  private async hasten(serverId: string): Promise<void> {
    try {
      await this.database.query(
        `UPDATE connections SET next_check_at = now()
          WHERE server_id = $1 AND status_state = 'error' AND next_check_at > now()`,
        [serverId],
      );
    } catch (error) {
      this.logger.warn({ msg: 'connections wait for their own time to be looked at', err: error });
    }
  }

  /** @param url null for a registry server */
  private async look(url: string | null, group: Claimed[], work: () => Promise<void>): Promise<void> {
    try {
      const [first, ...others] = new Set(group.map(({ accountId }) => accountId));
      // What is looked at for several accounts at once is held against none of them.
      const whose = first === undefined || others.length > 0 ? [] : [`account ${first}`];
      await this.slots.run([parseUrl(url ?? '')?.host ?? 'registry', ...whose], work);
      this.looks.add('done');
    } catch (error) {
      // What found no slot in time is claimed again when its claim ends.
      this.looks.add(error instanceof NoSlotError ? 'late' : 'failed');
      if (error instanceof NoSlotError) return;
      this.logger.error({ msg: 'a connection could not be looked at', err: error });
      // Such as one whose secrets cannot be opened: it does not work, and is looked at ever more seldom.
      if (!isDatabaseAway(error)) await this.checks.found(group, failedInside);
    }
  }

  private async claim(tx: EntityManager): Promise<Claimed[]> {
    const [{ mine }] = await tx.query<[{ mine: boolean }]>(
      `SELECT pg_try_advisory_xact_lock(hashtext('slipway.connections.recheck')) AS mine`,
    );
    if (!mine) return [];
    await this.postpone(tx);
    const isShared = `target_kind = 'url' AND sealed_headers IS NULL AND NOT EXISTS (
      SELECT 1 FROM upstream_credentials u WHERE u.owner_kind = 'connection' AND u.owner_id = connections.id)`;
    const account = '(SELECT n.account_id FROM namespaces n WHERE n.id = connections.namespace_id)';
    const columns = `id, revision, mcp_url AS "mcpUrl", ${isShared} AS "isShared", ${account} AS "accountId"`;
    // A look takes the time of a handshake at most, after waiting as long for a slot.
    const until = new Date(Date.now() + 2 * this.env.upstreamConnectTimeoutMs + 10_000);
    const [due] = await tx.query<[Claimed[]]>(
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
    const [others] = await tx.query<[Claimed[]]>(
      `UPDATE connections SET next_check_at = $1
        WHERE id IN (SELECT id FROM connections
                      WHERE mcp_url = ANY($2) AND next_check_at IS NOT NULL AND NOT (id = ANY($3)) AND ${isShared}
                      LIMIT ${SHARED_MAX} FOR UPDATE SKIP LOCKED)
        RETURNING ${columns}`,
      [until, urls, due.map(({ id }) => id)],
    );
    return [...due, ...others];
  }

  /** A call that went well is as good as a look. */
  private async postpone(tx: EntityManager): Promise<void> {
    const seconds = this.writer.seldomSeconds;
    await tx.query(
      `UPDATE connections SET next_check_at = last_ok_at + $1 * interval '1 second'
        WHERE id IN (SELECT id FROM connections
                      WHERE id IN (SELECT id FROM connections WHERE next_check_at <= now()
                                    ORDER BY next_check_at LIMIT ${POSTPONED_MAX})
                        AND status_state = 'connected'
                        AND ($1::float8 IS NULL OR last_ok_at > now() - $1 * interval '1 second')
                        FOR UPDATE SKIP LOCKED)`,
      [seconds],
    );
  }
}
