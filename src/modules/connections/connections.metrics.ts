import { Injectable } from '@nestjs/common';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { ConnectionHandles } from './core/connection-handles.js';
import { UplinkTunnels } from './uplink/uplink-tunnels.js';

@Injectable()
export class ConnectionsMetrics {
  constructor(metrics: Metrics, connectionHandles: ConnectionHandles, uplinkTunnels: UplinkTunnels) {
    metrics.gauge(
      'slipway_connection_links',
      'Open handles to MCP servers, of connections.',
      () => connectionHandles.size,
    );
    metrics.gauge('slipway_uplink_tunnels', 'Tunnels to local servers.', () => uplinkTunnels.size);
  }
}
