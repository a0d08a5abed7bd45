import { Global, Module } from '@nestjs/common';
import { roleModule } from '../../config/role-module.js';
import { McpServerMetrics } from './mcp-server.metrics.js';
import { McpHttpServer } from './mcp-http-server.js';
import { InternalPendingCallsController } from './pending-input/internal-pending-calls.controller.js';
import { PendingInputCalls } from './pending-input/pending-input-calls.js';

/** MCP endpoints of this process, for upstreams of any kind. */
@Global()
@Module({})
export class McpServerModule {
  static readonly forRoles = roleModule(() => ({
    module: McpServerModule,
    api: {
      controllers: [InternalPendingCallsController],
      providers: [McpHttpServer, McpServerMetrics, PendingInputCalls],
      exports: [McpHttpServer],
    },
  }));
}
