import { Module } from '@nestjs/common';
import { ConnectionCoreModule } from '../core/connection-core.module.js';
import { OlderSubscriptionsController } from './older-subscriptions.controller.js';
import { TriggersController } from './triggers.controller.js';
import { TriggersService } from './triggers.service.js';

/** The triggers of connections. */
@Module({
  imports: [ConnectionCoreModule],
  controllers: [TriggersController, OlderSubscriptionsController],
  providers: [TriggersService],
})
export class TriggersModule {}
