import { Injectable } from '@nestjs/common';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { ToolOutputsService } from './tool-outputs.service.js';
import { ToolShapeRepository } from './tool-shape.repository.js';

/** Metrics of the sampling of tool results. */
@Injectable()
export class ToolSchemasMetrics {
  constructor(metrics: Metrics, outputs: ToolOutputsService, shapes: ToolShapeRepository) {
    metrics.counter(
      'slipway_tool_samples_dropped_total',
      'Tool results that were selected as samples and dropped because a buffer was full.',
      () => outputs.dropped + shapes.dropped,
    );
  }
}
