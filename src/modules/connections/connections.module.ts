import { Module } from '@nestjs/common';
import { roleModule } from '../../config/role-module.js';
import { ConnectionsApiModule } from './connections-api.module.js';
import { DiagnosisModule } from './diagnosis/diagnosis.module.js';
import { ConnectionLogModule } from './log/connection-log.module.js';
import { NamespaceMcpModule } from './namespace/namespace-mcp.module.js';
import { ConnectionSetupModule } from './setup/connection-setup.module.js';
import { SourceModule } from './source/source.module.js';
import { ConnectionToolsModule } from './tools/connection-tools.module.js';
import { TriggersModule } from './triggers/triggers.module.js';

declare global {
  interface SlipwayScopes {
    connections: 'read' | 'write' | 'execute';
  }
}

/** Connections to MCP servers. Routes match in this order, so `connect/{namespace}/{connectionId}` is last. */
@Module({})
export class ConnectionsModule {
  static readonly forRoles = roleModule((env) => ({
    module: ConnectionsModule,
    always: {
      imports: [
        ConnectionToolsModule,
        NamespaceMcpModule,
        ConnectionLogModule,
        DiagnosisModule,
        TriggersModule,
        ConnectionSetupModule,
        SourceModule,
        ConnectionsApiModule,
      ].map((module) => module.forRoles(env)),
    },
  }));
}
