import { Module } from '@nestjs/common';
import { roleModule } from '../../../config/role-module.js';
import { ConnectionCoreModule } from '../core/connection-core.module.js';
import { OlderSubscriptionsController } from './older-subscriptions.controller.js';
import { TriggersController } from './triggers.controller.js';
import { TriggersService } from './triggers.service.js';

/** The triggers of connections. */
@Module({})
export class TriggersModule {
  static readonly forRoles = roleModule((env) => ({
    module: TriggersModule,
    api: {
      imports: [ConnectionCoreModule.forRoles(env)],
      controllers: [TriggersController, OlderSubscriptionsController],
      providers: [TriggersService],
    },
  }));
}
