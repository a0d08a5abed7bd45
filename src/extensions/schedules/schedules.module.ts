import { Module } from '@nestjs/common';
import { registerQueue, roleModule } from '../../extension.js';
import { SCHEDULES_QUEUE, SchedulesService } from './schedules.service.js';

/** Runs of modules at fixed times: `@Schedule`. */
@Module({})
export class SchedulesModule {
  static readonly forRoles = roleModule(() => ({
    module: SchedulesModule,
    worker: { imports: [registerQueue(SCHEDULES_QUEUE)], providers: [SchedulesService] },
  }));
}
