import { Module } from '@nestjs/common';
import { InvocationsService } from './invocations.service.js';

/** Where invocations are handed in: for every process that serves calls or runs code. Serves nothing. */
@Module({ providers: [InvocationsService], exports: [InvocationsService] })
export class LogsCoreModule {}
