import { Injectable } from '@nestjs/common';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { ReleaseStreams } from './stream/release-streams.js';

/** Gauges of followed releases. */
@Injectable()
export class ReleasesMetrics {
  constructor(metrics: Metrics, streams: ReleaseStreams) {
    metrics.gauge('slipway_release_streams', 'Listeners that follow releases.', () => streams.size);
  }
}
