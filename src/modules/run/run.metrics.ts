import { Injectable } from '@nestjs/common';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { RunService } from './run.service.js';

/** Gauges of the run endpoint. */
@Injectable()
export class RunMetrics {
  constructor(metrics: Metrics, runs: RunService) {
    metrics.gauge('slipway_run_links', 'Open ways to servers, of run addresses.', () => runs.size);
  }
}
