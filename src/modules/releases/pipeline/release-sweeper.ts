import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { Env } from '../../../config/env.js';
import { isDatabaseAway } from '../../../platform/database/database-outage.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { queueDeadlineSql } from '../release-lease.js';
import { writeLines } from '../release-log.js';
import { ReleaseSlots } from './release-slots.js';
import type { Stage } from '../release-state.js';
import { ReleasesQueue } from '../releases.queue.js';

/** A release whose workers died this often is what kills them. */
const RECOVERIES_MAX = 5;

/** Releases whose time is over; one that somebody changes at this moment is left alone. */
function leftBehind(condition: string): string {
  return `id IN (SELECT id FROM releases WHERE ${condition} AND lease_until < now() FOR UPDATE SKIP LOCKED)`;
}

interface Swept {
  id: string;
  attempt: number;
  stage: Stage;
}

/**
 * Finds releases that nobody works on any more, by their leases in Postgres: jobs may be lost with the queue's store, and
 * workers with their machine. Every worker process sweeps; a guarded `UPDATE` gives each release to one of them.
 */
@Injectable()
export class ReleaseSweeper implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger('releases');
  private timer: NodeJS.Timeout | null = null;
  private sweeping: Promise<void> = Promise.resolve();

  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly slots: ReleaseSlots,
    private readonly queue: ReleasesQueue,
    private readonly pubSub: PubSub,
    private readonly env: Env,
  ) {}

  onApplicationBootstrap(): void {
    const sweep = () => (this.sweeping = this.sweeping.then(() => this.trySweep()));
    void sweep();
    this.timer = setInterval(() => void sweep(), this.env.releaseLeaseMs / 2).unref();
  }

  async onApplicationShutdown(): Promise<void> {
    if (this.timer) clearInterval(this.timer);
    await this.sweeping;
  }

  private async trySweep(): Promise<void> {
    try {
      await this.giveUp();
      await this.recover();
      await this.slots.nextOfAll();
      await this.timeOut();
    } catch (error) {
      const level = isDatabaseAway(error) ? 'debug' : 'error';
      this.logger[level]({ msg: 'releases were not swept', err: error });
    }
  }

  /**
   * Starts the pipeline anew where a worker died or a job was lost; it goes on with the stage it was in. Those that nobody
   * holds may only be waiting in a busy queue, which is nothing to warn about.
   */
  private async recover(): Promise<void> {
    const [rows] = await this.database.query<[(Swept & { wasHeld: boolean })[]]>(
      `UPDATE releases SET attempt = attempt + 1, lease_holder = NULL, lease_until = ${queueDeadlineSql(this.env.releaseLeaseMs)},
              recoveries = recoveries + CASE WHEN left_behind.held THEN 1 ELSE 0 END
         FROM (SELECT id AS left_id, lease_holder IS NOT NULL AS held FROM releases
                WHERE status IN ('QUEUED', 'WORKING') AND lease_until < now() FOR UPDATE SKIP LOCKED) left_behind
        WHERE id = left_id
        RETURNING id, attempt, stage, held AS "wasHeld"`,
    );
    for (const { id, attempt } of rows) this.queue.enqueue({ releaseId: id, attempt });
    const died = rows.filter(({ wasHeld }) => wasHeld).length;
    if (died > 0) this.logger.warn(`${died} releases lost their worker and start anew`);
  }

  private async giveUp(): Promise<void> {
    await this.finish(
      `UPDATE releases SET status = 'INTERNAL_ERROR', lease_holder = NULL, lease_until = NULL, updated_at = now(),
              sealed_scan_credentials = NULL
        WHERE ${leftBehind(`status = 'WORKING' AND lease_holder IS NOT NULL AND recoveries >= ${RECOVERIES_MAX}`)}
        RETURNING id, attempt, stage`,
      'error',
      `The worker died ${RECOVERIES_MAX + 1} times at this point: publish again, and tell the operator if it stays so.`,
    );
  }

  private async timeOut(): Promise<void> {
    await this.finish(
      `UPDATE releases SET status = 'AUTH_TIMEOUT', lease_until = NULL, updated_at = now()
        WHERE ${leftBehind("status = 'AUTH_REQUIRED'")}
        RETURNING id, attempt, stage`,
      'error',
      'Nobody authorized in time. Resume the release to get a new link: POST …/releases/latest/resume.',
    );
  }

  /** Both in one transaction: a status without the line that explains it helps nobody. */
  private async finish(sql: string, level: 'error', message: string): Promise<void> {
    const rows = await this.database.transaction(async (tx) => {
      const [found] = await tx.query<[Swept[]]>(sql);
      for (const { id, stage } of found) await writeLines(id, [{ stage, level, message }], tx);
      return found;
    });
    for (const { id } of rows) this.pubSub.publish('releases.changed', { id });
  }
}
