import { Module } from '@nestjs/common';
import { ConnectionLogCoreModule } from './connection-log-core.module.js';
import { ConnectionLogController } from './connection-log.controller.js';
import { ConnectionLogService } from './connection-log.service.js';

/** The logs of connections over REST. */
@Module({
  imports: [ConnectionLogCoreModule],
  controllers: [ConnectionLogController],
  providers: [ConnectionLogService],
})
export class ConnectionLogModule {}
