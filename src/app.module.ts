import { Module, type DynamicModule } from '@nestjs/common';
import { ConfigModule } from './config/config.module.js';
import type { Env } from './config/env.js';
import { McpServerModule } from './mcp/server/mcp-server.module.js';
import { HostingModule } from './hosting/hosting.module.js';
import { McpModule } from './mcp/mcp.module.js';
import { AuthModule } from './modules/auth/auth.module.js';
import { AuthWorkerModule } from './modules/auth/auth.worker.module.js';
import { ConnectionsHostModule } from './modules/connections/connections.host.module.js';
import { ConnectionsModule } from './modules/connections/connections.module.js';
import { CredentialsModule } from './modules/oauth/credentials.module.js';
import { LogsWorkerModule } from './modules/logs/logs.worker.module.js';
import { LogsModule } from './modules/logs/logs.module.js';
import { NamespacesModule } from './modules/namespaces/namespaces.module.js';
import { ReleasesHostModule } from './modules/releases/releases.host.module.js';
import { ReleasesModule } from './modules/releases/releases.module.js';
import { RunModule } from './modules/run/run.module.js';
import { ReleasesWorkerModule } from './modules/releases/releases.worker.module.js';
import { ServersModule } from './modules/servers/servers.module.js';
import { SkillsModule } from './modules/skills/skills.module.js';
import { ToolSchemasModule } from './modules/tool-schemas/tool-schemas.module.js';
import { BlobsModule } from './platform/blobs/blobs.module.js';
import { DatabaseModule } from './platform/database/database.module.js';
import { EgressModule } from './platform/egress/egress.module.js';
import type { ExternalModule } from './platform/external-modules/load-external-modules.js';
import { HttpModule } from './platform/http/http.module.js';
import { ProcessesModule } from './platform/processes/processes.module.js';
import { InternalHttpModule } from './platform/internal-http/internal-http.module.js';
import { ScheduleModule } from './platform/schedule/schedule.module.js';
import { QueueModule } from './platform/queue/queue.module.js';
import { TelemetryModule } from './platform/telemetry/telemetry.module.js';
import { VaultModule } from './platform/vault/vault.module.js';

const platform = [
  DatabaseModule,
  QueueModule,
  ScheduleModule,
  VaultModule,
  EgressModule,
  McpModule,
  BlobsModule,
  HttpModule,
  InternalHttpModule,
  ProcessesModule,
  TelemetryModule,
];

/** Modules of `api` processes. A process without that role still answers health checks. */
const api = [
  McpServerModule,
  AuthModule,
  NamespacesModule,
  ServersModule,
  CredentialsModule,
  LogsModule,
  ToolSchemasModule,
  ReleasesModule,
  RunModule,
  ConnectionsModule,
  SkillsModule,
];

/** Modules of `worker` processes. */
const worker = [ReleasesWorkerModule, AuthWorkerModule, LogsWorkerModule];

/** Modules of `host` processes, which run hosted code. */
const host = [ReleasesHostModule, ConnectionsHostModule];

/** One line per module; the roles of the process say which are loaded. */
@Module({})
export class AppModule {
  /** @param external modules from outside the tree (`SLIPWAY_MODULES`) */
  static forRoot(env: Env, external: ExternalModule[] = []): DynamicModule {
    const extending = external.filter(({ roles = ['api'] }) => roles.some((role) => env.roles.includes(role)));
    return {
      module: AppModule,
      imports: [
        ConfigModule.forRoot(env),
        HostingModule.forRoot(env),
        ...platform,
        ...(env.roles.includes('api') ? api : []),
        ...(env.roles.includes('worker') ? worker : []),
        ...(env.roles.includes('host') ? host : []),
        ...extending.map((extension) => extension.module(env)),
      ],
    };
  }
}
