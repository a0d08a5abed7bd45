import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuthModule } from '../auth/auth.module.js';
import { NamespacesModule } from '../namespaces/namespaces.module.js';
import { CredentialsModule } from '../credentials/credentials.module.js';
import { ReleasesModule } from '../releases/releases.module.js';
import { ServersModule } from '../servers/servers.module.js';
import { ConnectionChannels } from './connection-channels.js';
import { ConnectionCheck } from './connection-check.js';
import { ConnectionReader } from './connection-reader.js';
import { ConnectionUrls } from './connection-urls.js';
import { ConnectionValues } from './connection-values.js';
import { TargetResolver } from './target-resolver.js';
import { ConnectionLinks } from './connection-links.js';
import { ConnectionListService } from './connection-list.service.js';
import { ConnectionMcpController } from './connection-mcp.controller.js';
import { ConnectionToolsController } from './connection-tools.controller.js';
import { ConnectionToolsService } from './connection-tools.service.js';
import { Connection } from './connection.entity.js';
import { ConnectionsController } from './connections.controller.js';
import { ConnectionsService } from './connections.service.js';
import { DiagnosisController } from './diagnosis/diagnosis.controller.js';
import { DiagnosisService } from './diagnosis/diagnosis.service.js';
import { CallRecorder } from './log/call-recorder.js';
import { ConnectionInvocation } from './log/connection-invocation.entity.js';
import { ConnectionLogController } from './log/connection-log.controller.js';
import { ConnectionLogService } from './log/connection-log.service.js';
import { NamespaceMcpController } from './namespace/namespace-mcp.controller.js';
import { NamespaceMembers } from './namespace/namespace-members.js';
import { NamespaceUnions } from './namespace/namespace-unions.js';
import { OlderSubscriptionsController } from './triggers/older-subscriptions.controller.js';
import { TriggersController } from './triggers/triggers.controller.js';
import { TriggersService } from './triggers/triggers.service.js';
import { StatusRecorder } from './status-recorder.js';

/** Connections to MCP servers, their tools, and each as an MCP endpoint. */
@Module({
  imports: [
    TypeOrmModule.forFeature([Connection, ConnectionInvocation]),
    AuthModule,
    NamespacesModule,
    ServersModule,
    CredentialsModule,
    ReleasesModule,
  ],
  controllers: [
    ConnectionToolsController,
    NamespaceMcpController,
    ConnectionMcpController,
    ConnectionLogController,
    DiagnosisController,
    TriggersController,
    OlderSubscriptionsController,
    ConnectionsController,
  ],
  providers: [
    ConnectionsService,
    ConnectionListService,
    ConnectionToolsService,
    ConnectionReader,
    ConnectionCheck,
    ConnectionLinks,
    ConnectionChannels,
    ConnectionValues,
    ConnectionUrls,
    TargetResolver,
    StatusRecorder,
    CallRecorder,
    ConnectionLogService,
    NamespaceMembers,
    NamespaceUnions,
    DiagnosisService,
    TriggersService,
  ],
})
export class ConnectionsModule {}
