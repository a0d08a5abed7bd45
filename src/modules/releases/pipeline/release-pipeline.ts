/**
 * Runs one release through its stages: deploy (checks files or URL), scan (reads and checks what the server offers),
 * metadata, publish. One job of the queue runs one release.
 *
 * The outcome of a stage and the name of the next one are written in one transaction, under the lease of this worker.
 * After a crash, the release resumes in the same stage (`release-sweeper.ts`), and a duplicate run does no work twice.
 *
 * `releases.changed` and `servers.deleted` renew the lease, so that work on a cancelled or deleted release stops
 * immediately. An unexpected error sets INTERNAL_ERROR with a message for the publisher; only the operator's log has
 * the cause. While the database is unavailable, the job is retried.
 */
import { randomUUID } from 'node:crypto';
import { Processor, WorkerHost } from '@nestjs/bullmq';
import { Injectable, Logger, type BeforeApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { DelayedError, type Job } from 'bullmq';
import { isDatabaseUnreachable } from '../../../platform/database/postgres-errors.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import type { LogNames } from '../../../platform/telemetry/log-names.repository.js';
import { Metrics, type LabeledCounter } from '../../../platform/telemetry/metrics.js';
import { LeaseLostError, ReleaseLeases, type ReleaseLease, type StageOutcome } from '../release-lease.js';
import { mayBecome, releaseStatuses, stages, type Stage } from '../release-state.js';
import { RELEASES_QUEUE, ReleasesQueue, type RunReleaseJob } from '../releases.queue.js';
import { ReleasesRepository } from '../releases.repository.js';
import { ReleaseStages } from './release-stages.js';
import { ReleaseSlotsRepository } from './release-slots.repository.js';

const statusesAfterWork = releaseStatuses.filter((status) => mayBecome('WORKING', status));

@Injectable()
export class ReleasePipeline implements OnModuleInit, BeforeApplicationShutdown {
  private readonly logger = new Logger('releases');
  private readonly running = new Map<string, ReleaseLease>();
  private readonly results: LabeledCounter<'status'>;
  isStopping = false;

  constructor(
    private readonly releasesRepository: ReleasesRepository,
    private readonly releaseLeases: ReleaseLeases,
    private readonly releaseStages: ReleaseStages,
    private readonly releaseSlotsRepository: ReleaseSlotsRepository,
    private readonly releasesQueue: ReleasesQueue,
    private readonly pubSub: PubSub,
    metrics: Metrics,
  ) {
    const help = 'Releases this worker brought to an end or a halt, by status.';
    this.results = metrics.labeledCounter('slipway_releases_total', help, { status: statusesAfterWork });
  }

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('releases.changed', ({ id }) => void this.running.get(id)?.renew());
    await this.pubSub.subscribe('servers.deleted', () => this.running.forEach((lease) => void lease.renew()));
  }

  /** Hands back running releases, which then do not wait for the sweeper. */
  async beforeApplicationShutdown(): Promise<void> {
    this.isStopping = true;
    await Promise.allSettled(
      [...this.running].map(async ([releaseId, lease]) => {
        const attempt = await lease.handBack();
        if (attempt !== null) this.releasesQueue.enqueue({ releaseId, attempt });
      }),
    );
  }

  /**
   * Does nothing if another worker holds the release, it is finished, or its account has no free slot.
   *
   * @throws if the database is unavailable, so that the queue retries
   */
  async run(releaseId: string, attempt: number): Promise<void> {
    const claim = { releaseId, attempt, holder: randomUUID() };
    const names = await this.releaseSlotsRepository.claimSlot(claim);
    if (names === null) return;
    const lease = this.releaseLeases.begin(claim);
    this.running.set(releaseId, lease);
    let stage: Stage = 'deploy';
    try {
      for (;;) {
        const release = await this.releasesRepository.findWith(releaseId, [
          'serverCard',
          'sealedScanCredentials',
          'snapshot',
        ]);
        if (!release) throw new LeaseLostError();
        stage = release.stage;
        const outcome = await lease.whileHeld(this.releaseStages.run(release, lease));
        if (!(await this.conclude(lease, stage, outcome, names))) return;
      }
    } catch (error) {
      await this.fail(lease, stage, error, names);
    } finally {
      lease.stop();
      this.running.delete(releaseId);
      await this.startNext(names.account);
    }
  }

  /** Starts waiting releases; if this fails, the sweeper does it. A release that is handed back keeps its slot. */
  private async startNext(accountId: string): Promise<void> {
    if (this.isStopping) return;
    try {
      for (const job of await this.releaseSlotsRepository.endWaits(accountId)) this.releasesQueue.enqueue(job);
    } catch (error) {
      this.logger.debug({ msg: 'waiting releases were not enqueued', err: error });
    }
  }

  /** @returns true if another stage is due */
  private async conclude(lease: ReleaseLease, stage: Stage, outcome: StageOutcome, names: LogNames): Promise<boolean> {
    const { change = {}, lines = [], inTransaction } = outcome;
    if (change.status !== undefined) {
      await lease.commit(change, lines, inTransaction);
      // For the operator. The log of the release can contain links, which are only for its publisher.
      const reason = lines.find(({ level }) => level === 'error')?.message;
      this.results.inc({ status: change.status });
      const entry = { msg: `a release is ${change.status}`, releaseId: lease.releaseId, ...names };
      this.logger.log({ ...entry, ...(reason === undefined ? {} : { reason }) });
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

  private async fail(lease: ReleaseLease, stage: Stage, error: unknown, names: LogNames): Promise<void> {
    if (error instanceof LeaseLostError) return;
    if (isDatabaseUnreachable(error)) throw error;
    const message =
      'Something failed inside Slipway. Publish again; if it fails again, the operator finds the reason in the log.';
    const lost = await lease.commit({ status: 'INTERNAL_ERROR' }, [{ stage, level: 'error', message }]).then(
      () => null,
      (thrown: Error) => thrown,
    );
    // The release was deleted, with or without its server, which stages notice as various errors.
    if (lost instanceof LeaseLostError) return;
    this.logger.error({ msg: `a release failed in ${stage}`, releaseId: lease.releaseId, ...names, err: error });
    if (lost !== null) throw lost;
    this.results.inc({ status: 'INTERNAL_ERROR' });
  }
}

/** Releases mostly wait for upstreams, so one worker runs several. */
const CONCURRENCY = 8;

/** Delay of a job that a stopping process fetched, so that another process runs it. */
const HANDOVER_MS = 100;

@Processor(RELEASES_QUEUE, { concurrency: CONCURRENCY })
export class ReleasesProcessor extends WorkerHost {
  constructor(private readonly releasePipeline: ReleasePipeline) {
    super();
  }

  async process(job: Job<RunReleaseJob>, token?: string): Promise<void> {
    if (this.releasePipeline.isStopping) {
      await job.moveToDelayed(Date.now() + HANDOVER_MS, token);
      throw new DelayedError();
    }
    await this.releasePipeline.run(job.data.releaseId, job.data.attempt);
  }
}
