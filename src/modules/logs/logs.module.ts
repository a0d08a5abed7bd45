import { Module } from '@nestjs/common';
import { roleModule } from '../../config/role-module.js';
import { registerQueue } from '../../platform/queue/register-queue.js';
import { scheduled } from '../../platform/schedule/schedule.js';
import { AuthModule } from '../auth/auth.module.js';
import { ServersModule } from '../servers/servers.module.js';
import { LogBatchesRepository } from './batches/log-batches.repository.js';
import { LogBatchesService } from './batches/log-batches.service.js';
import { LogsProcessor } from './batches/logs.processor.js';
import { LOGS_QUEUE, LogsQueue, SWEEP_EVERY_MS } from './batches/logs.queue.js';
import { CallMetricsService } from './call-metrics.service.js';
import { CallEvents } from './call.events.js';
import { ConnectionCallsService } from './connection-calls.service.js';
import { InvocationsService } from './ingest/invocations.service.js';
import { InvocationSearchRepository } from './search/invocation-search.repository.js';
import { RuntimeLogsController } from './search/runtime-logs.controller.js';
import { RuntimeLogsService } from './search/runtime-logs.service.js';
import { DeletedOwnerCleaner } from './store/deleted-owner-cleaner.js';
import { InvocationStore } from './store/invocation-store.js';
import { InvocationsRepository } from './store/invocations.repository.js';
import { PartitionMaintenance } from './store/partition-maintenance.js';
import { PartitionsRepository } from './store/partitions.repository.js';
import { LogStreamsController } from './stream/log-streams.controller.js';
import { LogStreams } from './stream/log-streams.js';

/** Every role records, stores and finds invocations. Workers also create partitions and clear the rows of deleted owners. */
@Module({})
export class LogsModule {
  static readonly forRoles = roleModule((env) => ({
    module: LogsModule,
    always: {
      providers: [
        InvocationsService,
        ConnectionCallsService,
        CallMetricsService,
        CallEvents,
        InvocationStore,
        InvocationsRepository,
        InvocationSearchRepository,
        PartitionsRepository,
      ],
      exports: [InvocationsService, ConnectionCallsService, CallMetricsService, CallEvents],
    },
    api: {
      imports: [ServersModule.forRoles(env), AuthModule.forRoles(env)],
      controllers: [LogStreamsController, RuntimeLogsController],
      providers: [RuntimeLogsService, LogStreams, LogBatchesService],
      exports: [RuntimeLogsService],
    },
    'api or worker': { imports: [registerQueue(LOGS_QUEUE)], providers: [LogBatchesRepository, LogsQueue] },
    worker: {
      providers: [
        PartitionMaintenance,
        DeletedOwnerCleaner,
        LogsProcessor,
        scheduled('sweep of log batches', SWEEP_EVERY_MS, LogsQueue, (queue) => queue.sweep()),
      ],
    },
  }));
}
