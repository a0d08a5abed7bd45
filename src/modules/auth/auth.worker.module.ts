import { Module } from '@nestjs/common';
import { registerQueue } from '../../platform/queue/register-queue.js';
import { AuthCoreModule } from './auth-core.module.js';
import { AuthProcessor } from './auth.processor.js';
import { AUTH_QUEUE } from './auth.processor.js';

/** The jobs of the auth module; loaded by processes with the `worker` role. */
@Module({ imports: [AuthCoreModule, registerQueue(AUTH_QUEUE)], providers: [AuthProcessor] })
export class AuthWorkerModule {}
