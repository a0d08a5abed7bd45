import { Module } from '@nestjs/common';
import { HealthController } from './health.controller.js';

/** What monitors look at. */
@Module({ controllers: [HealthController] })
export class TelemetryModule {}
