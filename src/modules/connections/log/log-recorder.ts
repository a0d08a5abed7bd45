import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { WriteBehind } from '../../../platform/database/write-behind.js';
import { CallMetricsService } from '../../logs/call-metrics.service.js';
import { CallRecord, type LoggedCall } from './call-record.js';
import { ConnectionInvocation } from './connection-invocation.entity.js';

/** What is kept of each connection; what is shown is never more. */
export const KEPT_MAX = 1_000;
export const KEPT_DAYS = 7;

/** Of one connection in one flush: of more than are kept the rest would go at once. */
const WAITING_OF_ONE_MAX = KEPT_MAX;

/** A connection's log is cut back after so many new rows, and once a minute, so that it is never much longer than it may be. */
const CUT_AFTER = 500;
const SWEEP_EVERY_MS = 60_000;

/** Connections whose log has grown since it was cut back last; beyond it all of them are cut back at once. */
const GROWN_MAX = 10_000;

/** Rows one statement deletes at most, so that none holds its locks for long. */
const DELETE_MAX = 5_000;

/**
 * Calls of connections on their way into the log, never on the way of a call: one statement a second, bounded; what does
 * not fit is dropped and counted in the service's own log.
 */
@Injectable()
export class LogRecorder implements OnApplicationShutdown {
  private readonly logger = new Logger('connection log');
  private readonly calls = new WriteBehind<string, LoggedCall>('connection log', (batch) => this.write(batch));
  private waitingOf = new Map<string, number>();
  private grown = new Map<string, number>();
  /** Calls that found no room, since the process started. */
  dropped = 0;
  private reported = 0;
  private readonly sweeper = setInterval(() => void this.sweep(), SWEEP_EVERY_MS).unref();

  constructor(
    @InjectRepository(ConnectionInvocation) private readonly invocations: Repository<ConnectionInvocation>,
    private readonly figures: CallMetricsService,
  ) {}

  /** Runs the work of one request, and keeps what its record says in the end. @throws what `work` throws */
  async watching<T>(
    { method = 'POST', url = '' }: Pick<IncomingMessage, 'method' | 'url'>,
    response: Pick<ServerResponse, 'statusCode'>,
    work: (record: CallRecord) => Promise<T>,
  ): Promise<T> {
    const record = new CallRecord();
    try {
      return await work(record);
    } catch (error) {
      record.threw(error);
      throw error;
    } finally {
      const call = record.finish({ method, url, status: response.statusCode });
      if (call) this.record(call);
    }
  }

  /** Keeps a call. Does not wait, does not fail. */
  record(call: LoggedCall): void {
    this.figures.ended('connection', call.outcome, call.totalMs, call.firstByteMs);
    const waiting = this.waitingOf.get(call.connectionId) ?? 0;
    if (waiting >= WAITING_OF_ONE_MAX) {
      this.dropped += 1;
      return;
    }
    this.waitingOf.set(call.connectionId, waiting + 1);
    this.calls.set(call.id, call);
  }

  /** Writes what waits, so that a read after this tells the latest. */
  async settle(): Promise<void> {
    await this.calls.flush();
  }

  /** Deletes what is older than is kept, and what is more than is kept of the connections that had calls. */
  async sweep(): Promise<void> {
    try {
      await this.cutBack([...this.grown.keys()]);
      let deleted: number;
      do deleted = await this.deleteOld();
      while (deleted === DELETE_MAX);
    } catch (error) {
      this.logger.warn({ msg: 'old calls stay until the next sweep', err: error as Error });
    }
  }

  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.sweeper);
    await this.calls.onApplicationShutdown();
  }

  private async write(batch: Map<string, LoggedCall>): Promise<void> {
    this.waitingOf = new Map();
    const lost = this.dropped - this.reported;
    this.reported = this.dropped;
    if (lost > 0) this.logger.warn(`${lost} calls were left out of the logs of connections that have too many at once`);
    await this.insert([...batch.values()]);
    for (const { connectionId } of batch.values()) {
      this.grown.set(connectionId, (this.grown.get(connectionId) ?? 0) + 1);
    }
    const due = this.grown.size > GROWN_MAX ? 0 : CUT_AFTER;
    const long = [...this.grown].filter(([, rows]) => rows >= due).map(([id]) => id);
    if (long.length > 0)
      await this.cutBack(long).catch((error: Error) => this.logger.warn({ msg: 'logs stay long', err: error }));
  }

  /** Calls of connections that are gone by now are passed over; the lock keeps the others from going meanwhile. */
  private async insert(calls: LoggedCall[]): Promise<void> {
    const columns = <K extends keyof LoggedCall>(name: K) => calls.map((call) => call[name]);
    await this.invocations.query(
      `INSERT INTO connection_invocations (id, connection_id, at, method, url, rpc_method, tool_name, status, outcome,
              failure_name, failure_message, guard_ms, queue_ms, connect_ms, first_byte_ms, total_ms)
       SELECT r.* FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::text[],
              $8::int[], $9::text[], $10::text[], $11::text[], $12::real[], $13::real[], $14::real[], $15::real[],
              $16::real[]) AS r(id, connection_id, at, method, url, rpc_method, tool_name, status, outcome,
              failure_name, failure_message, guard_ms, queue_ms, connect_ms, first_byte_ms, total_ms)
         JOIN connections c ON c.id = r.connection_id FOR KEY SHARE OF c
       ON CONFLICT (id) DO NOTHING`,
      [
        columns('id'),
        columns('connectionId'),
        columns('at'),
        columns('method'),
        columns('url'),
        columns('rpcMethod'),
        columns('toolName'),
        columns('status'),
        columns('outcome'),
        columns('failureName'),
        columns('failureMessage'),
        columns('guardMs'),
        columns('queueMs'),
        columns('connectMs'),
        columns('firstByteMs'),
        columns('totalMs'),
      ],
    );
  }

  /** Deletes all but the newest rows of these connections. Another process that does the same is not waited for. */
  private async cutBack(connectionIds: string[]): Promise<void> {
    for (const id of connectionIds) this.grown.delete(id);
    if (connectionIds.length === 0) return;
    await this.invocations.query(
      `DELETE FROM connection_invocations WHERE id IN (
         SELECT surplus.id FROM unnest($1::uuid[]) AS given(id) CROSS JOIN LATERAL (
           SELECT i.id FROM connection_invocations i WHERE i.connection_id = given.id
            ORDER BY i.at DESC, i.id DESC OFFSET ${KEPT_MAX}) AS surplus)`,
      [connectionIds],
    );
  }

  private async deleteOld(): Promise<number> {
    const [, deleted] = await this.invocations.query<[unknown, number]>(
      `DELETE FROM connection_invocations WHERE id IN (
         SELECT id FROM connection_invocations WHERE at < now() - interval '${KEPT_DAYS} days'
          ORDER BY at LIMIT ${DELETE_MAX} FOR UPDATE SKIP LOCKED)`,
    );
    return deleted;
  }
}
