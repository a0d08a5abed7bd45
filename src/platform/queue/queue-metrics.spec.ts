import { describe, expect, it } from '@jest/globals';
import { parseMetrics } from '../../../test/support/logs/prometheus.js';
import { Metrics } from '../telemetry/metrics.js';
import { QueueMetrics } from './queue-metrics.js';

/** A queue that answers when it is told to. */
function queue() {
  const asked: ((counts: Record<string, number>) => void)[] = [];
  return {
    asked,
    name: 'releases',
    getJobCounts: () => new Promise<Record<string, number>>((resolve) => asked.push(resolve)),
  };
}

function figures() {
  const metrics = new Metrics({ metricsToken: 'open' });
  const watched = queue();
  new QueueMetrics(metrics).watch(watched);
  const look = async () => parseMetrics((await metrics.text()) ?? '');
  return { watched, look };
}

describe('the figures of queues', () => {
  it('are read once for concurrent readers, and again only 5 s later', async () => {
    const { watched, look } = figures();
    const first = look();
    await new Promise((resolve) => setImmediate(resolve));
    watched.asked[0]?.({ waiting: 3, active: 1, delayed: 0, failed: 2 });
    const page = await first;
    expect(page.value('slipway_queue_jobs', 'queue="releases",state="waiting"')).toBe(3);
    expect(page.value('slipway_queue_jobs', 'queue="releases",state="failed"')).toBe(2);
    expect(page.value('slipway_queue_reachable')).toBe(1);
    await look();
    expect(watched.asked).toHaveLength(1);
  });

  it('are left out while the store does not answer; one query waits 2 s for it', async () => {
    const { watched, look } = figures();
    const startedAt = Date.now();
    const page = await look();
    expect(Date.now() - startedAt).toBeLessThan(10_000);
    expect(page.value('slipway_queue_reachable')).toBe(0);
    expect(page.all.get('slipway_queue_jobs')?.values.size).toBe(0);
    await look();
    expect(watched.asked).toHaveLength(1);
    watched.asked[0]?.({ waiting: 0, active: 0, delayed: 0, failed: 0 });
    expect((await look()).value('slipway_queue_reachable')).toBe(1);
  });
});
