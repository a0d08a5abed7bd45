import { Injectable } from '@nestjs/common';
import { Metrics, type Durations, type LabeledCounter } from '../../platform/telemetry/metrics.js';
import { invocationOutcomes, type InvocationOutcome } from './invocation.types.js';

const kinds = ['connection', 'run'] as const;
/** Kinds of calls; a `server` is called at its run address. */
export type CallKind = (typeof kinds)[number];

@Injectable()
export class CallMetricsService {
  private readonly calls: LabeledCounter<'kind' | 'outcome'>;
  private readonly durations: Durations<'kind'>;
  private readonly firstBytes: Durations<never>;

  constructor(metrics: Metrics) {
    const labels = { kind: kinds, outcome: invocationOutcomes };
    const help = 'Finished calls, by target and outcome.';
    this.calls = metrics.labeledCounter('slipway_calls_total', help, labels);
    this.durations = metrics.durations(
      'slipway_call_duration_seconds',
      'Time a call took in this process, its MCP server included.',
      { kind: kinds },
    );
    this.firstBytes = metrics.durations(
      'slipway_upstream_first_byte_seconds',
      'Time from sending the call of a connection to the first byte of the response of its MCP server.',
    );
  }

  /** @param firstByteMs null if no MCP server was called over HTTP */
  observeCall(kind: CallKind, outcome: InvocationOutcome, ms: number, firstByteMs: number | null = null): void {
    this.calls.inc({ kind, outcome });
    this.durations.observe(ms / 1_000, { kind });
    if (firstByteMs !== null) this.firstBytes.observe(firstByteMs / 1_000);
  }
}
