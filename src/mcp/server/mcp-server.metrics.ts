import { Injectable } from '@nestjs/common';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { McpHttpServer } from './mcp-http-server.js';

/** What clients have open at the MCP endpoints of this process. */
@Injectable()
export class McpServerMetrics {
  constructor(metrics: Metrics, front: McpHttpServer) {
    metrics.gauge(
      'slipway_mcp_requests_in_flight',
      'MCP requests that are being answered.',
      () => front.stats().requests,
    );
    metrics.gauge(
      'slipway_mcp_streams',
      'Streams that clients hold open at MCP endpoints.',
      () => front.stats().streams,
    );
    metrics.gauge(
      'slipway_mcp_sessions',
      'Client sessions of which something is remembered, such as a log level.',
      () => front.stats().sessions,
    );
  }
}
