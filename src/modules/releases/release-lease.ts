/**
 * The exclusive hold of one worker on a release: columns `lease_holder` and `lease_until` of `releases`, renewed every
 * third of the lease.
 *
 * Everything that a stage changes goes through `commit`, which writes only while the row still names this holder and
 * attempt. A worker whose lease expired changes nothing, even if it still runs. When the lease is lost (cancelled,
 * deleted, taken over), work that waits under it ends with a LeaseLostError at once. An outage of the database ends
 * nothing: the next renewal decides. At shutdown the release is handed back, and the next attempt does not count as a
 * recovery.
 */
import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { repeat, type Repeat } from '../../platform/schedule/repeat.js';
import type { LogLine, Release } from './release.entity.js';
import { Tuning } from '../../config/tuning.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { ReleaseLogsRepository } from './release-log.repository.js';
import type { Stage } from './release-state.js';
import { ReleasesRepository, type Claim, type ReleaseChange } from './releases.repository.js';

/** The result of a stage, written in one transaction. Without a status in `change` the next stage is due. */
export interface StageOutcome {
  change?: ReleaseChange;
  lines?: LogLine[];
  /** Further writes in the same transaction. */
  inTransaction?: (tx: EntityManager) => Promise<void>;
  /** Called after the commit, to publish it. */
  onCommitted?: () => void;
}

/**
 * One step of the pipeline. It may run again after a crash, so it makes changes only through its outcome, except for the
 * icon of the metadata stage, which is idempotent.
 */
export interface ReleaseStage {
  run(release: Release, lease: ReleaseLease): Promise<StageOutcome>;
}

/** The worker lost the release: it was cancelled, deleted, or another worker took it over. */
export class LeaseLostError extends Error {}

/** Ends work when the right to it is lost. */
export class LossSignal {
  private reject: (error: LeaseLostError) => void = () => undefined;
  private readonly lost = new Promise<never>((_, reject) => (this.reject = reject));

  constructor() {
    // Without waiting work the rejection has no other handler.
    this.lost.catch(() => undefined);
  }

  /** Waits for `work`. @throws LeaseLostError as soon as the right to it is lost, without waiting for `work` */
  whileHeld<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.lost]);
  }

  /** Rejects what waits in {@link whileHeld}, now and later. */
  signalLoss(): void {
    this.reject(new LeaseLostError());
  }
}

/** Begins the leases of this worker, which write through it. */
@Injectable()
export class ReleaseLeases {
  readonly logger = new Logger('releases');

  constructor(
    @InjectDataSource() readonly database: DataSource,
    readonly releasesRepository: ReleasesRepository,
    readonly releaseLogsRepository: ReleaseLogsRepository,
    private readonly pubSub: PubSub,
    readonly tuning: Tuning,
  ) {}

  /** Begins the lease of a release that was taken. */
  begin(claim: Claim): ReleaseLease {
    this.announce(claim.releaseId);
    return new ReleaseLease(this, claim);
  }

  /** Publishes that a release changed. */
  announce(id: string): void {
    this.pubSub.publish('releases.changed', { id });
  }
}

/** The hold of one worker on a release, renewed until it is stopped. */
export class ReleaseLease extends LossSignal {
  private readonly renewal: Repeat;

  get releaseId(): string {
    return this.claim.releaseId;
  }

  constructor(
    private readonly leases: ReleaseLeases,
    private readonly claim: Claim,
  ) {
    super();
    this.renewal = repeat(leases.tuning.releaseLeaseMs / 3, () => void this.renew());
  }

  /** Appends a line to the log. @throws LeaseLostError */
  async log(line: LogLine): Promise<void> {
    await this.commit({}, [line]);
  }

  /**
   * Changes the release, appends to its log and runs `also` in one transaction. Another status ends the lease.
   *
   * @throws LeaseLostError with nothing written
   */
  async commit(change: ReleaseChange, lines: LogLine[], also?: (tx: EntityManager) => Promise<void>): Promise<void> {
    const { database, releasesRepository: releases, releaseLogsRepository: logs } = this.leases;
    await database.transaction(async (tx) => {
      await releases.limitIdleTime(tx);
      // First, since it locks the server's row: publishing locks that row before any release's.
      await also?.(tx);
      if (!(await releases.updateHeld(this.claim, change, tx))) {
        this.signalLoss();
        throw new LeaseLostError();
      }
      await logs.append(this.claim.releaseId, lines, tx);
    });
    this.leases.announce(this.releaseId);
  }

  /** Extends the lease, or ends what runs under it if it was lost. A database outage changes nothing. */
  async renew(): Promise<void> {
    try {
      if (!(await this.leases.releasesRepository.renewLease(this.claim))) this.signalLoss();
    } catch (error) {
      this.leases.logger.debug({ msg: 'a lease was not renewed', releaseId: this.releaseId, err: error });
    }
  }

  /**
   * Hands the release back for its next attempt, which does not count as a recovery.
   *
   * @returns the next attempt; null when the lease was lost already
   */
  async handBack(): Promise<number | null> {
    this.signalLoss();
    return (await this.leases.releasesRepository.handBackLease(this.claim)) ? this.claim.attempt + 1 : null;
  }

  /** Stops the renewal. */
  stop(): void {
    this.renewal.stop();
  }
}

/** An outcome that ends a release. @param message what happened and what to do */
export function failed(status: 'FAILURE' | 'FAILURE_SCAN', stage: Stage, message: string): StageOutcome {
  return { change: { status }, lines: [{ stage, level: 'error', message }] };
}
