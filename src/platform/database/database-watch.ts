import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Tuning } from '../../config/tuning.js';
import { withTimeout } from '../limits/with-timeout.js';
import { repeat, type Repeat } from '../schedule/repeat.js';
import { poolOf } from './data-source-options.js';
import { DatabaseUnreachableError } from './postgres-errors.js';
import { databaseAvailability } from './database-availability.js';
import { CLOCK_OFFSET_MS_MAX } from './deletion-time.js';

const PING_EVERY_MS = 1_000;

/** Timeout of a ping, longer than any healthy response, shorter than the timeouts of load balancers. */
const PING_MS_MAX = 2_000;

/** Pings every second: the availability of the database, and its clock, which all processes of a service share. */
@Injectable()
export class DatabaseWatch implements OnApplicationBootstrap, OnApplicationShutdown {
  /** Milliseconds by which the clock of this process is ahead of the database's; negative: behind. */
  clockOffsetMs = 0;
  private pings: Repeat | null = null;
  private pinging: Promise<boolean> | null = null;

  constructor(
    private readonly database: DataSource,
    { staleReadMs }: Tuning,
  ) {
    databaseAvailability.allowStale(staleReadMs);
  }

  onApplicationBootstrap(): void {
    this.pings = repeat(PING_EVERY_MS, () => void this.check());
  }

  onApplicationShutdown(): void {
    this.pings?.stop();
  }

  /** True when the clock of this process is too far off for calls between processes. */
  get isClockOff(): boolean {
    return Math.abs(this.clockOffsetMs) > CLOCK_OFFSET_MS_MAX;
  }

  /**
   * Requires a response within 2 s, and that the database accepts writes. Concurrent callers share a ping. Never
   * rejects.
   */
  async check(): Promise<boolean> {
    this.pinging ??= this.ping().finally(() => (this.pinging = null));
    const isAnswered = await withTimeout(PING_MS_MAX, this.pinging, false);
    if (!isAnswered) databaseAvailability.failed();
    return isAnswered;
  }

  private async ping(): Promise<boolean> {
    // A ping that times out closes its connection, so that the next one does not wait on a dead network as well.
    const text = `SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now, current_setting('transaction_read_only')::boolean AS "isReadOnly"`;
    const query = { text, query_timeout: PING_MS_MAX };
    try {
      const sentAt = Date.now();
      const { rows } = await poolOf(this.database).query<{ now: string; isReadOnly: boolean }>(query);
      if (rows[0]?.isReadOnly) throw new DatabaseUnreachableError('It only reads');
      this.clockOffsetMs = (sentAt + Date.now()) / 2 - Number(rows[0]?.now);
      databaseAvailability.markAvailable();
      return true;
    } catch {
      databaseAvailability.failed();
      return false;
    }
  }
}
