import { Controller, Get, Header, Headers, Injectable } from '@nestjs/common';
import { ApiOkResponse, ApiTags } from '@nestjs/swagger';
import { ApiErrors } from '../http/api-docs.decorators.js';
import { Public } from '../http/public.decorator.js';
import { timingSafeEqual } from 'node:crypto';
import { Env } from '../../config/env.js';
import { hashSecret } from '../http/secrets.js';
import { Metrics } from './metrics.js';
import { DomainError } from '../errors/domain-error.js';

/** `METRICS_TOKEN` is not set, so nobody may read the metrics. */
class MetricsOffError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'not_found';

  constructor() {
    super('Metrics are off: the operator turns them on with METRICS_TOKEN');
  }
}

/** The metrics were asked for without their token. */
class MetricsTokenError extends DomainError {
  readonly kind = 'unauthenticated';
  readonly code = 'unauthorized';

  constructor() {
    super('Send the METRICS_TOKEN of this service as "Authorization: Bearer <token>"');
  }
}

/** The metrics, for those who may read them. */
@Injectable()
export class MetricsPage {
  constructor(
    private readonly metrics: Metrics,
    private readonly env: Env,
  ) {}

  /** @param authorization the header of that name @throws MetricsOffError, MetricsTokenError */
  async read(authorization: string | undefined): Promise<string> {
    const { metricsToken } = this.env;
    if (metricsToken !== null && metricsToken !== 'open') requireToken(metricsToken, authorization);
    const text = await this.metrics.text();
    if (text === null) throw new MetricsOffError();
    return text;
  }
}

@ApiTags('Health')
@Public()
@Controller('metrics')
export class MetricsController {
  constructor(private readonly page: MetricsPage) {}

  /**
   * Metrics of this process, for Prometheus. With the service's `METRICS_TOKEN` as bearer; API keys do not count
   * here. Every process shows its own figures. They name no namespace, server, tool or address.
   */
  @Get()
  @Header('content-type', 'text/plain; version=0.0.4; charset=utf-8')
  @Header('cache-control', 'no-store')
  @ApiOkResponse({
    description: 'Text in the Prometheus exposition format 0.0.4.',
    content: { 'text/plain': { schema: { type: 'string', example: 'slipway_uplink_tunnels 12\n' } } },
  })
  @ApiErrors(
    { status: 401, text: 'The token is missing or wrong.', message: 'Unauthorized' },
    { status: 404, text: 'The operator has set no METRICS_TOKEN.', message: 'Metrics are off' },
  )
  read(@Headers('authorization') authorization: string | undefined): Promise<string> {
    return this.page.read(authorization);
  }
}

/** Compares hashes, which are of one length, so that the time it takes tells nothing. */
function requireToken(token: string, authorization = ''): void {
  const given = /^Bearer +(\S+) *$/i.exec(authorization)?.[1] ?? '';
  if (!timingSafeEqual(hashSecret(given), hashSecret(token))) throw new MetricsTokenError();
}
