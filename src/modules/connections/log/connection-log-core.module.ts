import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Connection } from '../connection.entity.js';
import { ConnectionInvocation } from './connection-invocation.entity.js';
import { ConnectionLine } from './connection-line.entity.js';
import { LineRecorder } from './line-recorder.js';
import { LogRecorder } from './log-recorder.js';

/** Where calls of connections, and what their modules print, are handed in. Serves nothing. */
@Module({
  imports: [TypeOrmModule.forFeature([Connection, ConnectionInvocation, ConnectionLine])],
  providers: [LogRecorder, LineRecorder],
  exports: [TypeOrmModule, LogRecorder, LineRecorder],
})
export class ConnectionLogCoreModule {}
