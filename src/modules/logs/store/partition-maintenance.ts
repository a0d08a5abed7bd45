/**
 * Maintains the daily partitions of the log, in workers, every minute: creates those of the next days, drops the oldest
 * by age (`LOG_RETENTION_DAYS`) and by size (`LOG_RETENTION_GB`), and builds search indexes.
 *
 * A trigram index costs an insert more than everything else together, so rows are inserted without one. Each past part
 * of an open day gets an index; one over the whole closed day replaces them. An advisory lock, on a connection without
 * time limits, allows one worker at a time.
 *
 * Today's partition is kept whatever its size. Incomplete indexes of an interrupted build are dropped and built again;
 * without an index, a search is slower but still correct.
 */
import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { Client } from 'pg';
import { DataSource } from 'typeorm';
import { Env } from '../../../config/env.js';
import { openClient, UNLIMITED } from '../../../platform/database/session.js';
import { Schedule } from '../../../platform/schedule/schedule.js';
import { DAY_MS, dayOf, HOUR_MS } from './invocation-days.js';
import { InvocationsRepository } from './invocations.repository.js';
import { PartitionsRepository, type LogPartition, type SearchIndex } from './partitions.repository.js';
import { deletionTime } from '../../../platform/database/deletion-time.js';

/** Interval of maintenance, after which a busy day gets its next index. */
const EVERY_MS = 60_000;

const DAYS_AHEAD = 2;

/** Number of the advisory lock, an arbitrary constant. Its holder drops partitions and builds indexes. */
const MAINTENANCE_LOCK = 7_265_018;

/** Limit of waiting for a lock; the next run retries. */
const LOCK_TIMEOUT_MS = 30_000;

const GB = 1024 ** 3;

/** Time after the end of a day until it is closed: jobs that waited in the queue are stored by then. */
const DAY_GRACE_MS = HOUR_MS;

/** Time after the end of a part until its index is built; the index also covers later rows. */
const PART_GRACE_MS = 60_000;

/** Rows without an index after which the next part of an open day gets one: a search reads all of them. */
const PART_ROWS = 50_000;

/**
 * Maximum number of parts of a busy day, each with at least an equal share of its rows: the planner considers each
 * index in each branch.
 */
const PARTS = 8;

@Injectable()
export class PartitionMaintenance implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger('logs');
  /** The session that holds the lock. */
  private client: Client | null = null;
  private isStopping = false;

  constructor(
    private readonly schedule: Schedule,
    private readonly partitionsRepository: PartitionsRepository,
    private readonly invocationsRepository: InvocationsRepository,
    private readonly env: Env,
    @InjectDataSource() private readonly database: DataSource,
  ) {}

  onApplicationBootstrap(): void {
    this.schedule.every('maintenance of the log partitions', EVERY_MS, () => this.run(), { immediately: true });
  }

  /** Cancels an index build, which can take minutes. The next run drops the incomplete index. */
  async onModuleDestroy(): Promise<void> {
    this.isStopping = true;
    const { processID } = (this.client ?? {}) as { processID?: number };
    if (processID === undefined) return;
    await this.partitionsRepository.cancel(processID).catch((error: unknown) => {
      this.logger.debug({ msg: 'the maintenance of the log partitions was not cancelled', err: error });
    });
  }

  /** Performs the due maintenance. @param now for tests */
  async run(now = Date.now()): Promise<void> {
    if (this.isStopping) return;
    for (let ahead = 0; ahead <= DAYS_AHEAD; ahead += 1)
      await this.partitionsRepository.make(dayOf(now + ahead * DAY_MS));
    const old = await deletionTime(this.database);
    if (old) await this.invocationsRepository.forgetCharges(old);
    await this.runAlone(async (client) => {
      await this.dropSurplus(now, client);
      await this.invocationsRepository.forgetHours((await this.partitionsRepository.oldestDay()) ?? dayOf(now));
      const indexes = await this.partitionsRepository.searchIndexes();
      for (const partition of await this.partitionsRepository.list()) {
        if (this.isStopping) return;
        const indexesOfDay = indexes.filter(({ name }) => name.startsWith(`${partition.name}_`));
        if (partition.attached) await this.buildIndexes(partition, indexesOfDay, client, now);
      }
    });
  }

  /** Runs `work` on a separate connection, without the time limits of the pool, unless another worker does. */
  private async runAlone(work: (client: Client) => Promise<void>): Promise<void> {
    const settings = { ...UNLIMITED, lock_timeout: LOCK_TIMEOUT_MS };
    const client = await openClient(this.env.databaseUrl ?? '', 'slipway logs', settings);
    try {
      if (!(await this.partitionsRepository.tryLock(MAINTENANCE_LOCK, client))) return;
      this.client = client;
      await work(client);
    } catch (error) {
      if (!this.isStopping) throw error;
    } finally {
      if (this.client === client) this.client = null;
      await client.end();
    }
  }

  /** Builds and drops the search indexes of a day while rows are inserted. */
  private async buildIndexes(
    partition: LogPartition,
    existing: SearchIndex[],
    client: Client,
    now: number,
  ): Promise<void> {
    for (const index of existing) if (!index.isValid) await this.partitionsRepository.dropIndex(index, client);
    const valid = existing.filter(({ isValid }) => isValid);
    const start = Date.parse(partition.day);
    const end = start + DAY_MS;
    if (end + DAY_GRACE_MS <= now) {
      const parts = valid.filter(({ from, to }) => from !== start || to !== end);
      if (parts.length === valid.length)
        await this.partitionsRepository.buildIndex(partition, { from: start, to: end }, client);
      for (const index of parts) await this.partitionsRepository.dropIndex(index, client);
      return;
    }
    // The past part of an open day that is not indexed yet.
    const next = { from: Math.max(start, ...valid.map(({ to }) => to)), to: Math.min(end, now - PART_GRACE_MS) };
    if (next.to <= next.from) return;
    const enough = Math.max(PART_ROWS, Math.ceil(partition.rows / PARTS));
    const count = await this.partitionsRepository.countRows(partition, next, enough, client);
    if (count >= enough) await this.partitionsRepository.buildIndex(partition, next, client);
  }

  private async dropSurplus(now: number, client: Client): Promise<void> {
    const { logRetentionDays, logRetentionGb } = this.env;
    const old = await deletionTime(this.database);
    const oldest = old && dayOf(old.getTime() - (logRetentionDays - 1) * DAY_MS);
    const stored = await this.partitionsRepository.list();
    for (const partition of surplusOf(stored, dayOf(now), oldest, logRetentionGb * GB)) {
      await this.partitionsRepository.drop(partition, client);
      const megabytes = Math.round(partition.bytes / 1024 ** 2);
      this.logger.log(`the log of ${partition.day} was dropped (${megabytes} MB)`);
    }
  }
}

/**
 * Returns the partitions to drop, the oldest first: those beyond the maximum age and half-dropped ones, then as many as
 * the size limit requires. Never those of today and later.
 *
 * @param oldest first day within the maximum age; null: no limit of age
 */
export function surplusOf(
  partitions: LogPartition[],
  today: string,
  oldest: string | null,
  bytesMax: number,
): LogPartition[] {
  let bytes = partitions.reduce((sum, partition) => sum + partition.bytes, 0);
  return partitions.filter((partition) => {
    const isDue = !partition.attached || partition.detaching || (oldest !== null && partition.day < oldest);
    if (!isDue && (partition.day >= today || bytes <= bytesMax)) return false;
    bytes -= partition.bytes;
    return true;
  });
}
