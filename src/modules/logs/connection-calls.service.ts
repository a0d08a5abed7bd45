/**
 * The log of connections: their requests, and the output of their modules, stored in `invocations`.
 *
 * Each connection is limited per process and minute, so that many calls of one use up neither the size of the log nor its retention: 1,000
 * successful calls, 1,000 printed parts, 1 MB of characters. Beyond that, one row per tenth of a second is recorded as a sample, and the
 * next row has the number of those left out (`leftOut`).
 *
 * Recording neither waits nor fails. Readers see everything that this process recorded, and rows of others after at most 2 s.
 */
import { Injectable } from '@nestjs/common';
import { shareOf } from '../../config/workers.js';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { CallMetricsService } from './call-metrics.service.js';
import { charsOf } from './ingest/invocation-buffer.js';
import { InvocationsService } from './ingest/invocations.service.js';
import type { ConnectionCall, ConnectionCallQuery, FoundCall } from './invocation.types.js';
import { InvocationSearchRepository } from './search/invocation-search.repository.js';

/** Maximum number of rows a minute of one connection, over all processes of `WORKERS`. */
const ROWS_A_MINUTE_MAX = 1_000;
const CHARS_A_MINUTE_MAX = 1024 * 1024;

/** Period in which one row is recorded as a sample, beyond these limits. */
const SAMPLE_MS = 100;

interface Usage {
  calls: number;
  printed: number;
  chars: number;
  /** Time in milliseconds since 1970. */
  keptAt: number;
}

@Injectable()
export class ConnectionCallsService {
  private minute = 0;
  private usage = new Map<string, Usage>();
  /** Omitted requests that no row counts yet. */
  private readonly leftOut = new Map<string, number>();
  private dropped = 0;

  constructor(
    private readonly invocationsService: InvocationsService,
    private readonly invocationSearchRepository: InvocationSearchRepository,
    private readonly callMetricsService: CallMetricsService,
    metrics: Metrics,
  ) {
    metrics.counter(
      'slipway_connection_log_dropped_total',
      'Calls left out of the log of a connection that had too many in a minute.',
      () => this.dropped,
    );
  }

  /** Records a part of a call, without waiting and without failing. */
  record(part: ConnectionCall): void {
    const { outcome, timing } = part;
    if (outcome && timing)
      this.callMetricsService.observeCall('connection', outcome, timing.totalMs, timing.firstByteMs);
    const { connectionId, method } = part;
    const leftOut = method == null ? 0 : (this.leftOut.get(connectionId) ?? 0);
    if (!this.isWithinLimits(part)) {
      this.dropped += 1;
      if (method != null) this.leftOut.set(connectionId, leftOut + 1);
    } else if (leftOut > 0) {
      this.leftOut.delete(connectionId);
      this.invocationsService.recordCall({ ...part, leftOut });
    } else {
      this.invocationsService.recordCall(part);
    }
  }

  /**
   * Searches the newest 1,000 requests of a connection, and returns the matches newest first.
   *
   * @throws SearchTooLongError after 10 s, NoSlotError after waiting 10 s for other searches
   */
  async find(
    connectionId: string,
    query: ConnectionCallQuery,
    limit: number,
  ): Promise<{ calls: FoundCall[]; total: number; leftOut: number }> {
    await this.invocationsService.settle();
    return this.invocationSearchRepository.findCalls(connectionId, query, limit);
  }

  private isWithinLimits(part: ConnectionCall): boolean {
    const { connectionId, method, outcome } = part;
    const now = Date.now();
    const minute = Math.floor(now / 60_000);
    if (minute !== this.minute) {
      this.minute = minute;
      this.usage = new Map();
    }
    const usage = this.usage.get(connectionId) ?? { calls: 0, printed: 0, chars: 0, keptAt: 0 };
    this.usage.set(connectionId, usage);
    const chars = usage.chars + charsOf(part);
    if (chars > shareOf(CHARS_A_MINUTE_MAX)) return false;
    if (outcome == null || outcome === 'ok') {
      const kind = method == null ? 'printed' : 'calls';
      if (usage[kind] >= shareOf(ROWS_A_MINUTE_MAX) && now - usage.keptAt < SAMPLE_MS) return false;
      usage[kind] += 1;
      usage.keptAt = now;
    }
    usage.chars = chars;
    return true;
  }
}
