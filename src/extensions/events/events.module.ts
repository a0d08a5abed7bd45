import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { LogsModule, roleModule } from '../../extension.js';
import { EventDeliveriesRepository } from './event-deliveries.repository.js';
import { EventHandlers } from './event-handlers.js';
import { EventsService } from './events.service.js';
import { FinishedCallsService } from './finished-calls.service.js';

/** Events for modules: `@OnEvent`. */
@Module({})
export class EventsModule {
  static readonly forRoles = roleModule((env) => ({
    module: EventsModule,
    always: { imports: [DiscoveryModule, LogsModule.forRoles(env)], providers: [EventHandlers, FinishedCallsService] },
    worker: { providers: [EventDeliveriesRepository, EventsService] },
  }));
}
