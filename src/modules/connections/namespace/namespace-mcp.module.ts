import { Module } from '@nestjs/common';
import { ConnectionCoreModule } from '../core/connection-core.module.js';
import { ConnectionLogCoreModule } from '../log/connection-log-core.module.js';
import { NamespaceMcpController } from './namespace-mcp.controller.js';
import { NamespaceMembers } from './namespace-servers.js';
import { NamespaceServers } from './namespace-servers.js';

/** All connections of a namespace as one MCP endpoint. */
@Module({
  imports: [ConnectionCoreModule, ConnectionLogCoreModule],
  controllers: [NamespaceMcpController],
  providers: [NamespaceMembers, NamespaceServers],
})
export class NamespaceMcpModule {}
