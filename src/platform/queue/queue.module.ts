import { BullModule } from '@nestjs/bullmq';
import { Global, Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { Env } from '../../config/env.js';
import { QueueConnection } from './queue-backend.js';
import { QueueMetrics } from './queue-metrics.js';
import { PubSub } from './pub-sub.js';

@Global()
@Module({
  imports: [
    DiscoveryModule,
    BullModule.forRootAsync({
      inject: [Env, QueueConnection],
      useFactory: (env: Env, { option }: QueueConnection) => ({ connection: option, prefix: env.queuePrefix }),
    }),
  ],
  providers: [QueueConnection, QueueMetrics, PubSub],
  exports: [QueueConnection, QueueMetrics, PubSub],
})
export class QueueModule {}
