import { Controller, Get, Header, Headers } from '@nestjs/common';
import { ApiOkResponse, ApiTags } from '#api-docs';
import { ApiErrors } from '../http/api-docs.decorators.js';
import { Public } from '../http/public.decorator.js';
import { Metrics } from './metrics.js';

@ApiTags('Health')
@Public()
@Controller('metrics')
export class MetricsController {
  constructor(private readonly metrics: Metrics) {}

  /**
   * Metrics of this process, for Prometheus. With the service's `METRICS_TOKEN` as bearer; API keys do not count
   * here. Every process shows its own figures, those of `WORKERS` together. They name no namespace, server, tool or address.
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
    return this.metrics.page(authorization);
  }
}
