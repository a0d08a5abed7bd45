import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { Queue } from 'bullmq';
import { RowCache } from '../database/row-cache.js';
import { withTimeout } from '../limits/with-timeout.js';
import { Metrics, type Sample } from '../telemetry/metrics.js';

const states = ['waiting', 'active', 'delayed', 'failed'] as const;

/** Timeout of a scrape for the store; afterwards it is shown as unreachable. */
const ANSWER_MS_MAX = 2_000;

/** Gauges of all queues. Every process reports the same values, since processes share the queues. @stability preview */
@Injectable()
export class QueueMetrics implements OnApplicationBootstrap {
  private readonly queues = new Map<string, Queue>();
  /** Concurrent and frequent scrapes cost the queue's store one query per 5 s. */
  private readonly samples = new RowCache<Sample[]>(() =>
    Promise.all(
      [...this.queues.values()].map(async (queue): Promise<Sample[]> => {
        const counts = await queue.getJobCounts(...states);
        return states.map((state) => ({ labels: { queue: queue.name, state }, value: counts[state] ?? 0 }));
      }),
    ).then(
      (samples) => samples.flat(),
      () => null,
    ),
  );

  constructor(
    private readonly discoveryService: DiscoveryService,
    metrics: Metrics,
  ) {
    metrics.gauge(
      'slipway_queue_jobs',
      'Jobs by queue and state, of the whole service; at most 1,000 failed ones of a queue are kept.',
      async () => (await this.current()) ?? [],
      'max',
    );
    metrics.gauge(
      'slipway_queue_reachable',
      '1 when the store of the queues told of all of them in 2 s.',
      async () => ((await this.current()) === null ? 0 : 1),
      'min',
    );
  }

  onApplicationBootstrap(): void {
    for (const { instance } of this.discoveryService.getProviders()) {
      if (instance instanceof Queue) this.queues.set(instance.name, instance as Queue);
    }
  }

  /**
   * Jobs by queue and state; null while the store does not respond. One query at a time: a store that was unavailable
   * must not get a backlog of them.
   */
  async current(): Promise<Sample[] | null> {
    return withTimeout(ANSWER_MS_MAX, this.samples.get('all'), null);
  }
}
