import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { transactionOf, type Actor, type ChangedConnection } from '../../extension.js';

/** Duration of a recording, and retention of a recorded call. */
const RETENTION = `interval '7 days'`;

export interface SealedCall {
  tool: string;
  /** Tool, arguments and result, sealed by the vault for the connection's row: they can contain secrets. */
  sealed: string;
  /** Size before sealing. */
  bytes: number;
}

export interface RecordableConnection {
  id: string;
  /** End of the recording; null while it is off. */
  recordingUntil: Date | null;
  isMock: boolean;
}

/** A call is stored for 7 days, or until its connection is deleted. */
@Injectable()
export class RecordingsRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** Starts or stops a recording of 7 days. Returns null for a missing or simulated connection. */
  async setEnabled(
    actor: Actor,
    namespaceId: string,
    connectionId: string,
    enabled: boolean,
  ): Promise<ChangedConnection | null> {
    const sql = `UPDATE connections SET recording_until = CASE WHEN $3 THEN now() + ${RETENTION} END
        WHERE namespace_id = $1 AND connection_id = $2 AND mock IS NULL
        RETURNING id, namespace_id AS "namespaceId", connection_id AS "connectionId", revision`;
    const values = [namespaceId, connectionId, enabled];
    const [rows] = await transactionOf(this.database, actor, (tx) => tx.query<[ChangedConnection[]]>(sql, values));
    return rows[0] ?? null;
  }

  tools(id: string): Promise<{ name: string; calls: number; bytes: number }[]> {
    return this.database.query(
      `SELECT tool AS name, count(*)::int AS calls, sum(bytes)::int AS bytes FROM recorded_calls
        WHERE connection_id = $1 AND recorded_at > now() - ${RETENTION} GROUP BY tool ORDER BY tool`,
      [id],
    );
  }

  async find({ id, ...name }: { id: string; namespaceId?: string }): Promise<RecordableConnection | null> {
    const [row] = await this.database.query<RecordableConnection[]>(
      `SELECT id, recording_until AS "recordingUntil", mock IS NOT NULL AS "isMock" FROM connections
        WHERE ${name.namespaceId === undefined ? 'id = $1' : 'connection_id = $1 AND namespace_id = $2'}`,
      [id, ...Object.values(name)],
    );
    return row ?? null;
  }

  /** Lists the calls in their order. `id` is the row id for which they are sealed. */
  listCalls(namespaceId: string, connectionId: string): Promise<{ id: string; sealed: string }[]> {
    return this.database.query(
      `SELECT c.id, r.sealed FROM connections c JOIN recorded_calls r ON r.connection_id = c.id
        WHERE c.namespace_id = $1 AND c.connection_id = $2 AND r.recorded_at > now() - ${RETENTION} ORDER BY r.seq`,
      [namespaceId, connectionId],
    );
  }

  /** Lists the calls in their order. @param id of the connection's row */
  recordedAfter(id: string, seq: string, limit: number): Promise<{ seq: string; at: Date; sealed: string }[]> {
    return this.database.query(
      `SELECT seq, recorded_at AS at, sealed FROM recorded_calls
        WHERE connection_id = $1 AND seq > $2 AND recorded_at > now() - ${RETENTION} ORDER BY seq LIMIT $3`,
      [id, seq, limit],
    );
  }

  async delete(id: string): Promise<void> {
    await this.database.query('DELETE FROM recorded_calls WHERE connection_id = $1', [id]);
  }

  async deleteExpired(now: Date): Promise<void> {
    await this.database.query(`DELETE FROM recorded_calls WHERE recorded_at < $1::timestamptz - ${RETENTION}`, [now]);
  }

  /** Locks the row of the connection for the transaction. Null if the connection is not recorded. */
  async lockActive(id: string, tx: EntityManager): Promise<{ calls: number; bytes: number } | null> {
    const [active] = await tx.query<unknown[]>(
      'SELECT 1 FROM connections WHERE id = $1 AND recording_until > now() FOR NO KEY UPDATE',
      [id],
    );
    if (!active) return null;
    const [size] = await tx.query<{ calls: number; bytes: number }[]>(
      'SELECT count(*)::int AS calls, coalesce(sum(bytes), 0)::int AS bytes FROM recorded_calls WHERE connection_id = $1',
      [id],
    );
    return size ?? null;
  }

  async insert(id: string, { tool, sealed, bytes }: SealedCall, tx: EntityManager): Promise<void> {
    await tx.query('INSERT INTO recorded_calls (connection_id, tool, sealed, bytes) VALUES ($1, $2, $3, $4)', [
      id,
      tool,
      sealed,
      bytes,
    ]);
  }
}
