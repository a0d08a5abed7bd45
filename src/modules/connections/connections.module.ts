import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { roleModule } from '../../config/role-module.js';
import { AuthModule } from '../auth/auth.module.js';
import { LogsModule } from '../logs/logs.module.js';
import { NamespacesModule } from '../namespaces/namespaces.module.js';
import { NamespaceDeletion } from '../namespaces/namespaces.service.js';
import { credentialOwners } from '../oauth/credentials.types.js';
import { pageOwners } from '../oauth/setup/setup.types.js';
import { ConnectionCreation } from './connection-creation.js';
import { ConnectionDeletion } from './connection-deletion.js';
import { ConnectionMcpController } from './connection-mcp.controller.js';
import { ConnectionsController } from './connections.controller.js';
import { ConnectionsMetrics } from './connections.metrics.js';
import { ConnectionsService } from './connections.service.js';
import { ConnectionCoreModule } from './core/connection-core.module.js';
import { DiagnosisController } from './diagnosis/diagnosis.controller.js';
import { DiagnosisService } from './diagnosis/diagnosis.service.js';
import { ConnectionLogController } from './log/connection-log.controller.js';
import { ConnectionLogService } from './log/connection-log.service.js';
import { LogRecorder } from './log/log-recorder.js';
import { McpTrial } from './mcp-trial.service.js';
import { MockModule } from './mock/mock.module.js';
import { NamespaceMcpController } from './namespace/namespace-mcp.controller.js';
import { NamespaceMembers, NamespaceServers } from './namespace/namespace-servers.js';
import { ProbeController } from './probe/probe.controller.js';
import { Probe } from './probe/probe.entity.js';
import { ProbeService } from './probe/probe.service.js';
import { ProbesRepository } from './probe/probes.repository.js';
import { ConnectionCheck } from './recheck/connection-check.js';
import { ConnectionRechecker, ConnectionRefresher } from './recheck/connection-rechecker.js';
import { RechecksRepository } from './recheck/recheck.repository.js';
import { ConnectionSetupService } from './setup/connection-setup.service.js';
import { SourceModule } from './source/source.module.js';
import { ConnectionToolsController } from './tools/connection-tools.controller.js';
import { ConnectionToolsService } from './tools/connection-tools.service.js';
import { UplinkModule } from './uplink/uplink.module.js';

declare global {
  interface SlipwayScopes {
    connections: 'read' | 'write' | 'execute';
  }
}

@Module({})
export class ConnectionsModule {
  static readonly forRoles = roleModule((env) => ({
    module: ConnectionsModule,
    always: {
      imports: [LogsModule, NamespacesModule, ConnectionCoreModule, MockModule, SourceModule, UplinkModule].map(
        (module) => module.forRoles(env),
      ),
    },
    api: {
      imports: [AuthModule.forRoles(env), TypeOrmModule.forFeature([Probe])],
      // Routes match in this order, so `connect/{namespace}/{connectionId}` is last.
      controllers: [
        ConnectionToolsController,
        NamespaceMcpController,
        ConnectionLogController,
        DiagnosisController,
        ProbeController,
        ConnectionMcpController,
        ConnectionsController,
      ],
      providers: [
        ConnectionsService,
        ConnectionCreation,
        ConnectionDeletion,
        { provide: NamespaceDeletion, useExisting: ConnectionDeletion },
        ConnectionsMetrics,
        ConnectionToolsService,
        ConnectionLogService,
        LogRecorder,
        McpTrial,
        ConnectionSetupService,
        { provide: credentialOwners.connection, useExisting: ConnectionSetupService },
        { provide: pageOwners.connections, useExisting: ConnectionSetupService },
        ConnectionCheck,
        ConnectionRechecker,
        ConnectionRefresher,
        RechecksRepository,
        DiagnosisService,
        NamespaceMembers,
        NamespaceServers,
        ProbeService,
        ProbesRepository,
      ],
      exports: [
        ConnectionsService,
        ConnectionToolsService,
        ConnectionLogService,
        DiagnosisService,
        McpTrial,
        ProbeService,
      ],
    },
  }));
}
