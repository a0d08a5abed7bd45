/**
 * Records calls that this process served in the table `invocations`, for both views of a call: the server's and the
 * connection's. For records that servers elsewhere send, see `batches/log-batches.service.ts`.
 *
 * `record` adds a part in memory and returns. A flush half a second later merges parts of one invocation and writes
 * batches of up to 512 Ki characters, one statement per view. New parts wait for the next flush: small batches cost the
 * database five times as much per row. An unconfirmed batch is written again unchanged, without effect on rows already
 * written. While the database is unavailable or its disk is full, parts wait, up to a limit in total and per owner;
 * more are dropped and counted. `settle` flushes, so that a reader in this process finds what it recorded. A killed
 * process loses its last half second.
 * Topic: `logs.ingested`. Metrics: `slipway_log_invocations_waiting`, `…_dropped_total`.
 */
import { randomInt } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { withTimeout } from '../../../platform/limits/with-timeout.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { Metrics } from '../../../platform/telemetry/metrics.js';
import type { ConnectionCall, Invocation } from '../invocation.types.js';
import { publishIngested } from '../store/ingested.js';
import { InvocationStore } from '../store/invocation-store.js';
import { mergeCall, mergeInvocation } from './invocation-bounds.js';
import { CHARS_AT_ONCE, InvocationBuffer, type PendingInvocation } from './invocation-buffer.js';
import { StorageSpace } from '../../../platform/blobs/storage-space.js';

/** Delay of a flush, so that parts of one invocation, and several invocations, are written together. */
const FLUSH_AFTER_MS = 500;

/** Delay before a failed batch is written again. */
const RETRY_AFTER_MS = 1_000;

/** Maximum number of characters in the rows of one batch, unless a single row has more. */
const BATCH_CHARS_MAX = 512 * 1024;

const LAST_FLUSH_MS_MAX = 5_000;

interface Batch {
  /** A random number from 0 to 2^31 - 1, the same each time the batch is written. */
  job: number;
  invocations: Invocation[];
  calls: ConnectionCall[];
}

/** Records invocations, on the path of every request: `record` never waits and never throws. */
@Injectable()
export class InvocationsService implements OnApplicationShutdown {
  private readonly logger = new Logger('logs');
  private readonly buffer = new InvocationBuffer();
  /** The batch that the database has not confirmed, although it might have written it. */
  private unconfirmed: Batch | null = null;
  private timer: NodeJS.Timeout | null = null;
  private flushing: Promise<void> | null = null;
  private reported = 0;
  /** Servers of stored invocations that are not yet announced. */
  private readonly stored = new Set<string>();

  constructor(
    private readonly invocationStore: InvocationStore,
    private readonly pubSub: PubSub,
    private readonly storageSpace: StorageSpace,
    metrics: Metrics,
  ) {
    metrics.gauge(
      'slipway_log_invocations_waiting',
      'Rows of logs in memory that wait for the database.',
      () => this.stats().waiting,
    );
    metrics.counter(
      'slipway_log_invocations_dropped_total',
      'Rows of logs, or parts of them, that were dropped because too many waited, or that could not be read.',
      () => this.buffer.dropped,
    );
  }

  /** Records a request or a part of it in the view of its server. The caller must not modify it afterwards. */
  record(part: Invocation): void {
    this.buffer.add(part);
    this.flushIn(FLUSH_AFTER_MS);
  }

  /** Records a request or a part of it in the view of its connection. */
  recordCall(part: ConnectionCall): void {
    this.buffer.add(part);
    this.flushIn(FLUSH_AFTER_MS);
  }

  /** Writes everything that was recorded before. Never rejects: without the database, parts keep waiting. */
  async settle(): Promise<void> {
    // A running flush might have taken its last rows earlier.
    await this.flushing;
    await this.flush();
  }

  /** Returns the rows that wait for the database now, and the number of parts dropped since the process started. */
  stats(): { waiting: number; dropped: number } {
    const { invocations = [], calls = [] } = this.unconfirmed ?? {};
    const waiting = this.buffer.size + invocations.length + calls.length;
    return { waiting, dropped: this.buffer.dropped };
  }

  async onApplicationShutdown(): Promise<void> {
    await withTimeout(LAST_FLUSH_MS_MAX, this.settle(), undefined);
    this.cancelTimer();
    const { waiting } = this.stats();
    if (waiting > 0) this.logger.warn(`${waiting} rows of logs were lost at shutdown: the database did not take them`);
  }

  private flushIn(ms: number): void {
    this.timer ??= setTimeout(() => void this.flush(), ms).unref();
  }

  private cancelTimer(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
  }

  /** Writes the parts that are waiting now. The promise never rejects. */
  private flush(): Promise<void> {
    this.flushing ??= this.write().then((isWritten) => {
      this.flushing = null;
      this.cancelTimer();
      if (this.stats().waiting > 0) this.flushIn(isWritten ? FLUSH_AFTER_MS : RETRY_AFTER_MS);
    });
    return this.flushing;
  }

  /** @returns false if the database did not accept all of it */
  private async write(): Promise<boolean> {
    const dropped = this.buffer.dropped - this.reported;
    this.reported = this.buffer.dropped;
    if (dropped > 0) this.logger.warn(`${dropped} rows of logs or parts of them were dropped`);
    let rowsLeft = this.buffer.size;
    let isWritten = true;
    try {
      while (this.unconfirmed || rowsLeft > 0) {
        await this.storageSpace.requireLogRoom();
        if (this.unconfirmed === null) {
          const pending = this.buffer.removeOldest(BATCH_CHARS_MAX, rowsLeft);
          rowsLeft -= pending.length;
          this.unconfirmed = await this.batchOf(pending);
        }
        await this.keepBatch(this.unconfirmed);
        this.unconfirmed = null;
      }
    } catch (error) {
      isWritten = false;
      this.logger.warn({ msg: `${this.stats().waiting} rows of logs wait for the database`, err: error });
    }
    publishIngested(this.pubSub, this.stored);
    this.stored.clear();
    return isWritten;
  }

  private async keepBatch(batch: Batch): Promise<void> {
    const { job, invocations, calls } = batch;
    if (invocations.length > 0) {
      await this.invocationStore.store(invocations, job);
      batch.invocations = [];
      for (const { serverId } of invocations) this.stored.add(serverId);
    }
    if (calls.length > 0) await this.invocationStore.keepCalls(calls);
  }

  private async batchOf(pending: PendingInvocation[]): Promise<Batch> {
    const batch: Batch = { job: randomInt(2 ** 31), invocations: [], calls: [] };
    let chars = 0;
    for (const { key, parts, chars: added } of pending) {
      chars += added;
      if (chars > CHARS_AT_ONCE) {
        await nextTurn();
        chars = 0;
      }
      try {
        if ('serverId' in parts[0]) batch.invocations.push(mergeInvocation(parts as Invocation[]));
        else batch.calls.push(mergeCall(parts as ConnectionCall[]));
      } catch (error) {
        // A part of an unexpected form must not block the others.
        this.buffer.dropped += 1;
        this.logger.warn({ msg: `invocation ${key} could not be read`, err: error });
      }
    }
    return batch;
  }
}
