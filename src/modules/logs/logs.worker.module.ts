import { Module } from '@nestjs/common';
import { IngestedHints } from './ingested-hints.js';
import { InvocationStore } from './invocation-store.js';
import { LogGarbage } from './log-garbage.js';
import { LogKeeper } from './log-keeper.js';
import { LogPartitions } from './log-partitions.js';
import { LogStoreMetrics } from './log-store.metrics.js';
import { LogsCoreModule } from './logs-core.module.js';
import { LogsProcessor } from './logs.processor.js';
import { SearchIndexes } from './search-indexes.js';

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
