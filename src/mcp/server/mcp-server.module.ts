import { Global, Module } from '@nestjs/common';
import { McpServerMetrics } from './mcp-server.metrics.js';
import { McpHttpServer } from './mcp-http-server.js';
import { InternalPendingCallsController } from './pending-input/internal-pending-calls.controller.js';
import { PendingInputCalls } from './pending-input/pending-input-calls.js';

/** The MCP endpoints of this process, whatever they lead to. */
@Global()
@Module({
  controllers: [InternalPendingCallsController],
  providers: [McpHttpServer, McpServerMetrics, PendingInputCalls],
  exports: [McpHttpServer],
})
export class McpServerModule {}
