import { Module } from '@nestjs/common';
import { IngestedHints } from './stream/ingested-hints.js';
import { InvocationStore } from './store/invocation-store.js';
import { LogGarbage } from './store/log-garbage.js';
import { LogKeeper } from './store/log-keeper.js';
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
    IngestedHints,
    LogPartitions,
    LogKeeper,
    LogGarbage,
    SearchIndexes,
    LogsProcessor,
  ],
})
export class LogsWorkerModule {}
