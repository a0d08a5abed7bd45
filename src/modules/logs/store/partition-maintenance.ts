/**
 * Maintains the daily partitions of the log, in workers, every minute: makes those of the next days, drops the oldest
 * by age (`LOG_RETENTION_DAYS`) and by size (`LOG_RETENTION_GB`), and builds search indexes.
 *
 * A trigram index costs an insert more than all else together, so rows are inserted without one. Past parts of an open
 * day get one each; an index over their block replaces them, or one over the whole closed day if it has few rows. One
 * worker at a time does this, by an advisory lock on a connection without time limits.
 *
 * Today's partition stays whatever its size. Indexes that an interrupted build left are dropped and built again; a
 * search without index is slower, never wrong.
 */
import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { Client } from 'pg';
import { Env } from '../../../config/env.js';
import { Schedule } from '../../../platform/schedule/schedule.js';
import { DAY_MS, dayOf, HOUR_MS, type IndexedRange } from './invocation-days.js';
import { InvocationsRepository } from './invocations.repository.js';
import { PartitionsRepository, type LogPartition, type SearchIndex } from './partitions.repository.js';

/** Interval of the maintenance: a busy day gets its next index this soon. */
const EVERY_MS = 60_000;

/** Days for which partitions are created ahead. */
const DAYS_AHEAD = 2;

/** Any constant: one worker at a time drops partitions and builds indexes. */
const MAINTENANCE_LOCK = 7_265_018;

/** Time limit for waiting for a lock; the next run tries again. */
const LOCK_TIMEOUT_MS = 30_000;

const GB = 1024 ** 3;

/** Time after the end of a day at which it is closed: jobs that waited in the queue are stored by then. */
const DAY_GRACE_MS = HOUR_MS;

/** Time after the end of a part at which its index is built; rows that come later are added to the index. */
const PART_GRACE_MS = 60_000;

/** Rows without an index after which the next part of an open day gets one: a search reads them all. */
const PART_ROWS = 50_000;

/** Maximum number of parts of a day, since each build reads the whole table. */
const PARTS = 48;

/** Number of blocks of a busy day, each with one index. Few, because the planner considers each index in each branch. */
const BLOCKS = 8;

const BUSY_ROWS = 400_000;

const isSame = (one: IndexedRange) => (other: IndexedRange) => one.from === other.from && one.to === other.to;

/** Makes, indexes and drops partitions. */
@Injectable()
export class PartitionMaintenance implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger('logs');
  private client: Client | null = null;
  private isStopping = false;

  constructor(
    private readonly schedule: Schedule,
    private readonly partitions: PartitionsRepository,
    private readonly rows: InvocationsRepository,
    private readonly env: Env,
  ) {}

  onApplicationBootstrap(): void {
    this.schedule.every('maintenance of the log partitions', EVERY_MS, () => this.run(), { immediately: true });
  }

  /** Cancels the build of an index, which may take minutes. The next run drops what it leaves behind. */
  async onModuleDestroy(): Promise<void> {
    this.isStopping = true;
    const { processID } = (this.client ?? {}) as { processID?: number };
    if (processID === undefined) return;
    await this.partitions.cancel(processID).catch((error: unknown) => {
      this.logger.debug({ msg: 'the maintenance of the log partitions was not cancelled', err: error });
    });
  }

  /** Does the work that is due. @param now for tests */
  async run(now = Date.now()): Promise<void> {
    if (this.isStopping) return;
    for (let ahead = 0; ahead <= DAYS_AHEAD; ahead += 1) await this.partitions.make(dayOf(now + ahead * DAY_MS));
    await this.rows.forgetCharges();
    await this.alone(async (client) => {
      await this.dropSurplus(now, client);
      await this.rows.forgetHours((await this.partitions.oldestDay()) ?? dayOf(now));
      await this.buildIndexes(now, client);
    });
  }

  /** Drops the days that the retention allows to go. @returns false when a worker does maintenance meanwhile */
  async dropOld(): Promise<boolean> {
    return this.alone((client) => this.dropSurplus(Date.now(), client));
  }

  /**
   * Runs `work` on a connection of its own, without the time limits of the pool, unless another worker does.
   *
   * @returns false when it did not run
   */
  private async alone(work: (client: Client) => Promise<void>): Promise<boolean> {
    const client = new Client({
      connectionString: this.env.databaseUrl ?? '',
      application_name: 'slipway logs',
      connectionTimeoutMillis: 5_000,
      keepAlive: true,
      lock_timeout: LOCK_TIMEOUT_MS,
    });
    // The statement that runs reports the same error.
    client.on('error', (error) => this.logger.debug({ msg: 'a connection ended', err: error }));
    try {
      await client.connect();
      this.client = client;
      if (!(await this.partitions.tryLock(MAINTENANCE_LOCK, client))) return false;
      await work(client);
      return true;
    } catch (error) {
      if (!this.isStopping) throw error;
      return false;
    } finally {
      this.client = null;
      await client.end();
    }
  }

  private async buildIndexes(now: number, client: Client): Promise<void> {
    const indexes = await this.partitions.searchIndexes();
    for (const partition of await this.partitions.list()) {
      if (this.isStopping) return;
      const indexesOfDay = indexes.filter(({ name }) => name.startsWith(`${partition.name}_`));
      if (partition.attached) await buildIndexes(this.partitions, partition, indexesOfDay, client, now);
    }
  }

  /** The days that go. */
  async surplus(now: number): Promise<LogPartition[]> {
    const { logRetentionDays, logRetentionGb } = this.env;
    return surplusOf(await this.partitions.list(), now, logRetentionDays, logRetentionGb * GB);
  }

  private async dropSurplus(now: number, client: Client): Promise<void> {
    for (const partition of await this.surplus(now)) {
      await this.partitions.drop(partition, client);
      const megabytes = Math.round(partition.bytes / 1024 ** 2);
      this.logger.log(`the log of ${partition.day} was dropped (${megabytes} MB)`);
    }
  }
}

