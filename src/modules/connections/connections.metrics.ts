import { Injectable } from '@nestjs/common';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { ConnectionHandles } from './core/connection-handles.js';
import { ConnectionRechecker } from './recheck/connection-rechecker.js';
import { TunnelLimits } from './uplink/tunnel-limits.js';
import { UplinkTunnels } from './uplink/uplink-tunnels.js';

/** The metrics of connections and tunnels. */
@Injectable()
export class ConnectionsMetrics {
  constructor(
    metrics: Metrics,
    handles: ConnectionHandles,
    rechecker: ConnectionRechecker,
    tunnels: UplinkTunnels,
    limits: TunnelLimits,
  ) {
    metrics.gauge('slipway_connection_links', 'Open ways to MCP servers, of connections.', () => handles.size);
    metrics.counter('slipway_connection_rechecks_total', 'Looks at connections whose time had come, by result.', () =>
      rechecker.results.samples(),
    );
    metrics.gauge('slipway_uplink_tunnels', 'Tunnels to local servers.', () => tunnels.size);
    metrics.counter('slipway_uplink_refused_total', 'Tunnels that were refused, by reason.', () =>
      limits.refused.samples(),
    );
  }
}
