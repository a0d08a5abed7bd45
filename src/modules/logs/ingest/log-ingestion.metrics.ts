import { Injectable } from '@nestjs/common';
import { Metrics } from '../../../platform/telemetry/metrics.js';
import { InvocationsService } from './invocations.service.js';

/** What handing in invocations shows. */
@Injectable()
export class LogIngestionMetrics {
  constructor(metrics: Metrics, invocations: InvocationsService) {
    metrics.gauge(
      'slipway_log_invocations_waiting',
      'Invocations in memory that wait for the queue.',
      () => invocations.stats().waiting,
    );
    metrics.counter(
      'slipway_log_invocations_sent_total',
      'Invocations the queue took.',
      () => invocations.stats().sent,
    );
    metrics.counter(
      'slipway_log_invocations_dropped_total',
      'Invocations, or parts of them, that were dropped because too many waited.',
      () => invocations.stats().dropped,
    );
    metrics.counter(
      'slipway_log_invocations_unreadable_total',
      'Invocations that could not be read and were left out.',
      () => invocations.stats().unreadable,
    );
  }
}
