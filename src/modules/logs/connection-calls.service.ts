import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { WriteBehind } from '../../platform/database/write-behind.js';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { CallMetricsService } from './call-metrics.service.js';
import { mergeCall } from './ingest/invocation-bounds.js';
import type { ConnectionCall, ConnectionCallQuery, FoundCall } from './invocation.types.js';
import { InvocationSearchRepository } from './search/invocation-search.repository.js';
import { InvocationStore } from './store/invocation-store.js';

/** Maximum number of rows, and of characters of lines, of one connection in a minute in this process. */
const ROWS_A_MINUTE_MAX = 1_000;
const CHARS_A_MINUTE_MAX = 1024 * 1024;

/** Memory for parts that wait for the database, in characters of their texts and of the rest: at most 2 bytes each. */
const WAITING_CHARS_MAX = 16 * 1024 * 1024;
const BARE_CHARS = 300;

/** The parts of one connection in the current minute. */
interface Usage {
  calls: number;
  printed: number;
  chars: number;
}

/**
 * Records requests to connections, and what the modules of connections print, directly in the table: one statement per
 * second, so a read in this process can write first. The path of a call never waits for it. Bounded per connection, so
 * that many calls of one use up neither the size of the log nor its retention.
 */
@Injectable()
export class ConnectionCallsService implements OnApplicationShutdown {
  private readonly logger = new Logger('connection log');
  private readonly waiting = new WriteBehind<number, ConnectionCall>('connection log', (batch) => this.write(batch), {
    of: ({ lines, exceptions }) => BARE_CHARS + charsOf([...lines, ...exceptions]),
    max: WAITING_CHARS_MAX,
  });
  private lastKey = 0;
  private minute = 0;
  private usage = new Map<string, Usage>();
  private dropped = 0;
  private reported = 0;

  constructor(
    private readonly store: InvocationStore,
    private readonly search: InvocationSearchRepository,
    private readonly callMetrics: CallMetricsService,
    metrics: Metrics,
  ) {
    metrics.counter(
      'slipway_connection_log_dropped_total',
      'Calls left out of the log of a connection that had too many at once.',
      () => this.dropped,
    );
  }

  /** Records a request or a part of it. Does not wait and does not fail. */
  record(part: ConnectionCall): void {
    const { outcome, timing } = part;
    if (outcome && timing) this.callMetrics.ended('connection', outcome, timing.totalMs, timing.firstByteMs);
    if (!this.isWithinLimits(part)) {
      this.dropped += 1;
      return;
    }
    this.lastKey += 1;
    this.waiting.set(this.lastKey, part);
  }

  /**
   * The newest matching requests of a connection, newest first, and their number, of its newest 1,000. Includes all this
   * process recorded before, and those of other processes after at most 2 s.
   *
   * @throws SearchTooLongError after 10 s, NoSlotError after 10 s of waiting for other searches
   */
  async find(
    connectionId: string,
    query: ConnectionCallQuery,
    limit: number,
  ): Promise<{ calls: FoundCall[]; total: number }> {
    await this.settle();
    return this.search.findCalls(connectionId, query, limit);
  }

  /** Writes the parts that wait. */
  async settle(): Promise<void> {
    await this.waiting.flush();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.waiting.onApplicationShutdown();
  }

  private isWithinLimits({ connectionId, method, lines, exceptions }: ConnectionCall): boolean {
    const minute = Math.floor(Date.now() / 60_000);
    if (minute !== this.minute) this.usage = new Map();
    this.minute = minute;
    const usage = this.usage.get(connectionId) ?? { calls: 0, printed: 0, chars: 0 };
    this.usage.set(connectionId, usage);
    usage[method == null ? 'printed' : 'calls'] += 1;
    usage.chars += charsOf([...lines, ...exceptions]);
    return Math.max(usage.calls, usage.printed) <= ROWS_A_MINUTE_MAX && usage.chars <= CHARS_A_MINUTE_MAX;
  }

  private async write(batch: Map<number, ConnectionCall>): Promise<void> {
    const dropped = this.dropped - this.reported;
    this.reported = this.dropped;
    if (dropped > 0)
      this.logger.warn(`${dropped} calls or lines were dropped: their connections have too many a minute`);
    const byId = new Map<string, ConnectionCall[]>();
    for (const part of batch.values()) byId.set(part.id, [...(byId.get(part.id) ?? []), part]);
    await this.store.keepCalls([...byId.values()].map(mergeCall));
  }
}

function charsOf(entries: { message: string }[]): number {
  return entries.reduce((sum, { message }) => sum + message.length, 0);
}
