import { Injectable } from '@nestjs/common';
import type { Queue } from 'bullmq';
import { RowCache } from '../database/row-cache.js';
import { withTimeout } from '../limits/with-timeout.js';
import { Metrics, type Sample } from '../telemetry/metrics.js';

const states = ['waiting', 'active', 'delayed', 'failed'] as const;

/** Timeout of a scrape for the store; without an answer in time it is shown as unreachable. */
const ANSWER_MS_MAX = 2_000;

type QueueCounts = Pick<Queue, 'name' | 'getJobCounts'>;

/** Gauges of the queues. Every process reports the same values, since processes share the queues. */
@Injectable()
export class QueueMetrics {
  private readonly queues = new Map<string, QueueCounts>();
  /** Concurrent and frequent scrapes cost the queue's store one query in 5 s. */
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

  constructor(metrics: Metrics) {
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

  /** Shows this queue from now on. */
  watch(queue: QueueCounts): void {
    this.queues.set(queue.name, queue);
  }

  /** Null while the store does not answer. One question at a time: a store that was away must not meet a backlog. */
  private async current(): Promise<Sample[] | null> {
    return withTimeout(ANSWER_MS_MAX, this.samples.get('all'), null);
  }
}
