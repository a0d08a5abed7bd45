import { Injectable } from '@nestjs/common';
import { Counts, Durations } from '../../platform/telemetry/figures.js';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { invocationOutcomes, type InvocationOutcome } from './invocation.types.js';

const kinds = ['connection', 'run'] as const;
/** A call to a connection, or to the run address of a server. */
export type CallKind = (typeof kinds)[number];

/** Metrics of the calls this process served. */
@Injectable()
export class CallMetricsService {
  private readonly counts = forEach(() => new Counts<InvocationOutcome>('outcome', invocationOutcomes));
  private readonly durations = forEach(() => new Durations());
  private readonly firstBytes = new Durations();

  constructor(metrics: Metrics) {
    metrics.counter('slipway_calls_total', 'Calls that are over, by where they led and how they ended.', () =>
      kinds.flatMap((kind) => this.counts[kind].samples({ kind })),
    );
    metrics.durations(
      'slipway_call_duration_seconds',
      'Time a call took in this process, its MCP server included.',
      kinds.map((kind) => ({ labels: { kind }, durations: this.durations[kind] })),
    );
    metrics.durations(
      'slipway_upstream_first_byte_seconds',
      'Time from sending the call of a connection to the first byte of the answer of its MCP server.',
      [{ durations: this.firstBytes }],
    );
  }

  /** @param firstByteMs null if no MCP server was called over HTTP */
  ended(kind: CallKind, outcome: InvocationOutcome, ms: number, firstByteMs: number | null = null): void {
    this.counts[kind].add(outcome);
    this.durations[kind].observe(ms);
    if (firstByteMs !== null) this.firstBytes.observe(firstByteMs);
  }
}

function forEach<T>(make: () => T): Record<CallKind, T> {
  return { connection: make(), run: make() };
}
