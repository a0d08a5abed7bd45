import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { LogsCoreModule } from '../../logs/logs-core.module.js';
import { Connection } from '../core/connection.entity.js';
import { LogRecorder } from './log-recorder.js';

/** Recording requests to connections. Has no routes. */
@Module({
  imports: [LogsCoreModule, TypeOrmModule.forFeature([Connection])],
  providers: [LogRecorder],
  exports: [TypeOrmModule, LogsCoreModule, LogRecorder],
})
export class ConnectionLogCoreModule {}
