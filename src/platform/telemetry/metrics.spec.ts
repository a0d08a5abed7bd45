import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { parseMetrics } from '../../../test/support/logs/prometheus.js';
import { Metrics } from './metrics.js';

const on = (): Metrics => new Metrics({ metricsToken: 'open' });
const shown = async (metrics: Metrics) => parseMetrics((await metrics.text()) ?? '');

describe('metrics', () => {
  const logged: unknown[] = [];
  const keep = (line: unknown) => void logged.push(line);
  beforeEach(() => Logger.overrideLogger({ log: keep, warn: keep, error: keep }));
  afterEach(() => Logger.overrideLogger(false));

  it('count a duration in the first bucket that includes it and in all above', async () => {
    const metrics = on();
    const durations = metrics.durations('slipway_took_seconds', 'How long.');
    for (const seconds of [0, 0.001, 0.00101, 60, 60.001]) durations.observe(seconds);
    const { text } = await shown(metrics);
    const buckets = ['0.001', '0.0025', '30', '60', '+Inf'];
    const counts = buckets.map(
      (le) => new RegExp(`_bucket\\{le="${le.replace('+', '\\+')}"\\} (\\d+)`).exec(text)?.[1],
    );
    expect(counts).toEqual(['2', '3', '3', '4', '5']);
    expect(text).toContain('slipway_took_seconds_count 5\n');
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

  it('have names of the standard form, each once', () => {
    const metrics = on();
    expect(() => metrics.counter('slipway_seen', 'x', () => 1)).toThrow(
      'slipway_seen is not a valid name of a counter',
    );
    expect(() => metrics.gauge('slipway_seen_total', 'x', () => 1)).toThrow('is not a valid name of a gauge');
    expect(() => metrics.gauge('other_seen', 'x', () => 1)).toThrow('is not a valid name of a gauge');
    metrics.gauge('slipway_seen', 'x', () => 1);
    expect(() => metrics.gauge('slipway_seen', 'x', () => 1)).toThrow('already been registered');
  });
});
