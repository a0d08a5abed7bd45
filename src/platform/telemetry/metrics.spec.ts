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

  it('are left out and logged when they cannot be read, and the others stay', async () => {
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
});
