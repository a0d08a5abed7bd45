import { describe, expect, it } from '@jest/globals';
import { Counts, Durations } from './figures.js';
import { kindOf } from './http-meter.js';

describe('counts', () => {
  it('are shown from the start, each under its label and those of whoever asks', () => {
    const counts = new Counts('result', ['good', 'bad']);
    counts.add('bad');
    counts.add('bad', 2);
    expect(counts.samples({ kind: 'run' })).toEqual([
      { labels: { kind: 'run', result: 'good' }, value: 0 },
      { labels: { kind: 'run', result: 'bad' }, value: 3 },
    ]);
  });
});

describe('durations', () => {
  it('fall into the first bucket that holds them, its end included, and into all above', () => {
    const durations = new Durations();
    for (const ms of [0, 1, 1.01, 60_000, 60_001]) durations.observe(ms);
    const samples = durations.samples('x_seconds', { kind: 'run' });
    const value = (le: string) => samples.find(({ labels }) => labels.le === le)?.value;
    expect([value('0.001'), value('0.0025'), value('30'), value('60'), value('+Inf')]).toEqual([2, 3, 3, 4, 5]);
    expect(samples.slice(-2)).toEqual([
      { name: 'x_seconds_sum', labels: { kind: 'run' }, value: 120.00301 },
      { name: 'x_seconds_count', labels: { kind: 'run' }, value: 5 },
    ]);
  });
});

describe('what a request is for', () => {
  it.each([
    ['/connect/acme/mine/.tools/echo', 'rest'],
    ['/connect/acme/mine/mcp', 'mcp'],
    ['/connect/acme/mine/mcp?x=1', 'mcp'],
    ['/connect/acme/.mcp', 'mcp'],
    ['/connect/acme/mine/mcp/more', 'rest'],
    ['/connect/acme/mcp', 'rest'],
    ['/run/acme--weather/mcp', 'run'],
    ['/servers/acme%2Fweather/logs', 'registry'],
    ['/servers?q=x', 'registry'],
    ['/skills', 'registry'],
    ['/serversx', 'other'],
    ['/metrics', 'other'],
    ['/', 'other'],
  ])('%s is told by a fixed word: %s', (url, kind) => {
    expect(kindOf(url)).toBe(kind);
  });
});
