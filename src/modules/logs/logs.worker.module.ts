import { Module } from '@nestjs/common';
import { LogsProcessor, IngestNotifier } from './ingest/logs.processor.js';
import { LogsCoreModule } from './logs-core.module.js';
import { DeletedOwnerCleaner } from './store/deleted-owner-cleaner.js';
import { PartitionMaintenance } from './store/partition-maintenance.js';

/** Storing invocations and maintaining the log, for processes with the role `worker`. */
@Module({
  imports: [LogsCoreModule],
  providers: [LogsProcessor, IngestNotifier, PartitionMaintenance, DeletedOwnerCleaner],
})
export class LogsWorkerModule {}
