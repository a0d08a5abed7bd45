import { Logger } from '@nestjs/common';
import type { DataSource, EntityManager } from 'typeorm';
import type { QueryDeepPartialEntity } from 'typeorm/query-builder/QueryPartialEntity.js';
import { writeLines, type LogLine } from './release-log.js';
import { isFinal, requireTransition, type ReleaseStatus } from './release-state.js';
import { Release } from './release.entity.js';

/** The worker does not hold the release any more: it was cancelled, deleted, or another worker took it over. */
export class LeaseLostError extends Error {}

/** What one worker was started for. */
export interface Claim {
  releaseId: string;
  attempt: number;
  holder: string;
}

/**
 * A release in the hands of one worker. Whatever is written through it counts only while the lease holds, so a worker
 * that was thought dead changes nothing any more.
 */
export class ReleaseLease {
  private readonly logger = new Logger('releases');
  private readonly timer: NodeJS.Timeout;
  private lose: (error: LeaseLostError) => void = () => undefined;
  private readonly lost = new Promise<never>((_, reject) => (this.lose = reject));

  get releaseId(): string {
    return this.claim.releaseId;
  }

  constructor(
    private readonly database: DataSource,
    private readonly claim: Claim,
    private readonly leaseMs: number,
    private readonly announce: () => void,
  ) {
    this.lost.catch(() => undefined);
    this.timer = setInterval(() => void this.renew(), leaseMs / 3).unref();
  }

  /** What `work` comes to. @throws LeaseLostError as soon as the lease is lost, whatever becomes of `work` */
  whileHeld<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.lost]);
  }

  /** Adds a line to the log. @throws LeaseLostError */
  async log(line: LogLine): Promise<void> {
    await this.commit({}, [line]);
  }

  /**
   * Changes the release, writes its log and whatever `also` writes, all or nothing. Another status ends the lease.
   *
   * @throws LeaseLostError with nothing written
   */
  async commit(
    change: QueryDeepPartialEntity<Release> & { status?: ReleaseStatus },
    lines: LogLine[],
    also?: (tx: EntityManager) => Promise<void>,
  ): Promise<void> {
    const { status } = change;
    if (status !== undefined) requireTransition('WORKING', status);
    const end = status === undefined ? {} : endOfLease(status);
    await this.database.transaction(async (tx) => {
      // A worker that freezes right here would keep others from taking the release over.
      await tx.query(`SET LOCAL idle_in_transaction_session_timeout = ${Math.round(this.leaseMs)}`);
      // First, since it locks the server's row: whoever publishes locks that before any release's, and so must we.
      await also?.(tx);
      await this.update({ ...end, ...change }, tx);
      await writeLines(this.claim.releaseId, lines, tx);
    });
    this.announce();
  }

  /** Looks whether the lease still holds, and prolongs it. A database that is away says nothing about that. */
  async renew(): Promise<void> {
    try {
      await this.update({ leaseUntil: () => leaseExpirySql(this.leaseMs) }, this.database.manager);
    } catch (error) {
      if (!(error instanceof LeaseLostError)) this.logger.debug({ msg: 'a lease was not renewed', err: error });
    }
  }

  /**
   * Gives the release back. Whoever runs the next attempt goes on with it; it does not count as the death of a worker.
   *
   * @returns the next attempt; null when the lease was lost already
   */
  async handBack(): Promise<number | null> {
    this.lose(new LeaseLostError());
    const attempt = this.claim.attempt + 1;
    try {
      await this.update(
        { attempt, leaseHolder: null, leaseUntil: () => queueDeadlineSql(this.leaseMs) },
        this.database.manager,
      );
      return attempt;
    } catch (error) {
      if (error instanceof LeaseLostError) return null;
      throw error;
    }
  }

  /** Stops prolonging it. */
  end(): void {
    clearInterval(this.timer);
  }

  private async update(change: QueryDeepPartialEntity<Release>, tx: EntityManager): Promise<void> {
    const { releaseId: id, attempt, holder: leaseHolder } = this.claim;
    const { affected } = await tx
      .createQueryBuilder()
      .update(Release)
      .set({ attempt, ...change })
      .where({ id, attempt, leaseHolder, status: 'WORKING' })
      .execute();
    if (affected) return;
    const error = new LeaseLostError();
    this.lose(error);
    throw error;
  }
}

/** What a release looks like that no worker holds any more. Credentials for the scan are not kept longer than needed. */
export function endOfLease(status: ReleaseStatus): QueryDeepPartialEntity<Release> {
  return {
    status,
    leaseHolder: null,
    leaseUntil: null,
    updatedAt: () => 'now()',
    ...(isFinal(status) ? { sealedScanCredentials: null } : {}),
  };
}

/** When a lease taken now ends, in SQL: by the database's clock, the one all workers share. */
export function leaseExpirySql(leaseMs: number): string {
  return `now() + interval '${Math.round(leaseMs)} milliseconds'`;
}

/** How long a release waits in the queue before somebody asks again: longer than a lease, since a queue may be busy. */
export function queueDeadlineSql(leaseMs: number): string {
  return leaseExpirySql(4 * leaseMs);
}
