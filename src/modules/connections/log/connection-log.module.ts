import { Module } from '@nestjs/common';
import { roleModule } from '../../../config/role-module.js';
import { LogsModule } from '../../logs/logs.module.js';
import { ConnectionCoreModule } from '../core/connection-core.module.js';
import { ConnectionLogController } from './connection-log.controller.js';
import { ConnectionLogService } from './connection-log.service.js';
import { LogRecorder } from './log-recorder.js';

/** The logs of connections: recorded, and read over REST. */
@Module({})
export class ConnectionLogModule {
  static readonly forRoles = roleModule((env) => ({
    module: ConnectionLogModule,
    api: {
      imports: [LogsModule.forRoles(env), ConnectionCoreModule.forRoles(env)],
      controllers: [ConnectionLogController],
      providers: [ConnectionLogService, LogRecorder],
      exports: [LogsModule, LogRecorder],
    },
  }));
}
