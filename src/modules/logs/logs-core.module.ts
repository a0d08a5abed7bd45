import { Module } from '@nestjs/common';
import { registerQueue } from '../../platform/queue/register-queue.js';
import { CallMetricsService } from './call-metrics.service.js';
import { ConnectionCallsService } from './connection-calls.service.js';
import { InvocationsService } from './ingest/invocations.service.js';
import { LOGS_QUEUE, LogsQueue } from './ingest/logs.queue.js';
import { InvocationSearchRepository } from './search/invocation-search.repository.js';
import { InvocationStore } from './store/invocation-store.js';
import { InvocationsRepository } from './store/invocations.repository.js';
import { PartitionsRepository } from './store/partitions.repository.js';

/** Recording and finding invocations, for every process that serves calls or runs code. Has no routes and no workers. */
@Module({
  imports: [registerQueue(LOGS_QUEUE)],
  providers: [
    LogsQueue,
    InvocationsService,
    ConnectionCallsService,
    CallMetricsService,
    InvocationStore,
    InvocationsRepository,
    InvocationSearchRepository,
    PartitionsRepository,
  ],
  exports: [
    InvocationsService,
    ConnectionCallsService,
    CallMetricsService,
    InvocationStore,
    InvocationsRepository,
    InvocationSearchRepository,
    PartitionsRepository,
  ],
})
export class LogsCoreModule {}
