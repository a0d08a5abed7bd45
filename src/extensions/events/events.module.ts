import { Module } from '@nestjs/common';
import { LogsModule, roleModule } from '../../extension.js';
import { EventDeliveriesRepository } from './event-deliveries.repository.js';
import { EventsService } from './events.service.js';
import { FinishedCallsService } from './finished-calls.service.js';

@Module({})
export class EventsModule {
  static readonly forRoles = roleModule((env) => ({
    module: EventsModule,
    always: { imports: [LogsModule.forRoles(env)], providers: [FinishedCallsService] },
    worker: { providers: [EventDeliveriesRepository, EventsService] },
  }));
}
