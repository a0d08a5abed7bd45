import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { roleModule } from '../../config/role-module.js';
import { LegacyServer } from './legacy-server.js';
import { McpHttpServer, McpServerMetrics } from './mcp-http-server.js';
import { McpServer } from './mcp-server.js';
import { ModernServer } from './modern-server.js';
import { ClientInput, PendingClientRequests } from './pending-client-requests.js';
import { InternalPendingCallsController } from './pending-input/internal-pending-calls.controller.js';
import { PendingInputCalls } from './pending-input/pending-input-calls.js';
import { InternalResumedStreamsController } from './resume/internal-resumed-streams.controller.js';
import { ResumableStreams } from './resume/resumable-streams.js';
import { LiveSessions } from './sessions/live-sessions.js';
import { SessionIds } from './sessions/session-ids.js';
import { SessionMark } from './sessions/session-mark.entity.js';
import { SessionMarksRepository } from './sessions/session-mark.repository.js';
import { StreamLimiter } from './sessions/stream-limiter.js';
import { Subscriptions } from './sessions/subscriptions.js';
import { InternalSseStreamsController } from './sse/internal-sse-streams.controller.js';
import { SseStreams } from './sse/sse-streams.js';
import { McpTask } from './tasks/mcp-task.entity.js';
import { McpTasksRepository } from './tasks/mcp-task.repository.js';
import { TaskRelay } from './tasks/task-relay.js';
import { ToolMetadataCache } from './tool-metadata-cache.js';
import { UpstreamCalls } from './upstream-calls.js';

export const MCP_SERVER_PROVIDERS = [
  McpHttpServer,
  McpServer,
  LegacyServer,
  ModernServer,
  UpstreamCalls,
  ToolMetadataCache,
  SessionIds,
  LiveSessions,
  PendingClientRequests,
  ClientInput,
  PendingInputCalls,
  StreamLimiter,
  Subscriptions,
  SseStreams,
  ResumableStreams,
  TaskRelay,
];

@Global()
@Module({})
export class McpServerModule {
  static readonly forRoles = roleModule(() => ({
    module: McpServerModule,
    api: {
      imports: [TypeOrmModule.forFeature([SessionMark, McpTask])],
      controllers: [InternalPendingCallsController, InternalResumedStreamsController, InternalSseStreamsController],
      providers: [...MCP_SERVER_PROVIDERS, McpServerMetrics, SessionMarksRepository, McpTasksRepository],
      exports: [McpHttpServer],
    },
  }));
}