/**
 * The partitions to drop, the oldest first: those beyond the maximum age and those half dropped, then as many as make the
 * rest fit. Those of today and later stay whatever their size.
 */
export function surplusOf(partitions: LogPartition[], now: number, daysMax: number, bytesMax: number): LogPartition[] {
  const today = dayOf(now);
  const oldest = dayOf(now - (daysMax - 1) * DAY_MS);
  let bytes = partitions.reduce((sum, partition) => sum + partition.bytes, 0);
  return partitions.filter((partition) => {
    const isDue = !partition.attached || partition.detaching || partition.day < oldest;
    if (!isDue && (partition.day >= today || bytes <= bytesMax)) return false;
    bytes -= partition.bytes;
    return true;
  });
}

/**
 * Builds and drops the search indexes of a day while rows are inserted. @param existing the indexes of this partition
 * @param client not in a transaction and without a time limit for statements
 */
export async function buildIndexes(
  partitions: PartitionsRepository,
  partition: LogPartition,
  existing: SearchIndex[],
  client: Client,
  now: number,
): Promise<void> {
  const invalid = existing.filter(({ isValid }) => !isValid);
  const valid = existing.filter(({ isValid }) => isValid);
  for (const index of invalid) await partitions.dropIndex(index, client);
  const lasting = lastingRanges(partition, valid, now);
  for (const range of lasting) if (!valid.some(isSame(range))) await partitions.buildIndex(partition, range, client);
  const lastsUntil = Math.max(...lasting.map(({ to }) => to));
  const replaced = valid.filter((part) => part.to <= lastsUntil && !lasting.some(isSame(part)));
  for (const index of replaced) await partitions.dropIndex(index, client);
  const next = nextRange(partition, [...valid, ...lasting], now);
  if (!next) return;
  const enough = Math.max(PART_ROWS, Math.ceil(partition.rows / PARTS));
  const count = await partitions.countRows(partition, next, enough, client);
  if (count >= enough) await partitions.buildIndex(partition, next, client);
}

/** The ranges with a permanent index: a closed day with few rows as a whole, otherwise the blocks that are over. */
function lastingRanges({ day, rows }: LogPartition, valid: IndexedRange[], now: number): IndexedRange[] {
  const start = Date.parse(day);
  const whole = { from: start, to: start + DAY_MS };
  const isClosed = whole.to + DAY_GRACE_MS <= now;
  if (isClosed && (rows < BUSY_ROWS || valid.some(isSame(whole)))) return [whole];
  if (rows < BUSY_ROWS) return [];
  const blockMs = DAY_MS / BLOCKS;
  return Array.from({ length: BLOCKS }, (_, n) => ({
    from: start + n * blockMs,
    to: start + (n + 1) * blockMs,
  })).filter(({ to }) => to + (to === whole.to ? DAY_GRACE_MS : PART_GRACE_MS) <= now);
}

/** The past part of a day that has no index; null if there is none. */
function nextRange({ day }: LogPartition, parts: IndexedRange[], now: number): IndexedRange | null {
  const start = Date.parse(day);
  const from = Math.max(start, ...parts.map(({ to }) => to));
  const to = Math.min(start + DAY_MS, now - PART_GRACE_MS);
  return to <= from ? null : { from, to };
}
