import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { LogsCoreModule } from '../../logs/logs-core.module.js';
import { Connection } from '../core/connection.entity.js';
import { ConnectionInvocation } from './connection-invocation.entity.js';
import { ConnectionLogMetrics } from './connection-log.metrics.js';
import { ConnectionLine } from './connection-line.entity.js';
import { LineRecorder } from './line-recorder.js';
import { LogRecorder } from './log-recorder.js';

/** Where calls of connections, and what their modules print, are handed in. Serves nothing. */
@Module({
  imports: [LogsCoreModule, TypeOrmModule.forFeature([Connection, ConnectionInvocation, ConnectionLine])],
  providers: [LogRecorder, LineRecorder, ConnectionLogMetrics],
  exports: [TypeOrmModule, LogRecorder, LineRecorder],
})
export class ConnectionLogCoreModule {}
