import { Injectable } from '@nestjs/common';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { McpHttpServer } from './mcp-http-server.js';

const GAUGES = [
  ['slipway_mcp_requests_in_flight', 'MCP requests that are being answered.', 'requests'],
  ['slipway_mcp_streams', 'Streams that clients hold open at MCP endpoints.', 'streams'],
  ['slipway_mcp_sessions', 'Client sessions with stored state, such as a log level.', 'sessions'],
] as const;

/** Metrics of open requests, streams and sessions at the MCP endpoints of this process. */
@Injectable()
export class McpServerMetrics {
  constructor(metrics: Metrics, server: McpHttpServer) {
    for (const [name, help, key] of GAUGES) metrics.gauge(name, help, () => server.stats()[key]);
  }
}
