import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { Env } from '../../../config/env.js';
import { codeOf } from '../../../platform/database/postgres-errors.js';
import { DAY_MS, dayOf, dayOfId } from './invocation-days.js';
import { INSERT_INVOCATIONS, insertValues } from './invocation-insert.js';
import type { InvocationRow } from './invocation-row.js';
import { LogPartitions } from './log-partitions.js';

/** SQLSTATE of a row without a partition. */
const NO_PARTITION = '23514';

/** SQLSTATEs of what a value is to blame for: another try would fail as well. 54: it exceeds what Postgres can hold. */
const BAD_VALUE = /^(22|23|54)/;

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/;

/** Clocks of machines differ, and near midnight that is another day. */
const AHEAD_MS_MAX = DAY_MS;

/** What the worker did since it started. */
export interface StoreStats {
  /** Rows that were written, pieces and repetitions included. */
  written: number;
  /** Rows that cannot be kept: their id is of no day that is kept, or Postgres refuses them. */
  refused: number;
}

/** Writes invocations. */
@Injectable()
export class InvocationStore {
  private readonly logger = new Logger('logs');
  private written = 0;
  private refused = 0;

  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly partitions: LogPartitions,
    private readonly env: Env,
  ) {}

  stats(): StoreStats {
    return { written: this.written, refused: this.refused };
  }

  /**
   * Keeps rows in one statement; see {@link INSERT_INVOCATIONS}. Rows that cannot be kept are passed over, counted and
   * logged. May run again with the same number.
   *
   * @throws what Postgres says, when it is not a row's fault
   */
  async keep(rows: InvocationRow[], job: number): Promise<void> {
    const today = Date.parse(dayOf(Date.now()));
    const oldest = dayOf(today - this.env.logRetentionDays * DAY_MS);
    const newest = dayOf(today + AHEAD_MS_MAX);
    const isKept = ({ id, serverId }: InvocationRow) => {
      if (!UUID_V7.test(id) || !UUID.test(serverId)) return false;
      const day = dayOfId(id);
      return day > oldest && day <= newest;
    };
    const known = new Map<string, InvocationRow>();
    for (const row of rows) if (isKept(row)) known.set(row.id, row);
    // In one order everywhere: two workers that add to the same invocations must not wait for each other.
    const kept = [...known.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
    const refusedBefore = this.refused;
    this.refused += rows.length - kept.length;
    await this.write(kept, job);
    const refused = this.refused - refusedBefore;
    if (refused > 0) this.logger.warn(`${refused} invocations of job ${job} cannot be kept`);
  }

  /** Halves what fails until the rows that are to blame are alone. */
  private async write(rows: InvocationRow[], job: number): Promise<void> {
    if (rows.length === 0) return;
    try {
      await this.insert(rows, job);
      this.written += rows.length;
    } catch (error) {
      if (!BAD_VALUE.test(codeOf(error) ?? '')) throw error;
      if (rows.length === 1) {
        this.refused += 1;
        this.logger.debug({ msg: `invocation ${rows[0].id} cannot be kept`, err: error });
        return;
      }
      const middle = rows.length >> 1;
      await this.write(rows.slice(0, middle), job);
      await this.write(rows.slice(middle), job);
    }
  }

  private async insert(rows: InvocationRow[], job: number): Promise<void> {
    const values = insertValues(rows, job);
    try {
      await this.database.query(INSERT_INVOCATIONS, values);
    } catch (error) {
      if (codeOf(error) !== NO_PARTITION) throw error;
      for (const day of new Set(rows.map(({ id }) => dayOfId(id)))) await this.partitions.make(day);
      await this.database.query(INSERT_INVOCATIONS, values);
    }
  }
}
