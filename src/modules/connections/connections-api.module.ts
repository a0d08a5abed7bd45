import { Module } from '@nestjs/common';
import { roleModule } from '../../config/role-module.js';
import { NamespacesModule } from '../namespaces/namespaces.module.js';
import { ConnectionMcpController } from './connection-mcp.controller.js';
import { ConnectionsController } from './connections.controller.js';
import { ConnectionsMetrics } from './connections.metrics.js';
import { ConnectionsService } from './connections.service.js';
import { ConnectionCoreModule } from './core/connection-core.module.js';
import { ConnectionLogModule } from './log/connection-log.module.js';
import { MockModule } from './mock/mock.module.js';
import { RecheckModule } from './recheck/recheck.module.js';
import { SourceModule } from './source/source.module.js';
import { UplinkModule } from './uplink/uplink.module.js';

/** Connections of every kind of target: created, changed, read, deleted, and each as an MCP endpoint. */
@Module({})
export class ConnectionsApiModule {
  static readonly forRoles = roleModule((env) => ({
    module: ConnectionsApiModule,
    api: {
      imports: [
        NamespacesModule,
        ConnectionCoreModule,
        ConnectionLogModule,
        MockModule,
        RecheckModule,
        SourceModule,
        UplinkModule,
      ].map((module) => module.forRoles(env)),
      controllers: [ConnectionMcpController, ConnectionsController],
      providers: [ConnectionsService, ConnectionsMetrics],
    },
  }));
}
