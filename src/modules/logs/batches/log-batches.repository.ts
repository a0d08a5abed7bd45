import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { uuidV7 } from '../../../platform/database/uuid-v7.js';
import type { Invocation } from '../invocation.types.js';

/** The size of all waiting batches in bytes; one account gets at most a quarter. */
export const WAITING_BYTES_MAX = 64 * 1024 * 1024;

/** Size of a batch without its payload. It limits the number of rows, whose sizes each insert adds up. */
const BATCH_BYTES = 4_096;

/** Age at which a batch is enqueued again: its job was lost, or its worker died. */
const OVERDUE_AFTER = `interval '5 seconds'`;

const WRITTEN_MAX = 5_000;

/**
 * Inserts nothing if there is no room, or the server does not exist. Concurrent requests can exceed the limits by one
 * each.
 */
const INSERT = `
  INSERT INTO log_batches (id, server_id, account_id, bytes, records, payload)
  SELECT $1, s.id, n.account_id, $3, $4, $5
    FROM servers s JOIN namespaces n ON n.id = s.namespace_id
   WHERE s.id = $2
     AND (SELECT coalesce(sum(b.bytes), 0) + $3::integer <= ${WAITING_BYTES_MAX}
             AND coalesce(sum(b.bytes) FILTER (WHERE b.account_id = n.account_id), 0) + $3::integer <= ${WAITING_BYTES_MAX / 4}
            FROM log_batches b)
  RETURNING id`;

const TAKE = `
  DELETE FROM log_batches WHERE id = (SELECT id FROM log_batches WHERE id = $1 FOR UPDATE SKIP LOCKED)
  RETURNING server_id AS "serverId", payload AS invocations`;

const OLDEST = `SELECT id FROM log_batches ORDER BY created_at, id LIMIT ${WRITTEN_MAX}`;

const HAS_OVERDUE = `SELECT FROM log_batches WHERE created_at < now() - ${OVERDUE_AFTER} LIMIT 1`;

const WAITING = `
  SELECT count(*)::integer AS batches, coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8 AS "oldestSeconds"
    FROM log_batches`;

/** A batch of records, limited in size and redacted. */
export interface LogBatch {
  serverId: string;
  invocations: Invocation[];
}

/** Waiting batches; the age of the oldest is in seconds, 0 without one. */
export interface WaitingBatches {
  batches: number;
  oldestSeconds: number;
}

@Injectable()
export class LogBatchesRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** @returns null if too much is waiting, or the server was deleted */
  async add({ serverId, invocations }: LogBatch, tx = this.database.manager): Promise<string | null> {
    const payload = JSON.stringify(invocations);
    const bytes = BATCH_BYTES + Buffer.byteLength(payload);
    const values = [uuidV7(), serverId, bytes, invocations.length, payload];
    const [row] = await tx.query<{ id: string }[]>(INSERT, values);
    return row?.id ?? null;
  }

  /** Removes a batch, which the caller writes in the same transaction. @returns null if the batch no longer exists or is being written elsewhere */
  async remove(id: string, tx: EntityManager): Promise<LogBatch | null> {
    const [[batch]] = await tx.query<[LogBatch[], number]>(TAKE, [id]);
    return batch ?? null;
  }

  async oldest(): Promise<string[]> {
    const rows = await this.database.query<{ id: string }[]>(OLDEST);
    return rows.map(({ id }) => id);
  }

  async hasOverdue(): Promise<boolean> {
    return (await this.database.query<unknown[]>(HAS_OVERDUE)).length > 0;
  }

  async waiting(): Promise<WaitingBatches> {
    const [row] = await this.database.query<[WaitingBatches]>(WAITING);
    return row;
  }
}
