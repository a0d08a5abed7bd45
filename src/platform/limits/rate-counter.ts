import cluster from 'node:cluster';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Redis } from 'ioredis';
import {
  RateLimiterCluster,
  RateLimiterMemory,
  RateLimiterRedis,
  type RateLimiterAbstract,
} from 'rate-limiter-flexible';
import { Env } from '../../config/env.js';
import { repeat, type Repeat } from '../schedule/repeat.js';
import { onTotals, sendCounts } from './worker-counts.js';

/** Length of a window: minutes of the clock, so that processes agree on them. */
export const WINDOW_SECONDS = 60;

/** The delay with which one process sees the others' counts. */
const SHARE_MS = 1_000;

/** Window of failures, which starts with the first failure of a key. */
const FAILURES_SECONDS = 15 * 60;

/**
 * Counts requests and failures by key: of all processes with Redis, otherwise of those of `WORKERS`, which the
 * supervisor adds up. Counting a request is always synchronous: own counts are sent once a second, and the response is
 * the count of all processes. While Redis is unavailable, each process counts alone.
 */
@Injectable()
export class RateCounter implements OnApplicationShutdown {
  private readonly logger = new Logger('limits');
  private readonly redis: Redis | null;
  /** Counts of all processes that use the same Redis. */
  private readonly requests: RateLimiterRedis | null = null;
  private readonly failures: RateLimiterAbstract;
  private readonly sharing: Repeat | null = null;
  private readonly counts = new Map<string, number>();
  private unsent = new Map<string, number>();
  private window = 0;

  constructor({ redisUrl, queuePrefix }: Env) {
    // Points only decide when `consume` rejects, and it is not called.
    const limiter = { points: 1, duration: FAILURES_SECONDS, keyPrefix: `${queuePrefix}:failures` };
    const alone = new RateLimiterMemory(limiter);
    this.failures = alone;
    this.redis = redisUrl === null ? null : new Redis(redisUrl, { enableOfflineQueue: false, maxRetriesPerRequest: 0 });
    const requests = { points: 1, duration: 2 * WINDOW_SECONDS, keyPrefix: `${queuePrefix}:requests` };
    if (this.redis) {
      this.redis.on('error', ({ message }: Error) => this.logger.debug(`requests are counted alone: ${message}`));
      const shared = { storeClient: this.redis, rejectIfRedisNotReady: true };
      this.failures = new RateLimiterRedis({ ...limiter, ...shared, insuranceLimiter: alone });
      this.requests = new RateLimiterRedis({ ...requests, ...shared });
    } else if (cluster.isWorker) {
      this.failures = new RateLimiterCluster(limiter);
      onTotals(({ window, counts }) => {
        if (window === this.window) for (const [key, total] of counts) this.setTotal(key, total);
      });
    } else return;
    this.sharing = repeat(SHARE_MS, () => void this.share());
  }

  /** Number of seconds left, at least 1. */
  get secondsLeft(): number {
    return WINDOW_SECONDS - (Math.floor(Date.now() / 1000) % WINDOW_SECONDS);
  }

  /** @returns requests of the key in this window, including these */
  add(key: string, requests = 1): number {
    const window = Math.floor(Date.now() / 1000 / WINDOW_SECONDS);
    if (window !== this.window) {
      this.window = window;
      this.counts.clear();
      this.unsent.clear();
    }
    const count = (this.counts.get(key) ?? 0) + requests;
    this.counts.set(key, count);
    if (this.sharing) this.unsent.set(key, (this.unsent.get(key) ?? 0) + requests);
    return count;
  }

  /** @returns failures of the key within 15 minutes of the first one */
  async addFailure(key: string): Promise<number> {
    return (await this.failures.penalty(key)).consumedPoints;
  }

  /** Uncounts a failure, which was counted before the outcome was known. */
  async forgiveFailure(key: string): Promise<void> {
    await this.failures.reward(key);
  }

  async onApplicationShutdown(): Promise<void> {
    this.sharing?.stop();
    this.redis?.disconnect();
  }

  private async share(): Promise<void> {
    const { window, unsent } = this;
    this.unsent = new Map();
    if (!this.requests) return sendCounts({ window, counts: [...unsent] });
    const send = async ([key, added]: [string, number]) => {
      const all = await this.requests?.penalty(`${window}:${key}`, added);
      if (all && window === this.window) this.setTotal(key, all.consumedPoints);
    };
    // A count lost in transit is still counted in this process.
    await Promise.allSettled([...unsent].map(send));
  }

  private setTotal(key: string, total: number): void {
    this.counts.set(key, total + (this.unsent.get(key) ?? 0));
  }
}
