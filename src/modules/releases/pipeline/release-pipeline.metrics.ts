import { Injectable } from '@nestjs/common';
import { Metrics } from '../../../platform/telemetry/metrics.js';
import { ReleasePipeline } from './release-pipeline.js';

/** What running releases shows, in processes with the role `worker`. */
@Injectable()
export class ReleasePipelineMetrics {
  constructor(metrics: Metrics, pipeline: ReleasePipeline) {
    metrics.counter('slipway_releases_total', 'Releases this worker brought to an end or a halt, by status.', () =>
      pipeline.results.samples(),
    );
  }
}
