import { Injectable } from '@nestjs/common';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { ToolOutputsService } from './tool-outputs.service.js';
import { ToolShapeRepository } from './tool-shape.repository.js';

/** What learning from tools' answers shows. */
@Injectable()
export class ToolSchemasMetrics {
  constructor(metrics: Metrics, outputs: ToolOutputsService, shapes: ToolShapeRepository) {
    metrics.counter(
      'slipway_tool_samples_dropped_total',
      'Answers of tools that were to be learned from and found no room.',
      () => outputs.dropped + shapes.dropped,
    );
  }
}
