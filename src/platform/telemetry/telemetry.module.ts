import { Global, Module } from '@nestjs/common';
import { HealthController } from './health.controller.js';
import { HttpMeter } from './http-meter.js';
import { MetricsController } from './metrics.controller.js';
import { MetricsPage } from './metrics.controller.js';
import { Metrics } from './metrics.js';

/** What monitors look at, and where every room registers what it shows of itself. */
@Global()
@Module({
  controllers: [HealthController, MetricsController],
  providers: [Metrics, MetricsPage, HttpMeter],
  exports: [Metrics, HttpMeter],
})
export class TelemetryModule {}
