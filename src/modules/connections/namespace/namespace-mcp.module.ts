import { Module } from '@nestjs/common';
import { roleModule } from '../../../config/role-module.js';
import { ConnectionCoreModule } from '../core/connection-core.module.js';
import { ConnectionLogModule } from '../log/connection-log.module.js';
import { NamespaceMcpController } from './namespace-mcp.controller.js';
import { NamespaceMembers, NamespaceServers } from './namespace-servers.js';

/** All connections of a namespace as one MCP endpoint. */
@Module({})
export class NamespaceMcpModule {
  static readonly forRoles = roleModule((env) => ({
    module: NamespaceMcpModule,
    api: {
      imports: [ConnectionCoreModule.forRoles(env), ConnectionLogModule.forRoles(env)],
      controllers: [NamespaceMcpController],
      providers: [NamespaceMembers, NamespaceServers],
    },
  }));
}
