import { Module, type OnModuleInit } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuthModule } from '../auth/auth.module.js';
import { NamespacesModule } from '../namespaces/namespaces.module.js';
import { CredentialsService } from '../oauth/credentials.service.js';
import { NamespacesService } from '../namespaces/namespaces.service.js';
import { CredentialsModule } from '../oauth/credentials.module.js';
import { ReleasesModule } from '../releases/releases.module.js';
import { RunModule } from '../run/run.module.js';
import { ToolSchemasCoreModule } from '../tool-schemas/tool-schemas-core.module.js';
import { ServersModule } from '../servers/servers.module.js';
import { ConnectionAdapters } from './core/connection-adapters.js';
import { ConnectionChannels } from './core/connection-channels.js';
import { ConnectionBearer } from './core/connection-bearer.js';
import { ConnectionCheck } from './recheck/connection-check.js';
import { ConnectionRechecker } from './recheck/connection-rechecker.js';
import { ConnectionRefresher } from './recheck/connection-refresher.js';
import { ConnectionSetupController } from './setup/connection-setup.controller.js';
import { ConnectionAuthorizer } from './setup/connection-authorizer.js';
import { ConnectionSetupService } from './setup/connection-setup.service.js';
import { ConnectionSweeper } from './recheck/connection-sweeper.js';
import { StatusWriter } from './core/status-writer.js';
import { ConnectionReader } from './core/connection-reader.js';
import { ConnectionUrls } from './core/connection-urls.js';
import { ConnectionValues } from './core/connection-values.js';
import { TargetResolver } from './core/target-resolver.js';
import { ConnectionHandles } from './core/connection-handles.js';
import { ConnectionListService } from './connection-list.service.js';
import { ConnectionMcpController } from './connection-mcp.controller.js';
import { ConnectionToolsController } from './tools/connection-tools.controller.js';
import { ConnectionToolsService } from './tools/connection-tools.service.js';
import { ConnectionsMetrics } from './core/connections.metrics.js';
import { ConnectionsController } from './connections.controller.js';
import { ConnectionsService } from './connections.service.js';
import { DiagnosisController } from './diagnosis/diagnosis.controller.js';
import { DiagnosisService } from './diagnosis/diagnosis.service.js';
import { ConnectionLogCoreModule } from './log/connection-log-core.module.js';
import { ConnectionLogController } from './log/connection-log.controller.js';
import { ConnectionLogService } from './log/connection-log.service.js';
import { ConnectionMock } from './mock/connection-mock.entity.js';
import { MockCall } from './mock/mock-call.entity.js';
import { MockChannels } from './mock/mock-channels.js';
import { CallRecorder } from './mock/call-recorder.js';
import { MockRepository } from './mock/mock.repository.js';
import { MockReply } from './mock/mock-reply.entity.js';
import { RecordedCallRow } from './mock/recorded-call.entity.js';
import { RecordingController } from './mock/recording.controller.js';
import { RecordingsRepository } from './mock/recordings.repository.js';
import { RecordingsService } from './mock/recordings.service.js';
import { MockModel } from './mock/mock-model.js';
import { SimulatorUsage } from './mock/simulator-usage.entity.js';
import { MockCreation } from './mock/mock-creation.js';
import { NamespaceMcpController } from './namespace/namespace-mcp.controller.js';
import { NamespaceMembers } from './namespace/namespace-members.js';
import { NamespaceServers } from './namespace/namespace-servers.js';
import { OlderSubscriptionsController } from './triggers/older-subscriptions.controller.js';
import { TriggersController } from './triggers/triggers.controller.js';
import { TriggersService } from './triggers/triggers.service.js';
import { SourceCompilerModule } from './source/source-compiler.module.js';
import { StatusRecorder } from './core/status-recorder.js';
import { InternalUplinkController } from './uplink/internal-uplink.controller.js';
import { UplinkChannels } from './uplink/uplink-channels.js';
import { UplinkGateway } from './uplink/uplink.gateway.js';
import { UplinkTunnel } from './uplink/uplink-tunnel.entity.js';
import { TunnelLimits } from './uplink/tunnel-limits.js';
import { UplinkTunnels } from './uplink/uplink-tunnels.js';
import { UplinkTunnelsRepository } from './uplink/uplink-tunnels.repository.js';
import { UplinkController } from './uplink/uplink.controller.js';
import { UplinksService } from './uplink/uplinks.service.js';

declare global {
  interface SlipwayScopes {
    connections: 'read' | 'write' | 'execute';
  }
}

/** Connections to MCP servers, their tools, and each as an MCP endpoint. */
@Module({
  imports: [
    TypeOrmModule.forFeature([ConnectionMock, MockCall, MockReply, RecordedCallRow, SimulatorUsage, UplinkTunnel]),
    ConnectionLogCoreModule,
    SourceCompilerModule,
    AuthModule,
    NamespacesModule,
    ServersModule,
    CredentialsModule,
    ReleasesModule,
    RunModule,
    ToolSchemasCoreModule,
  ],
  controllers: [
    ConnectionToolsController,
    NamespaceMcpController,
    ConnectionMcpController,
    ConnectionLogController,
    DiagnosisController,
    TriggersController,
    OlderSubscriptionsController,
    RecordingController,
    UplinkController,
    InternalUplinkController,
    ConnectionSetupController,
    ConnectionsController,
  ],
  providers: [
    ConnectionsService,
    ConnectionListService,
    ConnectionToolsService,
    ConnectionReader,
    ConnectionCheck,
    ConnectionHandles,
    ConnectionChannels,
    ConnectionValues,
    ConnectionUrls,
    TargetResolver,
    StatusRecorder,
    StatusWriter,
    ConnectionBearer,
    ConnectionAdapters,
    ConnectionAuthorizer,
    ConnectionSetupService,
    ConnectionRefresher,
    ConnectionRechecker,
    ConnectionSweeper,
    ConnectionLogService,
    NamespaceMembers,
    NamespaceServers,
    DiagnosisService,
    TriggersService,
    UplinkChannels,
    UplinkGateway,
    UplinkTunnels,
    UplinkTunnelsRepository,
    TunnelLimits,
    UplinksService,
    MockChannels,
    MockCreation,
    MockModel,
    MockRepository,
    RecordingsRepository,
    CallRecorder,
    RecordingsService,
    ConnectionsMetrics,
  ],
})
export class ConnectionsModule implements OnModuleInit {
  constructor(
    private readonly credentials: CredentialsService,
    private readonly namespaces: NamespacesService,
    private readonly setup: ConnectionSetupService,
    private readonly connections: ConnectionsService,
  ) {}

  /** Whoever authorizes need not try again by hand; and what was granted to connections ends with their namespace. */
  onModuleInit(): void {
    this.credentials.onAuthorized('connection', (id) => this.setup.authorized(id));
    this.namespaces.onDeleting((namespace) => this.connections.prepareRevocation(namespace));
  }
}
