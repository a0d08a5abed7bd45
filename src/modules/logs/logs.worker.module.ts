import { Module } from '@nestjs/common';
import { InvocationStore } from './invocation-store.js';
import { LogPartitions } from './log-partitions.js';

/** Keeps what is handed in; loaded by processes with the `worker` role. */
@Module({ providers: [InvocationStore, LogPartitions] })
export class LogsWorkerModule {}
