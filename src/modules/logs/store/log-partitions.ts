import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { Client } from 'pg';
import { DataSource } from 'typeorm';
import { DAY_MS, dayOf, partitionOf } from './invocation-days.js';

/** A table that holds a day. */
export interface LogPartition {
  name: string;
  /** `YYYY-MM-DD` */
  day: string;
  /** With its indexes. */
  bytes: number;
  /** As Postgres estimates them; 0 when it does not. */
  rows: number;
  /** False: it was being dropped when something broke. */
  attached: boolean;
  /** It is part of the log, but Postgres was interrupted while it was taken out. */
  detaching: boolean;
}

const ALL_PARTITIONS = `
  SELECT c.relname AS name, to_char(to_date(right(c.relname, 8), 'YYYYMMDD'), 'YYYY-MM-DD') AS day,
         pg_total_relation_size(c.oid)::float8 AS bytes, greatest(c.reltuples, 0) AS rows,
         i.inhrelid IS NOT NULL AS attached,
         coalesce(i.inhdetachpending, false) AS detaching
    FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = 'invocations'::regclass
   WHERE c.relname ~ '^invocations_[0-9]{8}$' AND c.relkind = 'r'
     AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'invocations'::regclass)
   ORDER BY c.relname`;

/** Makes and drops the tables that hold one day each. */
@Injectable()
export class LogPartitions {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /**
   * Makes the partition of a day unless it is there. Inserts go on meanwhile: it is made beside the others and attached,
   * which takes no lock that an insert would meet.
   */
  async make(day: string): Promise<void> {
    const partition = partitionOf(day);
    const next = dayOf(Date.parse(day) + DAY_MS);
    await this.database.transaction(async (tx) => {
      await tx.query(`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, [partition]);
      const [row] = await tx.query<{ exists: boolean }[]>(`SELECT to_regclass($1) IS NOT NULL AS "exists"`, [
        partition,
      ]);
      if (row.exists) return;
      await tx.query(`CREATE TABLE ${partition} (LIKE invocations INCLUDING ALL)`);
      await tx.query(`ALTER TABLE invocations ATTACH PARTITION ${partition} FOR VALUES FROM ('${day}') TO ('${next}')`);
    });
  }

  /** All of them, the oldest first. */
  list(): Promise<LogPartition[]> {
    return this.database.query<LogPartition[]>(ALL_PARTITIONS);
  }

  /**
   * Drops a day. Inserts and reads go on: it is taken out first, which waits for nobody but who uses this very day. Needs a
   * connection of its own, since that runs in no transaction. May be called again after it broke off.
   */
  async drop({ name, attached, detaching }: LogPartition, client: Client): Promise<void> {
    if (attached) {
      await client.query(`ALTER TABLE invocations DETACH PARTITION ${name} ${detaching ? 'FINALIZE' : 'CONCURRENTLY'}`);
    }
    await client.query(`DROP TABLE IF EXISTS ${name}`);
  }
}
