import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { DAY_MS, dayOf, partitionOf } from './invocation-days.js';

/** Makes the tables that hold one day each. */
@Injectable()
export class LogPartitions {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /**
   * Makes the partition of a day unless it is there. Filled tables are not waited for: it is made beside the others and
   * attached, which takes no lock that an insert would meet.
   */
  async make(day: string): Promise<void> {
    const partition = partitionOf(day);
    const next = dayOf(Date.parse(day) + DAY_MS);
    await this.database.transaction(async (tx) => {
      await tx.query(`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, [partition]);
      const [{ exists }] = await tx.query<{ exists: boolean }[]>(`SELECT to_regclass($1) IS NOT NULL AS "exists"`, [
        partition,
      ]);
      if (exists) return;
      await tx.query(`CREATE TABLE ${partition} (LIKE invocations INCLUDING ALL)`);
      await tx.query(`ALTER TABLE invocations ATTACH PARTITION ${partition} FOR VALUES FROM ('${day}') TO ('${next}')`);
    });
  }
}
