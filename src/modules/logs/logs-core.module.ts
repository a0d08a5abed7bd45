import { Module } from '@nestjs/common';
import { registerQueue } from '../../platform/queue/register-queue.js';
import { CallMetricsService } from './call-metrics.service.js';
import { InvocationsService } from './ingest/invocations.service.js';
import { LogIngestionMetrics } from './ingest/log-ingestion.metrics.js';
import { LOGS_QUEUE, LogsQueue } from './ingest/logs.queue.js';

/** Where invocations are handed in: for every process that serves calls or runs code. Serves nothing. */
@Module({
  imports: [registerQueue(LOGS_QUEUE)],
  providers: [LogsQueue, InvocationsService, LogIngestionMetrics, CallMetricsService],
  exports: [InvocationsService, CallMetricsService],
})
export class LogsCoreModule {}
