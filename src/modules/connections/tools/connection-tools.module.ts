import { Module } from '@nestjs/common';
import { roleModule } from '../../../config/role-module.js';
import { ConnectionCoreModule } from '../core/connection-core.module.js';
import { ConnectionLogModule } from '../log/connection-log.module.js';
import { ConnectionToolsController } from './connection-tools.controller.js';
import { ConnectionToolsService } from './connection-tools.service.js';

/** The tools of connections over REST. */
@Module({})
export class ConnectionToolsModule {
  static readonly forRoles = roleModule((env) => ({
    module: ConnectionToolsModule,
    api: {
      imports: [ConnectionCoreModule.forRoles(env), ConnectionLogModule.forRoles(env)],
      controllers: [ConnectionToolsController],
      providers: [ConnectionToolsService],
    },
  }));
}
