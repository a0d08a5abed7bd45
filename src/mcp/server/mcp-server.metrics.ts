import { Injectable } from '@nestjs/common';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { McpHttpServer } from './mcp-http-server.js';

/** Metrics of open requests, streams and sessions at the MCP endpoints of this process. */
@Injectable()
export class McpServerMetrics {
  constructor(metrics: Metrics, server: McpHttpServer) {
    metrics.gauge(
      'slipway_mcp_requests_in_flight',
      'MCP requests that are being answered.',
      () => server.stats().requests,
    );
    metrics.gauge(
      'slipway_mcp_streams',
      'Streams that clients hold open at MCP endpoints.',
      () => server.stats().streams,
    );
    metrics.gauge(
      'slipway_mcp_sessions',
      'Client sessions with stored state, such as a log level.',
      () => server.stats().sessions,
    );
  }
}
