import { Module } from '@nestjs/common';
import { registerQueue, roleModule } from '../../extension.js';
import { SCHEDULES_QUEUE, SchedulesService } from './schedules.service.js';

@Module({})
export class SchedulesModule {
  static readonly forRoles = roleModule(() => ({
    module: SchedulesModule,
    worker: { imports: [registerQueue(SCHEDULES_QUEUE)], providers: [SchedulesService] },
  }));
}
