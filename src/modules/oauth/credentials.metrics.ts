import { Injectable } from '@nestjs/common';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { TokenRefresher } from './token-refresher.js';

/** What renewing tokens shows. */
@Injectable()
export class CredentialsMetrics {
  constructor(metrics: Metrics, refresher: TokenRefresher) {
    metrics.counter(
      'slipway_oauth_refreshes_total',
      'Refreshes of tokens by result: a token; authorization required anew; the token endpoint away; the credential gone.',
      () => refresher.results.samples(),
    );
  }
}
