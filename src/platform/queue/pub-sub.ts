/**
 * Small control messages between the processes of one service: dropping caches, closing handles and streams.
 *
 * Messages travel over the store of the queue (Redis, or Postgres without `REDIS_URL`) and reach every process, the
 * sender included. Delivery is best effort: a message is lost while the store is unavailable, and the loss is logged.
 * So every subscriber must also limit the age of its cache to a few seconds, and every handler must be idempotent.
 */
import { randomUUID } from 'node:crypto';
import { Inject, Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { createPostgresRelayBackend, Relay, type RelayOptions } from 'bullmq';
import { Env } from '../../config/env.js';
import { withTimeout } from '../limits/with-timeout.js';
import { CLOSE_MS_MAX, QueueConnection } from './queue-backend.js';

/**
 * A module adds its own topics next to the code that publishes them: `declare module '…/pub-sub.js' { interface Topics
 * { 'stars.changed': { id: string } } }`.
 */
// eslint-disable-next-line @typescript-eslint/no-empty-object-type
export interface Topics {}

@Injectable()
export class PubSub implements OnApplicationShutdown {
  private readonly logger = new Logger('pub-sub');
  private readonly relay: Relay;
  /** Marks messages that this process has announced. */
  private readonly id = randomUUID();
  private readonly listeners = new Map<keyof Topics, ((data: never) => void)[]>();

  constructor(@Inject(Env) env: Env, { option }: QueueConnection) {
    this.relay = new Relay({
      connection: option,
      prefix: env.queuePrefix,
      namespace: env.queuePrefix,
      name: 'slipway',
      ...(env.redisUrl ? {} : { backend: createPostgresRelayBackend }),
    } as RelayOptions);
    this.relay.on('error', (error: Error) =>
      this.logger.warn({ msg: 'messages between processes are delayed: the queue store does not answer', err: error }),
    );
  }

  /** Subscribes to messages of all processes, including this one. */
  async subscribe<T extends keyof Topics>(topic: T, listener: (data: Topics[T]) => void): Promise<void> {
    this.listeners.set(topic, [...(this.listeners.get(topic) ?? []), listener]);
    await this.relay.subscribe<Topics[T] & { announcedBy?: string }>(topic, ({ data: { announcedBy, ...data } }) => {
      if (announcedBy !== this.id) listener(data as Topics[T]);
    });
  }

  /**
   * Announces a change of a row or of a right. The listeners of this process have run when it returns, so that the
   * change applies before the response of the request is sent; those of other processes run when the message arrives.
   * Never throws, like {@link publish}.
   */
  announce<T extends keyof Topics>(topic: T, data: Topics[T]): void {
    for (const listener of (this.listeners.get(topic) ?? []) as ((data: Topics[T]) => void)[]) {
      try {
        listener(data);
      } catch (error) {
        this.logger.error({ msg: `a listener of ${topic} failed`, err: error });
      }
    }
    this.publish(topic, { ...data, announcedBy: this.id } as unknown as Topics[T]);
  }

  /** Returns immediately and never throws: a failure is logged. */
  publish<T extends keyof Topics>(topic: T, data: Topics[T]): void {
    this.relay.publish(topic, data).catch((error: unknown) => {
      this.logger.warn({ msg: `a message on ${topic} was lost`, err: error });
    });
  }

  /** @throws the store client's error */
  async ping(): Promise<void> {
    await this.relay.getCounts();
  }

  /** Finishes within 5 s: the relay would wait forever for a Redis that is unavailable. */
  async onApplicationShutdown(): Promise<void> {
    await withTimeout(CLOSE_MS_MAX, this.relay.close(), undefined);
  }
}
