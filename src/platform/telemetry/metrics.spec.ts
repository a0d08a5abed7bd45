import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { parseMetrics } from '../../../test/support/prometheus.js';
import { Durations } from './figures.js';
import { Metrics } from './metrics.js';

const on = (): Metrics => new Metrics({ metricsToken: 'open' });
const shown = async (metrics: Metrics) => parseMetrics((await metrics.text()) ?? '');

describe('metrics', () => {
  const logged: unknown[] = [];
  const keep = (line: unknown) => void logged.push(line);
  beforeEach(() => Logger.overrideLogger({ log: keep, warn: keep, error: keep }));
  afterEach(() => Logger.overrideLogger(false));

  it('are read when somebody looks, and shown with their types, help and labels', async () => {
    const metrics = on();
    const durations = new Durations();
    let waiting = 1;
    metrics.gauge('slipway_waiting', 'What waits.', () => waiting);
    metrics.gauge('slipway_jobs', 'Jobs.', async () => [{ labels: { queue: 'a "b"\n' }, value: 2 }]);
    metrics.counter('slipway_seen_total', 'What was seen.', () => 7);
    metrics.durations('slipway_took_seconds', 'How long.', [{ labels: { kind: 'run' }, durations }]);
    waiting = 5;
    durations.observe(20);
    const page = await shown(metrics);
    expect(page.all.get('slipway_waiting')).toMatchObject({ type: 'gauge', help: 'What waits.' });
    expect([page.value('slipway_waiting'), page.value('slipway_seen_total')]).toEqual([5, 7]);
    expect(page.text).toContain('slipway_jobs{queue="a \\"b\\"\\n"} 2\n');
    expect(page.text).toContain('slipway_took_seconds_bucket{kind="run",le="0.025"} 1\n');
    expect(page.text).toContain('slipway_took_seconds_sum{kind="run"} 0.02\n');
  });

  it('show the process beside: CPU, memory, event loop and garbage', async () => {
    const page = await shown(on());
    expect(page.value('process_cpu_seconds_total')).toBeGreaterThan(0);
    expect(page.value('process_resident_memory_bytes')).toBeGreaterThan(1_000_000);
    expect([...page.all.keys()]).toEqual(
      expect.arrayContaining(['nodejs_eventloop_lag_p99_seconds', 'nodejs_gc_duration_seconds', 'process_open_fds']),
    );
  });

  it('that cannot be read are left out and logged, and the others stay', async () => {
    const metrics = on();
    metrics.gauge('slipway_broken', 'Broken.', () => {
      throw new Error('no');
    });
    metrics.gauge('slipway_late', 'Broken too.', () => Promise.reject(new Error('no')));
    metrics.gauge('slipway_sound', 'Sound.', () => 1);
    const page = await shown(metrics);
    expect(page.value('slipway_sound')).toBe(1);
    expect(page.all.get('slipway_broken')?.values.size).toBe(0);
    expect(logged).toMatchObject([
      { msg: 'slipway_broken could not be read' },
      { msg: 'slipway_late could not be read' },
    ]);
  });

  it('have names of the usual form, once each', () => {
    const metrics = on();
    expect(() => metrics.counter('slipway_seen', 'x', () => 1)).toThrow('slipway_seen is no name of a counter');
    expect(() => metrics.gauge('slipway_seen_total', 'x', () => 1)).toThrow('is no name of a gauge');
    expect(() => metrics.gauge('other_seen', 'x', () => 1)).toThrow('is no name of a gauge');
    metrics.gauge('slipway_seen', 'x', () => 1);
    expect(() => metrics.gauge('slipway_seen', 'x', () => 1)).toThrow('already been registered');
  });

  it('are nothing while nobody said who may read them', async () => {
    const metrics = new Metrics({ metricsToken: null });
    metrics.gauge('slipway_waiting', 'What waits.', () => {
      throw new Error('it was read');
    });
    expect(await metrics.text()).toBeNull();
  });
});
