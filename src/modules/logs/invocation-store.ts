import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { codeOf } from '../../platform/database/postgres-errors.js';
import { dayOfId } from './invocation-days.js';
import { INSERT_INVOCATIONS, insertValues } from './invocation-insert.js';
import type { InvocationRow } from './invocation-row.js';
import { LogPartitions } from './log-partitions.js';

/** Writes invocations. */
@Injectable()
export class InvocationStore {
  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly partitions: LogPartitions,
  ) {}

  /** Keeps rows of different invocations in one statement; see {@link INSERT_INVOCATIONS}. */
  async keep(rows: InvocationRow[], job: number): Promise<void> {
    try {
      await this.database.query(INSERT_INVOCATIONS, insertValues(rows, job));
    } catch (error) {
      if (codeOf(error) !== NO_PARTITION) throw error;
      for (const day of new Set(rows.map(({ id }) => dayOfId(id)))) await this.partitions.make(day);
      await this.database.query(INSERT_INVOCATIONS, insertValues(rows, job));
    }
  }
}

/** SQLSTATE of a check that failed, and of a row without a partition. */
const NO_PARTITION = '23514';
