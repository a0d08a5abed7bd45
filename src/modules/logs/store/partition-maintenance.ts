import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { Client } from 'pg';
import { Env } from '../../../config/env.js';
import { Schedule } from '../../../platform/schedule/schedule.js';
import { DAY_MS, dayOf } from './invocation-days.js';
import { buildIndexes } from './log-indexes.js';
import { PartitionsRepository, type LogPartition } from './partitions.repository.js';

/** Interval of the maintenance: a busy day gets its next index this soon. */
const EVERY_MS = 60_000;

/** Days for which partitions are created ahead. */
const DAYS_AHEAD = 2;

/** Any constant: one worker at a time drops partitions and builds indexes. */
const MAINTENANCE_LOCK = 7_265_018;

/** Time limit for waiting for a lock; the next run tries again. */
const LOCK_TIMEOUT_MS = 30_000;

const GB = 1024 ** 3;

/**
 * Maintains the partitions of the log in workers: creates them ahead, builds search indexes outside of ingestion, and drops
 * the oldest partitions by age and by size.
 */
@Injectable()
export class PartitionMaintenance implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger('logs');
  private client: Client | null = null;
  private isStopping = false;

  constructor(
    private readonly schedule: Schedule,
    private readonly partitions: PartitionsRepository,
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
    await this.alone(async (client) => {
      await this.dropSurplus(now, client);
      await this.buildIndexes(now, client);
    });
  }

  /** Runs `work` on a connection of its own, without the time limits of the pool, unless another worker does. */
  private async alone(work: (client: Client) => Promise<void>): Promise<void> {
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
      if (await this.partitions.tryLock(MAINTENANCE_LOCK, client)) await work(client);
    } catch (error) {
      if (!this.isStopping) throw error;
    } finally {
      this.client = null;
      await client.end();
    }
  }

  private async buildIndexes(now: number, client: Client): Promise<void> {
    const indexes = await this.partitions.searchIndexes();
    for (const partition of await this.partitions.list()) {
      if (this.isStopping) return;
      const own = indexes.filter(({ name }) => name.startsWith(`${partition.name}_`));
      if (partition.attached) await buildIndexes(this.partitions, partition, own, client, now);
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
