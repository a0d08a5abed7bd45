import { Inject, Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { createPostgresRelayBackend, Relay, type RelayOptions } from 'bullmq';
import { Env } from '../../config/env.js';
import { queueConnection } from './queue-backend.js';

/**
 * Small control messages between the processes of one service. A hint, never the truth: a message may be lost while
 * the queue's store is away, so whoever listens must also hold at most a few seconds of stale state.
 */
@Injectable()
export class PubSub implements OnApplicationShutdown {
  private readonly logger = new Logger('relay');
  private readonly relay: Relay;

  constructor(@Inject(Env) env: Env) {
    this.relay = new Relay({
      connection: queueConnection(env),
      prefix: env.queuePrefix,
      namespace: env.queuePrefix,
      name: 'slipway',
      ...(env.redisUrl ? {} : { backend: createPostgresRelayBackend }),
    } as RelayOptions);
    this.relay.on('error', (error: Error) => this.logger.warn({ msg: 'the relay does not answer', err: error }));
  }

  /** Calls `listener` with what any process publishes on `topic`, this one included. */
  async subscribe<T>(topic: string, listener: (data: T) => void): Promise<void> {
    await this.relay.subscribe<T>(topic, ({ data }) => listener(data));
  }

  /** Tells the other processes. Does not wait and does not fail: see the class. */
  publish(topic: string, data: object): void {
    this.relay.publish(topic, data).catch((error: unknown) => {
      this.logger.warn({ msg: `a message on ${topic} was lost`, err: error });
    });
  }

  /** Asks the queue's store for a sign of life. @throws what the store's client says */
  async ping(): Promise<void> {
    await this.relay.getCounts();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.relay.close();
  }
}
