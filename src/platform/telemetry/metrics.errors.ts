import { DomainError } from '../errors/domain-error.js';

/** `METRICS_TOKEN` is not set, so nobody may read the metrics. */
export class MetricsOffError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'not_found';

  constructor() {
    super('Metrics are off: the operator turns them on with METRICS_TOKEN');
  }
}

/** The metrics were asked for without their token. */
export class MetricsTokenError extends DomainError {
  readonly kind = 'unauthenticated';
  readonly code = 'unauthorized';

  constructor() {
    super('Send the METRICS_TOKEN of this service as "Authorization: Bearer <token>"');
  }
}
