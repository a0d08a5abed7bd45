import { Injectable } from '@nestjs/common';
import { Metrics } from '../../../platform/telemetry/metrics.js';
import { LogStreams } from './log-streams.js';

/** What following runtime logs shows. */
@Injectable()
export class LogStreamsMetrics {
  constructor(metrics: Metrics, streams: LogStreams) {
    metrics.gauge('slipway_log_streams', 'Listeners that follow runtime logs.', () => streams.size);
  }
}
