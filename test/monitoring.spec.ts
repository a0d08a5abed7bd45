import { readFileSync } from 'node:fs';
import { describe, expect } from '@jest/globals';
import { alertExpressions, panelExpressions } from './support/logs/monitoring-samples.js';
import { verifies } from './support/verifies.js';

describe('the dashboard and the alert rules', () => {
  verifies('metrics:samples', 'name metrics that docs/reference/metrics.md lists', () => {
    // metrics.e2e-spec.ts compares this table with what the service shows.
    const listed = new Set(readFileSync('docs/reference/metrics.md', 'utf8').match(/(?<=^\| `)slipway_\w+/gm));
    const named = [...panelExpressions, ...alertExpressions].flatMap((expr) => expr.match(/\bslipway_\w+/g) ?? []);
    expect(named.length).toBeGreaterThan(panelExpressions.length);
    expect(named.filter((name) => !listed.has(name.replace(/_bucket$/, '')))).toEqual([]);
  });

  verifies('metrics:samples', 'tell the operator about every kind of log records that is lost', () => {
    const alert = alertExpressions.find((expr) => expr.includes('slipway_log_invocations_dropped_total'));
    for (const lost of ['slipway_connection_log_dropped_total', 'slipway_log_rows_over_share_total']) {
      expect(alert).toContain(`sum(rate(${lost}[5m]))`);
    }
  });
});
