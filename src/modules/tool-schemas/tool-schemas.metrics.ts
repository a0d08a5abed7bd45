import { Injectable } from '@nestjs/common';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { ToolOutputsService } from './tool-outputs.service.js';
import { ToolShapes } from './tool-shapes.js';

/** What learning from tools' answers shows. */
@Injectable()
export class ToolSchemasMetrics {
  constructor(metrics: Metrics, outputs: ToolOutputsService, shapes: ToolShapes) {
    metrics.counter(
      'slipway_tool_samples_dropped_total',
      'Answers of tools that were to be learned from and found no room.',
      () => outputs.dropped + shapes.dropped,
    );
  }
}
