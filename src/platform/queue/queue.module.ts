import { BullModule } from '@nestjs/bullmq';
import { Global, Module } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { queueConnection } from './queue-backend.js';
import { QueueFigures } from './queue-figures.js';
import { RelayService } from './relay.service.js';

/** Jobs and messages between processes, on Redis or Postgres; nobody else can tell which. */
@Global()
@Module({
  imports: [
    BullModule.forRootAsync({
      inject: [Env],
      useFactory: (env: Env) => ({ connection: queueConnection(env), prefix: env.queuePrefix }),
    }),
  ],
  providers: [QueueFigures, RelayService],
  exports: [QueueFigures, RelayService],
})
export class QueueModule {}
