import { Module } from '@nestjs/common';
import { roleModule } from '../../config/role-module.js';
import { AuthModule } from '../auth/auth.module.js';
import { LogsModule } from '../logs/logs.module.js';
import { ReleasesModule } from '../releases/releases.module.js';
import { serverHolders } from '../servers/server.types.js';
import { ServersModule } from '../servers/servers.module.js';
import { ToolSchemasModule } from '../tool-schemas/tool-schemas.module.js';
import { HeldServers } from './held-servers.js';
import { HostedHttpProxy } from './hosted-http-proxy.js';
import { InvocationRecorder } from './invocation-record.js';
import { ReleaseHandles } from './release-handles.js';
import { RunController } from './run.controller.js';
import { RunService } from './run.service.js';
import { ServerChannelsService } from './server-channels.service.js';
import { ServerResolver } from './server-resolver.js';

@Module({})
export class RunModule {
  static readonly forRoles = roleModule((env) => ({
    module: RunModule,
    api: {
      imports: [ReleasesModule, LogsModule, ToolSchemasModule, ServersModule, AuthModule].map((module) =>
        module.forRoles(env),
      ),
      controllers: [RunController],
      providers: [
        RunService,
        { provide: serverHolders.runs, useExisting: RunService },
        HostedHttpProxy,
        ServerChannelsService,
        ServerResolver,
        ReleaseHandles,
        HeldServers,
        InvocationRecorder,
      ],
      exports: [RunService, ServerChannelsService, ReleasesModule],
    },
  }));
}
