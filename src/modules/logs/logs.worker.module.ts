import { Module } from '@nestjs/common';
import { IngestNotifier } from './stream/ingest-notifier.js';
import { InvocationStore } from './store/invocation-store.js';
import { DeletedServerLogCleaner } from './store/deleted-server-log-cleaner.js';
import { PartitionMaintenance } from './store/partition-maintenance.js';
import { LogPartitions } from './store/log-partitions.js';
import { LogStoreMetrics } from './store/log-store.metrics.js';
import { LogsCoreModule } from './logs-core.module.js';
import { LogsProcessor } from './ingest/logs.processor.js';
import { SearchIndexes } from './store/search-indexes.js';

/** Keeps what is handed in; loaded by processes with the `worker` role. */
@Module({
  imports: [LogsCoreModule],
  providers: [
    InvocationStore,
    LogStoreMetrics,
    IngestNotifier,
    LogPartitions,
    PartitionMaintenance,
    DeletedServerLogCleaner,
    SearchIndexes,
    LogsProcessor,
  ],
})
export class LogsWorkerModule {}
