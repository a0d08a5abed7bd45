import { Module, type DynamicModule } from '@nestjs/common';
import { ConfigModule } from './config/config.module.js';
import type { Env } from './config/env.js';
import type { Tuning } from './config/tuning.js';
import { McpServerModule } from './mcp/server/mcp-server.module.js';
import { HostingModule } from './hosting/hosting.module.js';
import { McpModule } from './mcp/mcp.module.js';
import { AuthModule } from './modules/auth/auth.module.js';
import { AuthorizationServerModule } from './modules/authorization-server/authorization-server.module.js';
import { ConsoleModule } from './modules/console/console.module.js';
import { ConnectionsModule } from './modules/connections/connections.module.js';
import { OAuthModule } from './modules/oauth/oauth.module.js';
import { ExtensionApiModule } from './modules/extension-api/extension-api.module.js';
import { GrantsModule } from './modules/grants/grants.module.js';
import { LogsModule } from './modules/logs/logs.module.js';
import { NamespacesModule } from './modules/namespaces/namespaces.module.js';
import { PeopleModule } from './modules/people/people.module.js';
import { ReleasesModule } from './modules/releases/releases.module.js';
import { RunModule } from './modules/run/run.module.js';
import { ServersModule } from './modules/servers/servers.module.js';
import { SkillsModule } from './modules/skills/skills.module.js';
import { ToolSchemasModule } from './modules/tool-schemas/tool-schemas.module.js';
import { AuthorPagesModule } from './extensions/author-pages/author-pages.module.js';
import { CallsPagesModule } from './extensions/calls-pages/calls-pages.module.js';
import { ChangesModule } from './extensions/changes/changes.module.js';
import { ConsolePagesModule } from './extensions/console-pages/console-pages.module.js';
import { EventsModule } from './extensions/events/events.module.js';
import { HooksModule } from './extensions/hooks/hooks.module.js';
import { LogExportModule } from './extensions/log-export/log-export.module.js';
import { MockModelModule } from './extensions/mock-model/mock-model.module.js';
import { OtlpModule } from './extensions/otlp/otlp.module.js';
import { PeoplePagesModule } from './extensions/people-pages/people-pages.module.js';
import { RecordingsModule } from './extensions/recordings/recordings.module.js';
import { SchedulesModule } from './extensions/schedules/schedules.module.js';
import { ServicePageModule } from './extensions/service-page/service-page.module.js';
import { SettingsModule } from './extensions/settings/settings.module.js';
import { SlotsModule } from './extensions/slots/slots.module.js';
import { ToolFormsModule } from './extensions/tool-forms/tool-forms.module.js';
import { TriggersModule } from './extensions/triggers/triggers.module.js';
import { BlobsModule } from './platform/blobs/blobs.module.js';
import { DatabaseModule } from './platform/database/database.module.js';
import { EgressModule } from './platform/egress/egress.module.js';
import type { ExternalModule } from './platform/external-modules/load-external-modules.js';
import { PlatformModule } from './platform/platform.module.js';
import { QueueModule } from './platform/queue/queue.module.js';
import { TelemetryModule } from './platform/telemetry/telemetry.module.js';

const platform = [DatabaseModule, QueueModule, EgressModule, McpModule, BlobsModule, PlatformModule, TelemetryModule];

/** Each module loads what the roles of the process need; a process without `api` still responds to health checks. */
const modules = [
  HostingModule,
  McpServerModule,
  AuthModule,
  NamespacesModule,
  ServersModule,
  OAuthModule,
  LogsModule,
  ToolSchemasModule,
  ReleasesModule,
  RunModule,
  SkillsModule,
  ConnectionsModule,
  GrantsModule,
  AuthorizationServerModule,
  PeopleModule,
  ConsoleModule,
  ExtensionApiModule,
];

/** Modules on the public entry point. The core works without them. */
const extensions = [
  AuthorPagesModule,
  CallsPagesModule,
  ChangesModule,
  ConsolePagesModule,
  EventsModule,
  HooksModule,
  LogExportModule,
  MockModelModule,
  OtlpModule,
  PeoplePagesModule,
  RecordingsModule,
  SchedulesModule,
  ServicePageModule,
  SlotsModule,
  ToolFormsModule,
  TriggersModule,
];

@Module({})
export class AppModule {
  /** @param external modules from outside the tree (`SLIPWAY_MODULES`) */
  static forRoot(env: Env, tuning: Tuning, external: ExternalModule[]): DynamicModule {
    const extending = external.filter(({ roles = ['api'] }) => roles.some((role) => env.roles.includes(role)));
    return {
      module: AppModule,
      imports: [
        ConfigModule.forRoot(env, tuning),
        SettingsModule.forModules(env, external),
        ...platform,
        ...[...modules, ...extensions].map((module) => module.forRoles(env)),
        ...extending.map((extension) => extension.module(env)),
      ],
    };
  }
}
