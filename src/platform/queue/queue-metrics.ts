import { Injectable } from '@nestjs/common';
import type { Queue } from 'bullmq';
import { withTimeout } from '../limits/with-timeout.js';
import { Metrics, type Sample } from '../telemetry/metrics.js';

const states = ['waiting', 'active', 'delayed', 'failed'] as const;

/** How old the figures may be: several who look at once, or every second, cost the queue's store one question in 5 s. */
const AGE_MS_MAX = 5_000;

/** A store that does not answer in this time is said to be away; whoever looks does not wait longer for it. */
const ANSWER_MS_MAX = 2_000;

type QueueCounts = Pick<Queue, 'name' | 'getJobCounts'>;

/** Gauges of the queues. Every process reports the same values, since processes share the queues. */
@Injectable()
export class QueueMetrics {
  private readonly queues = new Map<string, QueueCounts>();
  private known: { at: number; samples: Sample[] | null } | null = null;
  private asking: Promise<Sample[] | null> | null = null;

  constructor(metrics: Metrics) {
    metrics.gauge(
      'slipway_queue_jobs',
      'Jobs by queue and state, of the whole service; at most 1,000 failed ones of a queue are kept.',
      async () => (await this.current()) ?? [],
    );
    metrics.gauge('slipway_queue_reachable', '1 when the store of the queues told of all of them in 2 s.', async () =>
      (await this.current()) === null ? 0 : 1,
    );
  }

  /** Shows this queue from now on. */
  watch(queue: QueueCounts): void {
    this.queues.set(queue.name, queue);
  }

  /** Null while the store does not answer. */
  private async current(): Promise<Sample[] | null> {
    const { known } = this;
    if (known && performance.now() - known.at < AGE_MS_MAX) return known.samples;
    // Never two questions at once: a store that was away for an hour would be met by all that were asked meanwhile.
    this.asking ??= this.ask().finally(() => (this.asking = null));
    return withTimeout(ANSWER_MS_MAX, this.asking, null);
  }

  private async ask(): Promise<Sample[] | null> {
    const samples = await Promise.all([...this.queues.values()].map(samplesOf)).then(
      (each) => each.flat(),
      () => null,
    );
    this.known = { at: performance.now(), samples };
    return samples;
  }
}

async function samplesOf(queue: QueueCounts): Promise<Sample[]> {
  const counts = await queue.getJobCounts(...states);
  return states.map((state) => ({ labels: { queue: queue.name, state }, value: counts[state] ?? 0 }));
}
