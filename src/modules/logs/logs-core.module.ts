import { Module } from '@nestjs/common';
import { registerQueue } from '../../platform/queue/register-queue.js';
import { InvocationsService } from './invocations.service.js';
import { LOGS_QUEUE, LogsQueue } from './logs.queue.js';

/** Where invocations are handed in: for every process that serves calls or runs code. Serves nothing. */
@Module({
  imports: [registerQueue(LOGS_QUEUE)],
  providers: [LogsQueue, InvocationsService],
  exports: [InvocationsService],
})
export class LogsCoreModule {}
