import { Injectable } from '@nestjs/common';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { TokenRefresherService } from './token-refresher.service.js';

/** The metrics of token refreshes. */
@Injectable()
export class CredentialsMetrics {
  constructor(metrics: Metrics, refresher: TokenRefresherService) {
    metrics.counter(
      'slipway_oauth_refreshes_total',
      'Refreshes of tokens by result: a token; authorization required anew; the token endpoint away; the credential gone.',
      () => refresher.results.samples(),
    );
  }
}
