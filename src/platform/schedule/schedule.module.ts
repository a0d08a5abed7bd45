import { Global, Module } from '@nestjs/common';
import { Schedule } from './schedule.js';

/** Periodic work, for every module. */
@Global()
@Module({ providers: [Schedule], exports: [Schedule] })
export class ScheduleModule {}
