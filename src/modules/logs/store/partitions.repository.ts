import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { Client } from 'pg';
import { DataSource, type EntityManager } from 'typeorm';
import { DAY_MS, dayOf, DURATION_POWER, leastIdAt, partitionOf, type IndexedRange } from './invocation-days.js';

export interface LogPartition {
  name: string;
  /** Day as `YYYY-MM-DD`. */
  day: string;
  /** Size with indexes. */
  bytes: number;
  /** Number of rows, estimated by Postgres; 0 without an estimate. */
  rows: number;
  /** False if the partition is detached, because its removal was interrupted. */
  attached: boolean;
  /** True if detaching it was interrupted; its rows are still visible. */
  detaching: boolean;
}

/** The name of the index states its range. */
export interface SearchIndex extends IndexedRange {
  name: string;
  /** False if the build of the index was interrupted. */
  isValid: boolean;
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

const OLDEST_DAY = `
  SELECT to_char(to_date(min(right(c.relname, 8)), 'YYYYMMDD'), 'YYYY-MM-DD') AS day
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
   WHERE i.inhparent = 'invocations'::regclass AND c.relname ~ '^invocations_[0-9]{8}$'`;

const SEARCH_INDEXES = `
  SELECT c.relname AS name, i.indisvalid AS "isValid" FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
   WHERE c.relname ~ '^invocations_[0-9]{8}_search_[0-9]+_[0-9]+$' AND pg_table_is_visible(c.oid)
   ORDER BY c.relname`;

/**
 * Trigrams of the messages, and the other filters of a list; with the server, because a word that is common to many
 * servers would have many hits to discard.
 */
const INDEXED = `gin (server_id, search_text gin_trgm_ops, caller_account, caller_id, outcome, tool_name, rpc_method,
                      (${DURATION_POWER}))`;

/** Settings of a build, which uses one core and this memory. */
const BUILD_SETTINGS = `SET maintenance_work_mem = '256MB'; SET max_parallel_maintenance_workers = 0`;

@Injectable()
export class PartitionsRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /**
   * Creates the partition of a day unless it exists. Does not block inserts: the table is created separately and then
   * attached.
   *
   * @param tx the transaction that needs it; by default a separate one
   */
  async make(day: string, tx: EntityManager = this.database.manager): Promise<void> {
    const partition = partitionOf(day);
    const next = dayOf(Date.parse(day) + DAY_MS);
    await tx.transaction(async (making) => {
      await making.query(`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, [partition]);
      const [row] = await making.query<{ exists: boolean }[]>(`SELECT to_regclass($1) IS NOT NULL AS "exists"`, [
        partition,
      ]);
      if (row.exists) return;
      await making.query(`CREATE TABLE ${partition} (LIKE invocations INCLUDING ALL)`);
      await making.query(
        `ALTER TABLE invocations ATTACH PARTITION ${partition} FOR VALUES FROM ('${day}') TO ('${next}')`,
      );
    });
  }

  /** Lists partitions, oldest first. */
  list(): Promise<LogPartition[]> {
    return this.database.query<LogPartition[]>(ALL_PARTITIONS);
  }

  /** Returns the day of the oldest attached partition; null without one. */
  async oldestDay(): Promise<string | null> {
    const [row] = await this.database.query<{ day: string | null }[]>(OLDEST_DAY);
    return row?.day ?? null;
  }

  async searchIndexes(): Promise<SearchIndex[]> {
    const rows = await this.database.query<{ name: string; isValid: boolean }[]>(SEARCH_INDEXES);
    return rows.map(({ name, isValid }) => {
      const [from, to] = name.split('_').slice(-2).map(Number);
      return { name, isValid, from, to };
    });
  }

  /**
   * Drops a partition. Does not block inserts and reads of other days: it is detached first. Can be repeated after an
   * interruption.
   *
   * @param client not in a transaction, as `DETACH … CONCURRENTLY` requires
   */
  async drop({ name, attached, detaching }: LogPartition, client: Client): Promise<void> {
    if (attached) {
      await client.query(`ALTER TABLE invocations DETACH PARTITION ${name} ${detaching ? 'FINALIZE' : 'CONCURRENTLY'}`);
    }
    await client.query(`DROP TABLE IF EXISTS ${name}`);
  }

  /** Builds the search index of a day or a part of it. @param client without a time limit for statements */
  async buildIndex({ day, name }: LogPartition, { from, to }: IndexedRange, client: Client): Promise<void> {
    const where = to - from === DAY_MS ? '' : `WHERE id >= '${leastIdAt(from)}' AND id < '${leastIdAt(to)}'`;
    await client.query(BUILD_SETTINGS);
    await client.query(`CREATE INDEX CONCURRENTLY ${name}_search_${from}_${to} ON ${name} USING ${INDEXED} ${where}`);
    // Without it, the planner uses the statistics of the last autovacuum.
    await client.query(`ANALYZE ${partitionOf(day)}`);
  }

  async dropIndex({ name }: SearchIndex, client: Client): Promise<void> {
    await client.query(`DROP INDEX CONCURRENTLY ${name}`);
  }

  /** Counts the rows of a range of a day, up to `max`. */
  async countRows({ name }: LogPartition, { from, to }: IndexedRange, max: number, client: Client): Promise<number> {
    const { rows } = await client.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM (SELECT FROM ${name} WHERE id >= $1 AND id < $2 LIMIT $3) AS present`,
      [leastIdAt(from), leastIdAt(to), max],
    );
    return rows[0].count;
  }

  /** Acquires an advisory lock for as long as the client is connected. Returns false if another session holds it. */
  async tryLock(key: number, client: Client): Promise<boolean> {
    const { rows } = await client.query<{ locked: boolean }>('SELECT pg_try_advisory_lock($1) AS locked', [key]);
    return rows[0].locked;
  }

  /** Cancels the current statement of a Postgres server process. */
  async cancel(processId: number): Promise<void> {
    await this.database.query('SELECT pg_cancel_backend($1)', [processId]);
  }
}
