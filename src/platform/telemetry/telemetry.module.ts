import { Global, Module } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { COMMIT, VERSION } from '../../config/version.js';
import { Draining } from './draining.js';
import { HealthController } from './health.controller.js';
import { HttpMeter } from './http-meter.js';
import { MetricsController } from './metrics.controller.js';
import { Metrics } from './metrics.js';

@Global()
@Module({
  controllers: [HealthController, MetricsController],
  providers: [Metrics, HttpMeter, Draining],
  exports: [Metrics, HttpMeter],
})
export class TelemetryModule {
  constructor(metrics: Metrics, env: Env) {
    const labels = { version: VERSION, commit: COMMIT, node: process.version, role: env.roles.join() };
    const read = () => [{ labels, value: 1 }];
    metrics.gauge('slipway_build_info', 'Always 1, labelled with the build of this process.', read, 'first');
  }
}
