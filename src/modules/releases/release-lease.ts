/**
 * The lease of one worker on a release, renewed at a third of its duration.
 *
 * All changes of a stage are written by `commit`, which writes only while the row names this holder and attempt, so a
 * worker whose lease expired changes nothing. When the lease is lost (cancelled, deleted, claimed by another worker),
 * work that waits under it immediately fails with a LeaseLostError. The lease survives a database outage: the next
 * renewal decides. At shutdown the release is handed back, and its next attempt does not count as a recovery.
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

/** The outcome of a stage, which is written in one transaction. Without a status in `change`, the next stage is due. */
export interface StageOutcome {
  change?: ReleaseChange;
  lines?: LogLine[];
  inTransaction?: (tx: EntityManager) => Promise<void>;
  /** Publishes the change after the commit. */
  onCommitted?: () => void;
}

/**
 * A stage can run again after a crash, so all its changes are in its outcome, except the icon of the metadata stage,
 * which is idempotent.
 */
export interface ReleaseStage {
  run(release: Release, lease: ReleaseLease): Promise<StageOutcome>;
}

/** The release was cancelled, deleted, or claimed by another worker. */
export class LeaseLostError extends Error {}

export class LossSignal {
  private reject: (error: LeaseLostError) => void = () => undefined;
  private readonly lost = new Promise<never>((_, reject) => (this.reject = reject));

  constructor() {
    this.lost.catch(() => undefined);
  }

  /** @throws LeaseLostError as soon as the right to the work is lost, without waiting for `work` */
  whileHeld<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.lost]);
  }

  /** Signals the loss, and rejects later waits of {@link whileHeld}. */
  signalLoss(): void {
    this.reject(new LeaseLostError());
  }
}

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

  begin(claim: Claim): ReleaseLease {
    this.announce(claim.releaseId);
    return new ReleaseLease(this, claim);
  }

  announce(id: string): void {
    this.pubSub.publish('releases.changed', { id });
  }
}

/** The lease of a release, renewed until it is stopped. */
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

  /** @throws LeaseLostError */
  async log(line: LogLine): Promise<void> {
    await this.commit({}, [line]);
  }

  /**
   * Runs in one transaction with `also`. Another status releases the lease.
   *
   * @throws LeaseLostError with nothing written
   */
  async commit(change: ReleaseChange, lines: LogLine[], also?: (tx: EntityManager) => Promise<void>): Promise<void> {
    const { database, releasesRepository: releases, releaseLogsRepository: logs } = this.leases;
    await database.transaction(async (tx) => {
      await releases.limitIdleTime(tx);
      // First, because it locks the row of the server, as publishing does before any release.
      await also?.(tx);
      if (!(await releases.updateHeld(this.claim, change, tx))) {
        this.signalLoss();
        throw new LeaseLostError();
      }
      await logs.append(this.claim.releaseId, lines, tx);
    });
    this.leases.announce(this.releaseId);
  }

  /** Stops the work under a lost lease. A database outage changes nothing. */
  async renew(): Promise<void> {
    try {
      if (!(await this.leases.releasesRepository.renewLease(this.claim))) this.signalLoss();
    } catch (error) {
      this.leases.logger.debug({ msg: 'a lease was not renewed', releaseId: this.releaseId, err: error });
    }
  }

  /**
   * Hands back the lease. The next attempt does not count as a recovery.
   *
   * @returns the next attempt; null if the lease was already lost
   */
  async handBack(): Promise<number | null> {
    this.signalLoss();
    return (await this.leases.releasesRepository.handBackLease(this.claim)) ? this.claim.attempt + 1 : null;
  }

  stop(): void {
    this.renewal.stop();
  }
}

/** Returns an outcome that finishes a release. @param message what happened and what to do */
export function failed(status: 'FAILURE' | 'FAILURE_SCAN', stage: Stage, message: string): StageOutcome {
  return { change: { status }, lines: [{ stage, level: 'error', message }] };
}
