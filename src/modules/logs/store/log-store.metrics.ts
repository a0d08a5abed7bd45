import { Injectable } from '@nestjs/common';
import { Metrics } from '../../../platform/telemetry/metrics.js';
import { InvocationStore } from './invocation-store.js';

/** What writing invocations shows, in processes with the role `worker`. */
@Injectable()
export class LogStoreMetrics {
  constructor(metrics: Metrics, store: InvocationStore) {
    metrics.counter(
      'slipway_log_rows_written_total',
      'Rows of runtime logs written by this worker, repetitions included.',
      () => store.stats().written,
    );
    metrics.counter(
      'slipway_log_rows_refused_total',
      'Rows of runtime logs that cannot be kept: too old, or refused by the database.',
      () => store.stats().refused,
    );
  }
}
