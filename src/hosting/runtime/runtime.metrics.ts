import { Injectable } from '@nestjs/common';
import { Metrics, type Sample } from '../../platform/telemetry/metrics.js';
import type { BundleEngine } from '../bundle/bundle-engine.js';
import { Engines } from '../engine.js';
import { Sandbox } from '../sandbox/sandbox.js';
import { Runtime } from './runtime.js';

@Injectable()
export class RuntimeMetrics {
  constructor(metrics: Metrics, runtime: Runtime, sandbox: Sandbox, engines: Engines) {
    metrics.gauge(
      'slipway_hosting_isolation',
      'Isolation level of hosted code; the value is 1.',
      async () => toSamples('level', { [(await sandbox.describeIsolation()).level]: 1 }),
      'first',
    );
    metrics.gauge('slipway_hosting_programs', 'Hosted programs of this process, by state.', () => {
      const { live, starting } = runtime.stats();
      return toSamples('state', { live, starting });
    });
    metrics.gauge(
      'slipway_hosting_requests_in_flight',
      'Requests that hosted programs process, including open event streams.',
      () => runtime.stats().inFlight,
    );
    metrics.gauge(
      'slipway_hosting_memory_bytes',
      'Anonymous memory of hosted programs, without bundles.',
      () => runtime.memoryMb() * 1_048_576,
    );
    const bundles = engines.all.find((engine): engine is BundleEngine => engine.name === 'bundle');
    metrics.gauge(
      'slipway_hosting_bundle_sessions',
      'Sessions of bundles, each of them a process.',
      () => bundles?.sessions ?? 0,
    );
    metrics.counter(
      'slipway_hosting_cpu_seconds_total',
      'CPU time of hosted programs, counted when a request finishes; without bundles.',
      () => runtime.stats().cpuMs / 1_000,
    );
    metrics.counter('slipway_hosting_starts_total', 'Hosted programs that were started.', () => runtime.stats().starts);
    metrics.counter(
      'slipway_hosting_crashes_total',
      'Hosted programs that did not start, or ended by themselves.',
      () => runtime.stats().crashes,
    );
    metrics.counter('slipway_hosting_kills_total', 'Hosted programs that were killed, by exceeded limit.', () =>
      toSamples('reason', runtime.stats().kills),
    );
    metrics.counter(
      'slipway_hosting_refused_total',
      'Requests that were refused before a hosted program received them, by reason.',
      () => toSamples('reason', runtime.stats().refused),
    );
    metrics.counter(
      'slipway_hosting_lines_dropped_total',
      'Records of the output of hosted programs that were dropped, counted when the program exits.',
      () => runtime.stats().dropped,
    );
  }
}

function toSamples(label: string, values: Record<string, number>): Sample[] {
  return Object.entries(values).map(([key, value]) => ({ labels: { [label]: key }, value }));
}
