import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { LogsCoreModule } from '../logs/logs-core.module.js';
import { ReleasesCoreModule } from '../releases/releases-core.module.js';
import { ServersModule } from '../servers/servers.module.js';
import { ToolSchemasCoreModule } from '../tool-schemas/tool-schemas-core.module.js';
import { HostedHttpProxy } from './hosted-http-proxy.js';
import { RunController } from './run.controller.js';
import { ReleaseHandles } from './release-handles.js';
import { RunService } from './run.service.js';
import { ServerResolver } from './server-resolver.js';
import { ServerChannelsService } from './server-channels.service.js';

/** The run endpoint, and calls of connections to registry servers. */
@Module({
  imports: [ReleasesCoreModule, LogsCoreModule, ToolSchemasCoreModule, ServersModule, AuthModule],
  controllers: [RunController],
  providers: [RunService, HostedHttpProxy, ServerChannelsService, ServerResolver, ReleaseHandles],
  exports: [ServerChannelsService, ReleasesCoreModule],
})
export class RunModule {}
