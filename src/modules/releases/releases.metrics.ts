import { Injectable } from '@nestjs/common';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { ReleaseStreams } from './release-streams.js';
import { RunService } from './run.service.js';

/** What run addresses, and following releases, show. */
@Injectable()
export class ReleasesMetrics {
  constructor(metrics: Metrics, streams: ReleaseStreams, runs: RunService) {
    metrics.gauge('slipway_release_streams', 'Listeners that follow releases.', () => streams.size);
    metrics.gauge('slipway_run_links', 'Open ways to servers, of run addresses.', () => runs.size);
  }
}
