import { Injectable } from '@nestjs/common';
import { Metrics } from '../../../platform/telemetry/metrics.js';
import { LogRecorder } from './log-recorder.js';

/** What recording calls of connections shows; rows that wait are those of the buffer of that name. */
@Injectable()
export class ConnectionLogMetrics {
  constructor(metrics: Metrics, recorder: LogRecorder) {
    metrics.counter(
      'slipway_connection_log_dropped_total',
      'Calls left out of the log of a connection that had too many at once.',
      () => recorder.dropped,
    );
  }
}
