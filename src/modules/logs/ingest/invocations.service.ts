import { randomInt } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { withTimeout } from '../../../platform/limits/with-timeout.js';
import { Metrics } from '../../../platform/telemetry/metrics.js';
import type { Invocation } from '../invocation.types.js';
import { mergeInvocation } from './invocation-bounds.js';
import { InvocationBuffer, type PendingInvocation } from './invocation-buffer.js';
import { JOB_CHARS_MAX, JOB_ROWS_MAX, LogsQueue, type KeepInvocationsJob } from './logs.queue.js';

/** Delay before a flush: parts of one invocation and other invocations are sent together. */
const FLUSH_AFTER_MS = 250;

/** Delay before a job that the queue refused is sent again. */
const RETRY_AFTER_MS = 1_000;

/** Invocations and characters merged in one turn of the event loop: about 1 ms of work. */
const ROWS_AT_ONCE = 50;
const CHARS_AT_ONCE = 32 * 1024;

/** Time limit of the flush at shutdown. */
const LAST_FLUSH_MS_MAX = 5_000;

/** Counts since the process started, but for `waiting`. */
export interface IngestStats {
  /** Invocations that wait for the queue now. */
  waiting: number;
  /** Invocations the queue accepted. */
  sent: number;
  /** Parts that were dropped because too many waited. */
  dropped: number;
  /** Parts and invocations of an unexpected form. */
  unreadable: number;
}

/** Sends invocations to the log queue. Called on the path of every request: `record` never waits and never throws. */
@Injectable()
export class InvocationsService implements OnApplicationShutdown {
  private readonly logger = new Logger('logs');
  private readonly buffer = new InvocationBuffer();
  /** The job whose `add` is not confirmed. Sent again unchanged, since the queue may have stored it before it failed. */
  private unconfirmed: KeepInvocationsJob | null = null;
  private timer: NodeJS.Timeout | null = null;
  private flushing: Promise<void> | null = null;
  private sent = 0;
  private unreadable = 0;
  private reported = 0;

  constructor(
    private readonly queue: LogsQueue,
    metrics: Metrics,
  ) {
    metrics.gauge(
      'slipway_log_invocations_waiting',
      'Invocations in memory that wait for the queue.',
      () => this.stats().waiting,
    );
    metrics.counter('slipway_log_invocations_sent_total', 'Invocations the queue took.', () => this.sent);
    metrics.counter(
      'slipway_log_invocations_dropped_total',
      'Invocations, or parts of them, that were dropped because too many waited.',
      () => this.buffer.dropped,
    );
    metrics.counter(
      'slipway_log_invocations_unreadable_total',
      'Invocations that could not be read and were left out.',
      () => this.unreadable,
    );
  }

  /** True if `record` would drop none of these parts of one server now. */
  hasRoomFor(serverId: string, parts: readonly Invocation[]): boolean {
    return this.buffer.hasRoomFor(serverId, parts);
  }

  /** Records a request or a part of it; parts with one id are merged, in any order. The caller must not change it later. */
  record(part: Invocation): void {
    try {
      this.buffer.add(part);
    } catch (error) {
      this.unreadable += 1;
      this.logger.debug({ msg: 'an invocation could not be read', err: error });
    }
    this.flushIn(FLUSH_AFTER_MS);
  }

  stats(): IngestStats {
    const waiting = this.buffer.size + (this.unconfirmed?.rows.length ?? 0);
    return { waiting, sent: this.sent, dropped: this.buffer.dropped, unreadable: this.unreadable };
  }

  async onApplicationShutdown(): Promise<void> {
    await withTimeout(LAST_FLUSH_MS_MAX, this.flush(), undefined);
    this.cancelTimer();
    const { waiting } = this.stats();
    if (waiting > 0) this.logger.warn(`${waiting} invocations were lost at shutdown: the queue did not accept them`);
  }

  private flushIn(ms: number): void {
    this.timer ??= setTimeout(() => void this.flush(), ms).unref();
  }

  private cancelTimer(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
  }

  /** Sends all that waits. Never rejects. */
  private flush(): Promise<void> {
    this.flushing ??= this.send().finally(() => {
      this.flushing = null;
      this.cancelTimer();
      if (this.stats().waiting > 0) this.flushIn(RETRY_AFTER_MS);
    });
    return this.flushing;
  }

  private async send(): Promise<void> {
    try {
      this.reportDropped();
      while (this.unconfirmed || this.buffer.size > 0) {
        const wanted = await this.queue.rowsWanted();
        if (wanted === Infinity || (!this.unconfirmed && this.buffer.size < wanted)) return;
        this.unconfirmed ??= { job: randomInt(2 ** 31), rows: await this.nextRows() };
        if (this.unconfirmed.rows.length > 0) await this.queue.add(this.unconfirmed);
        this.sent += this.unconfirmed.rows.length;
        this.unconfirmed = null;
      }
    } catch (error) {
      this.logger.warn({ msg: `${this.stats().waiting} invocations wait for the queue`, err: error });
    }
  }

  private async nextRows(): Promise<Invocation[]> {
    const rows: Invocation[] = [];
    let [count, chars] = [0, 0];
    for (const pending of this.buffer.take(JOB_ROWS_MAX, JOB_CHARS_MAX)) {
      count += 1;
      chars += pending.chars;
      if (count > ROWS_AT_ONCE || chars > CHARS_AT_ONCE) {
        await nextTurn();
        [count, chars] = [0, 0];
      }
      const row = this.merged(pending);
      if (row) rows.push(row);
    }
    return rows;
  }

  private merged({ id, parts }: PendingInvocation): Invocation | null {
    try {
      return mergeInvocation(parts);
    } catch (error) {
      this.unreadable += 1;
      this.logger.warn({ msg: `invocation ${id} could not be read`, err: error });
      return null;
    }
  }

  private reportDropped(): void {
    const dropped = this.buffer.dropped - this.reported;
    this.reported = this.buffer.dropped;
    if (dropped > 0)
      this.logger.warn(`${dropped} invocations or parts of them were dropped: too many wait for the queue`);
  }
}
