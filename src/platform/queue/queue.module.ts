import { BullModule } from '@nestjs/bullmq';
import { Global, Module } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { queueConnection } from './queue-backend.js';
import { QueueMetrics } from './queue-metrics.js';
import { PubSub } from './pub-sub.js';

/** Jobs and messages between processes, on Redis or Postgres; other modules do not depend on which. */
@Global()
@Module({
  imports: [
    BullModule.forRootAsync({
      inject: [Env],
      useFactory: (env: Env) => ({ connection: queueConnection(env), prefix: env.queuePrefix }),
    }),
  ],
  providers: [QueueMetrics, PubSub],
  exports: [QueueMetrics, PubSub],
})
export class QueueModule {}
