import { randomInt } from 'node:crypto';
import { setImmediate as breathe } from 'node:timers/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { withTimeout } from '../../../platform/limits/with-timeout.js';
import { InvocationBuffer, type PendingInvocation } from './invocation-buffer.js';
import { rowOf } from './invocation-form.js';
import type { InvocationRow } from '../store/invocation-row.js';
import type { Invocation, InvocationPiece } from '../invocation.types.js';
import { JOB_CHARS_MAX, JOB_ROWS_MAX, LogsQueue, type KeepInvocationsJob } from './logs.queue.js';

/** How long an invocation waits for its pieces, and for others to go with it. */
const FLUSH_AFTER_MS = 250;

/** How soon a queue that did not take a job is asked again. */
const RETRY_AFTER_MS = 1_000;

/** Rows and characters made in one go, about 1 ms of work, before calls have their turn again. */
const ROWS_AT_ONCE = 50;
const CHARS_AT_ONCE = 32 * 1024;

/** A process that stops waits so long for the queue. */
const LAST_FLUSH_MS_MAX = 5_000;

/** What became of what was handed in, since the process started. */
export interface IngestStats {
  /** Invocations that wait for the queue. */
  waiting: number;
  /** Invocations the queue took. */
  sent: number;
  /** Records and pieces that were dropped because too many were waiting. */
  dropped: number;
  /** Those that could not be read. */
  unreadable: number;
}

/** Takes what is to be kept of requests to servers. Stands on the way of calls: it never waits and never throws. */
@Injectable()
export class InvocationsService implements OnApplicationShutdown {
  private readonly logger = new Logger('logs');
  private readonly buffer = new InvocationBuffer();
  /** Was offered to the queue; offered again as the same job, since the queue may have taken it without saying so. */
  private offered: KeepInvocationsJob | null = null;
  private timer: NodeJS.Timeout | null = null;
  private flushing: Promise<void> | null = null;
  private sent = 0;
  private unreadable = 0;
  private reported = 0;

  constructor(private readonly queue: LogsQueue) {}

  /** Whether all of these, of one server, will be kept when they are handed in right now. */
  hasRoomFor(serverId: string, given: readonly (Invocation | InvocationPiece)[]): boolean {
    return this.buffer.hasRoomFor(serverId, given);
  }

  /** Keeps one request. The invocation is handed over: it must not change afterwards. */
  record(invocation: Invocation): void {
    this.take(() => this.buffer.record(invocation));
  }

  /** Keeps more of one, whether its record came already or comes later. It must not change afterwards. */
  append(piece: InvocationPiece): void {
    this.take(() => this.buffer.append(piece));
  }

  stats(): IngestStats {
    const waiting = this.buffer.size + (this.offered?.rows.length ?? 0);
    return { waiting, sent: this.sent, dropped: this.buffer.dropped, unreadable: this.unreadable };
  }

  async onApplicationShutdown(): Promise<void> {
    await withTimeout(LAST_FLUSH_MS_MAX, this.flush(), undefined);
    this.cancelTimer();
    const { waiting } = this.stats();
    if (waiting > 0) this.logger.warn(`${waiting} invocations are lost: the queue did not take them before the end`);
  }

  private take(put: () => void): void {
    try {
      put();
    } catch (error) {
      this.unreadable += 1;
      this.logger.debug({ msg: 'an invocation could not be read', err: error });
    }
    this.flushIn(FLUSH_AFTER_MS);
  }

  private flushIn(ms: number): void {
    this.timer ??= setTimeout(() => void this.flush(), ms).unref();
  }

  private cancelTimer(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
  }

  /** Hands over what waits. Never rejects. */
  private flush(): Promise<void> {
    this.flushing ??= this.handOver().finally(() => {
      this.flushing = null;
      this.cancelTimer();
      if (this.stats().waiting > 0) this.flushIn(RETRY_AFTER_MS);
    });
    return this.flushing;
  }

  private async handOver(): Promise<void> {
    try {
      this.report();
      while (this.offered || this.buffer.size > 0) {
        const wanted = await this.queue.rowsWanted();
        if (wanted === Infinity || (!this.offered && this.buffer.size < wanted)) return;
        this.offered ??= { job: randomInt(2 ** 31), rows: await this.nextRows() };
        if (this.offered.rows.length > 0) await this.queue.add(this.offered);
        this.sent += this.offered.rows.length;
        this.offered = null;
      }
    } catch (error) {
      this.logger.warn({ msg: `${this.stats().waiting} invocations wait for the queue`, err: error });
    }
  }

  private async nextRows(): Promise<InvocationRow[]> {
    const rows: InvocationRow[] = [];
    let [count, chars] = [0, 0];
    for (const gathered of this.buffer.take(JOB_ROWS_MAX, JOB_CHARS_MAX)) {
      count += 1;
      chars += gathered.chars;
      if (count > ROWS_AT_ONCE || chars > CHARS_AT_ONCE) {
        await breathe();
        [count, chars] = [0, 0];
      }
      const row = this.tryRow(gathered);
      if (row) rows.push(row);
    }
    return rows;
  }

  private tryRow(gathered: PendingInvocation): InvocationRow | null {
    try {
      return rowOf(gathered);
    } catch (error) {
      this.unreadable += 1;
      this.logger.warn({ msg: `invocation ${gathered.id} could not be read`, err: error });
      return null;
    }
  }

  private report(): void {
    const lost = this.buffer.dropped - this.reported;
    this.reported = this.buffer.dropped;
    if (lost > 0) this.logger.warn(`${lost} invocations or parts of them were dropped: too many wait for the queue`);
  }
}
