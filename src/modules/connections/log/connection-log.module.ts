import { Module } from '@nestjs/common';
import { ConnectionCoreModule } from '../core/connection-core.module.js';
import { ConnectionLogCoreModule } from './connection-log-core.module.js';
import { ConnectionLogController } from './connection-log.controller.js';
import { ConnectionLogService } from './connection-log.service.js';

/** The logs of connections over REST. */
@Module({
  imports: [ConnectionCoreModule, ConnectionLogCoreModule],
  controllers: [ConnectionLogController],
  providers: [ConnectionLogService],
})
export class ConnectionLogModule {}
