import { Module } from '@nestjs/common';
import { ConnectionCoreModule } from '../core/connection-core.module.js';
import { ConnectionLogCoreModule } from '../log/connection-log-core.module.js';
import { ConnectionToolsController } from './connection-tools.controller.js';
import { ConnectionToolsService } from './connection-tools.service.js';

/** The tools of connections over REST. */
@Module({
  imports: [ConnectionCoreModule, ConnectionLogCoreModule],
  controllers: [ConnectionToolsController],
  providers: [ConnectionToolsService],
})
export class ConnectionToolsModule {}
