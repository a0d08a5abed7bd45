import { Module } from '@nestjs/common';
import { NamespacesModule } from '../namespaces/namespaces.module.js';
import { ConnectionCoreModule } from './core/connection-core.module.js';
import { ConnectionMcpController } from './connection-mcp.controller.js';
import { ConnectionsController } from './connections.controller.js';
import { ConnectionsMetrics } from './connections.metrics.js';
import { ConnectionsService } from './connections.service.js';
import { ConnectionLogCoreModule } from './log/connection-log-core.module.js';
import { MockModule } from './mock/mock.module.js';
import { RecheckModule } from './recheck/recheck.module.js';
import { SourceModule } from './source/source.module.js';
import { UplinkModule } from './uplink/uplink.module.js';

/** Connections of every kind of target: created, changed, read, deleted, and each as an MCP endpoint. */
@Module({
  imports: [
    NamespacesModule,
    ConnectionCoreModule,
    ConnectionLogCoreModule,
    MockModule,
    RecheckModule,
    SourceModule,
    UplinkModule,
  ],
  controllers: [ConnectionMcpController, ConnectionsController],
  providers: [ConnectionsService, ConnectionsMetrics],
})
export class ConnectionsApiModule {}
