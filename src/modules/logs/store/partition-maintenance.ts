import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { Client } from 'pg';
import { DataSource } from 'typeorm';
import { Env } from '../../../config/env.js';
import { isDatabaseAway } from '../../../platform/database/database-outage.js';
import { DAY_MS, dayOf } from './invocation-days.js';
import { buildIndexes } from './log-indexes.js';
import { LogPartitions, type LogPartition } from './log-partitions.js';
import { SearchIndexes } from './search-indexes.js';

/** How soon the rows of a busy day get their next index. */
const EVERY_MS = 60_000;

/** Partitions are there so many days before their day. */
const DAYS_AHEAD = 2;

/** Any constant: of all workers one at a time looks after the partitions. */
const KEEPER_LOCK = 7_265_018;

/** What must wait for others waits so long, and is tried again the next time. */
const LOCK_TIMEOUT_MS = 30_000;

const GB = 1024 ** 3;

/**
 * Looks after the partitions of the log, in every worker, one at a time: makes them ahead, builds the indexes of search off
 * the way of ingestion, and drops the oldest by age and by size.
 */
@Injectable()
export class PartitionMaintenance implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger('logs');
  private timer: NodeJS.Timeout | null = null;
  private keeping: Promise<void> = Promise.resolve();
  private client: Client | null = null;
  private isStopping = false;

  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly partitions: LogPartitions,
    private readonly indexes: SearchIndexes,
    private readonly env: Env,
  ) {}

  onApplicationBootstrap(): void {
    void this.keep();
    this.timer = setInterval(() => void this.keep(), EVERY_MS).unref();
  }

  async onApplicationShutdown(): Promise<void> {
    this.isStopping = true;
    if (this.timer) clearInterval(this.timer);
    // The build of an index may take minutes. What a cut off one leaves behind goes the next time.
    await this.cancel();
    await this.keeping;
  }

  /** Does what is due. Never rejects. @param now for tests */
  keep(now = Date.now()): Promise<void> {
    this.keeping = this.keeping.then(() => this.attempt(now));
    return this.keeping;
  }

  private async attempt(now: number): Promise<void> {
    if (this.isStopping) return;
    try {
      for (let ahead = 0; ahead <= DAYS_AHEAD; ahead += 1) await this.partitions.make(dayOf(now + ahead * DAY_MS));
      await this.alone(async (client) => {
        await this.dropSurplus(now, client);
        await this.buildIndexes(now, client);
      });
    } catch (error) {
      if (this.isStopping) return;
      const level = isDatabaseAway(error) ? 'debug' : 'error';
      this.logger[level]({ msg: 'the partitions of the log were not looked after', err: error });
    }
  }

  /** On a connection of its own: what it does outlasts the time limits of the pool's. */
  private async alone(work: (client: Client) => Promise<void>): Promise<void> {
    const client = new Client({
      connectionString: this.env.databaseUrl ?? '',
      application_name: 'slipway logs',
      connectionTimeoutMillis: 5_000,
      keepAlive: true,
      lock_timeout: LOCK_TIMEOUT_MS,
    });
    // Its end is also the end of what runs on it, which says so.
    client.on('error', (error) => this.logger.debug({ msg: 'a connection ended', err: error }));
    try {
      await client.connect();
      this.client = client;
      const { rows } = await client.query<{ mine: boolean }>('SELECT pg_try_advisory_lock($1) AS mine', [KEEPER_LOCK]);
      if (rows[0]?.mine) await work(client);
    } finally {
      this.client = null;
      await client.end();
    }
  }

  private async cancel(): Promise<void> {
    const { processID } = (this.client ?? {}) as { processID?: number };
    if (processID === undefined) return;
    await this.database.query('SELECT pg_cancel_backend($1)', [processID]).catch((error: unknown) => {
      this.logger.debug({ msg: 'what runs for the log was not cancelled', err: error });
    });
  }

  private async buildIndexes(now: number, client: Client): Promise<void> {
    const indexes = await this.indexes.list();
    for (const partition of await this.partitions.list()) {
      if (this.isStopping) return;
      const own = indexes.filter(({ name }) => name.startsWith(`${partition.name}_`));
      if (partition.attached) await buildIndexes(partition, own, client, now);
    }
  }

  private async dropSurplus(now: number, client: Client): Promise<void> {
    const { logRetentionDays, logRetentionGb } = this.env;
    for (const partition of surplusOf(await this.partitions.list(), now, logRetentionDays, logRetentionGb * GB)) {
      await this.partitions.drop(partition, client);
      const megabytes = Math.round(partition.bytes / 1024 ** 2);
      this.logger.log(`the log of ${partition.day} was dropped (${megabytes} MB)`);
    }
  }
}

/**
 * The partitions to drop, the oldest first: those of days that are over their age, then as many as make the rest fit. Today's
 * and later ones stay whatever their size. What was half dropped goes too.
 */
export function surplusOf(partitions: LogPartition[], now: number, daysMax: number, bytesMax: number): LogPartition[] {
  const today = dayOf(now);
  const oldest = dayOf(now - (daysMax - 1) * DAY_MS);
  let bytes = partitions.reduce((sum, partition) => sum + partition.bytes, 0);
  return partitions.filter((partition) => {
    const isOver = !partition.attached || partition.detaching || partition.day < oldest;
    if (!isOver && (partition.day >= today || bytes <= bytesMax)) return false;
    bytes -= partition.bytes;
    return true;
  });
}
