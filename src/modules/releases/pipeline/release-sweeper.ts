import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { Env } from '../../../config/env.js';
import { Tuning } from '../../../config/tuning.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { Schedule } from '../../../platform/schedule/schedule.js';
import { ReleaseLogsRepository } from '../release-log.repository.js';
import { ReleasesQueue } from '../releases.queue.js';
import { ReleasesRepository, type ExpiredRelease } from '../releases.repository.js';
import { ReleaseSlotsRepository } from './release-slots.repository.js';

/** Maximum number of restarts of a release; one with more fails, because it probably crashes its workers. */
const RECOVERIES_MAX = 5;

/** Interval of removing old releases, up to 1,000 at a time. */
const RETENTION_EVERY_MS = 10 * 60_000;

/**
 * Restarts releases whose job was lost with the queue's store, or whose worker died. Every worker process sweeps; a guarded
 * `UPDATE` gives each release to one of them.
 */
@Injectable()
export class ReleaseSweeper implements OnApplicationBootstrap {
  private readonly logger = new Logger('releases');

  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly releasesRepository: ReleasesRepository,
    private readonly releaseLogsRepository: ReleaseLogsRepository,
    private readonly releaseSlotsRepository: ReleaseSlotsRepository,
    private readonly releasesQueue: ReleasesQueue,
    private readonly pubSub: PubSub,
    private readonly schedule: Schedule,
    private readonly env: Env,
    private readonly tuning: Tuning,
  ) {}

  onApplicationBootstrap(): void {
    this.schedule.every('sweep of releases', this.tuning.releaseLeaseMs / 2, () => this.sweep(), { immediately: true });
    this.schedule.every('removal of old releases', RETENTION_EVERY_MS, () => this.removeOld(), { immediately: true });
  }

  /** Removes old releases; {@link BlobSweeper} removes their files. */
  async removeOld(): Promise<void> {
    const deleted = await this.releasesRepository.deleteOld(this.tuning.releaseKeep, this.env.releaseKeepDays);
    if (deleted > 0) this.logger.log(`${deleted} old releases were deleted`);
  }

  private async sweep(): Promise<void> {
    await this.finish(
      (tx) => this.releasesRepository.failUnrecoverable(RECOVERIES_MAX, tx),
      `The worker died ${RECOVERIES_MAX + 1} times at this point: publish again, and tell the operator if it happens again.`,
    );
    // After a dead worker or a lost job, the release resumes in the same stage. Without a holder it might only be
    // waiting in a busy queue, so it causes no warning.
    const restarted = await this.releasesRepository.startNextAttempts();
    for (const { id, attempt } of restarted) this.releasesQueue.enqueue({ releaseId: id, attempt });
    const died = restarted.filter(({ wasHeld }) => wasHeld).length;
    if (died > 0) this.logger.warn(`${died} releases lost their worker and start again`);
    // A worker can die before it enqueues the next releases of its account.
    for (const account of await this.releaseSlotsRepository.waitingAccounts()) {
      for (const job of await this.releaseSlotsRepository.endWaits(account)) this.releasesQueue.enqueue(job);
    }
    await this.finish(
      (tx) => this.releasesRepository.timeOutAuthorization(tx),
      'Nobody authorized in time. Resume the release to get a new link: POST …/releases/latest/resume.',
    );
  }

  /** Writes the status and the logged reason in one transaction. */
  private async finish(end: (tx: EntityManager) => Promise<ExpiredRelease[]>, message: string): Promise<void> {
    const rows = await this.database.transaction(async (tx) => {
      const ended = await end(tx);
      for (const { id, stage } of ended)
        await this.releaseLogsRepository.append(id, [{ stage, level: 'error', message }], tx);
      return ended;
    });
    for (const { id } of rows) this.pubSub.publish('releases.changed', { id });
  }
}
