import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { roleModule } from '../../config/role-module.js';
import { McpServerMetrics } from './mcp-server.metrics.js';
import { McpHttpServer } from './mcp-http-server.js';
import { InternalPendingCallsController } from './pending-input/internal-pending-calls.controller.js';
import { PendingInputCalls } from './pending-input/pending-input-calls.js';
import { InternalResumedStreamsController } from './resume/internal-resumed-streams.controller.js';
import { InternalSseStreamsController } from './sse/internal-sse-streams.controller.js';
import { SessionMark } from './sessions/session-mark.entity.js';
import { SessionMarkRepository } from './sessions/session-mark.repository.js';
import { McpTask } from './tasks/mcp-task.entity.js';
import { McpTaskRepository } from './tasks/mcp-task.repository.js';

/** MCP endpoints of this process, for upstreams of any kind. */
@Global()
@Module({})
export class McpServerModule {
  static readonly forRoles = roleModule(() => ({
    module: McpServerModule,
    api: {
      imports: [TypeOrmModule.forFeature([SessionMark, McpTask])],
      controllers: [InternalPendingCallsController, InternalResumedStreamsController, InternalSseStreamsController],
      providers: [McpHttpServer, McpServerMetrics, PendingInputCalls, SessionMarkRepository, McpTaskRepository],
      exports: [McpHttpServer],
    },
  }));
}
