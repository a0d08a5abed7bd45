import { randomUUID } from 'node:crypto';
import { Injectable, Logger, type BeforeApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { Env } from '../../../config/env.js';
import { isDatabaseAway } from '../../../platform/database/database-outage.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { Counts } from '../../../platform/telemetry/figures.js';
import { LeaseLostError, ReleaseLease, type Claim } from '../release-lease.js';
import type { LogLine } from '../release-log.js';
import { ReleaseSlots } from './release-slots.js';
import { ReleaseStages } from './release-stages.js';
import type { StageOutcome } from '../stage-outcome.js';
import { mayBecome, releaseStatuses, stages, type ReleaseStatus, type Stage } from '../release-state.js';
import { Release } from '../release.entity.js';
import { ReleasesQueue } from '../releases.queue.js';

const statusesAfterWork = releaseStatuses.filter((status) => mayBecome('WORKING', status));

/**
 * Takes one release through its stages: deploy, scan, metadata, publish. What a stage found and that the next one is due
 * are written in one transaction, so a pipeline that dies goes on where it stood, and one that runs twice does the work
 * once.
 */
@Injectable()
export class ReleasePipeline implements OnModuleInit, BeforeApplicationShutdown {
  private readonly logger = new Logger('releases');
  /** What this process works on. */
  private readonly held = new Map<string, ReleaseLease>();
  /** What statuses this process brought releases to. */
  readonly results = new Counts<ReleaseStatus>('status', statusesAfterWork);
  /** This process takes no releases any more. */
  isStopping = false;

  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly stages: ReleaseStages,
    private readonly slots: ReleaseSlots,
    private readonly queue: ReleasesQueue,
    private readonly pubSub: PubSub,
    private readonly env: Env,
  ) {}

  /** A release that is cancelled or deleted is let go at once; without the message, at the next renewal. */
  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('releases.changed', ({ id }) => void this.held.get(id)?.renew());
    await this.pubSub.subscribe('servers.deleted', () => this.held.forEach((lease) => void lease.renew()));
  }

  /** A worker that is told to stop does not leave its releases to the sweeper's patience. */
  async beforeApplicationShutdown(): Promise<void> {
    this.isStopping = true;
    await Promise.allSettled(
      [...this.held].map(async ([releaseId, lease]) => {
        const attempt = await lease.handBack();
        if (attempt !== null) this.queue.enqueue({ releaseId, attempt });
      }),
    );
  }

  /**
   * Runs what remains of a release; does nothing when another worker holds it, it is over, or its account is busy enough.
   *
   * @throws when the database is away, for the queue to try again
   */
  async run(releaseId: string, attempt: number): Promise<void> {
    const holder = randomUUID();
    const accountId = await this.slots.take(releaseId, attempt, holder);
    if (accountId === null) return;
    const lease = this.hold({ releaseId, attempt, holder });
    this.held.set(releaseId, lease);
    let stage: Stage = 'deploy';
    try {
      for (;;) {
        const release = await this.load(releaseId);
        stage = release.stage;
        const outcome = await lease.whileHeld(this.stages.run(release, lease));
        if (!(await this.conclude(lease, stage, outcome))) return;
      }
    } catch (error) {
      await this.fail(lease, stage, error);
    } finally {
      lease.end();
      this.held.delete(releaseId);
      await this.goOn(accountId);
    }
  }

  private hold(claim: Claim): ReleaseLease {
    const announce = () => this.pubSub.publish('releases.changed', { id: claim.releaseId });
    announce();
    return new ReleaseLease(this.database, claim, this.env.releaseLeaseMs, announce);
  }

  /** What was handed back keeps its slot; whatever else is not asked for here, the sweeper asks for. */
  private async goOn(accountId: string): Promise<void> {
    if (this.isStopping) return;
    await this.slots.next(accountId).catch((error: unknown) => {
      this.logger.debug({ msg: 'waiting releases were not asked for', err: error });
    });
  }

  private async load(id: string): Promise<Release> {
    const release = await this.database.manager
      .createQueryBuilder(Release, 'release')
      .addSelect(['release.serverCard', 'release.sealedScanCredentials', 'release.snapshot'])
      .where({ id })
      .getOne();
    if (!release) throw new LeaseLostError();
    return release;
  }

  /** Writes what came of a stage. @returns whether another one is due */
  private async conclude(lease: ReleaseLease, stage: Stage, outcome: StageOutcome): Promise<boolean> {
    const { change = {}, lines = [], inTransaction } = outcome;
    if (change.status !== undefined) {
      await lease.commit(change, lines, inTransaction);
      this.tell(lease, change.status, lines);
      outcome.onCommitted?.();
      return false;
    }
    const next = stages[stages.indexOf(stage) + 1];
    await lease.commit(
      { ...change, stage: next },
      [...lines, { stage, level: 'end', message: `${stage} done` }],
      inTransaction,
    );
    return true;
  }

  /** For the operator; its publisher reads the release's own log, which may hold links that are nobody else's. */
  private tell({ releaseId }: ReleaseLease, status: ReleaseStatus, lines: LogLine[]): void {
    const reason = lines.find(({ level }) => level === 'error')?.message;
    this.results.add(status);
    this.logger.log({ msg: `a release is ${status}`, releaseId, ...(reason === undefined ? {} : { reason }) });
  }

  private async fail(lease: ReleaseLease, stage: Stage, error: unknown): Promise<void> {
    if (error instanceof LeaseLostError) return;
    if (isDatabaseAway(error)) throw error;
    this.logger.error({ msg: `a release failed in ${stage}`, err: error });
    const message = 'Something failed inside Slipway. Publish again; if it stays so, the operator finds it in the log.';
    try {
      await lease.commit({ status: 'INTERNAL_ERROR' }, [{ stage, level: 'error', message }]);
      this.results.add('INTERNAL_ERROR');
    } catch (lost) {
      if (!(lost instanceof LeaseLostError)) throw lost;
    }
  }
}
