import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { LogsCoreModule } from '../logs/logs-core.module.js';
import { ReleasesCoreModule } from '../releases/releases-core.module.js';
import { ServersModule } from '../servers/servers.module.js';
import { ToolSchemasCoreModule } from '../tool-schemas/tool-schemas-core.module.js';
import { RawRuns } from './raw-runs.js';
import { RunController } from './run.controller.js';
import { RunLinks } from './run-links.js';
import { RunMetrics } from './run.metrics.js';
import { RunService } from './run.service.js';
import { Runnables } from './runnables.js';
import { ServerRunsService } from './server-runs.service.js';

/** The run endpoint, and calls of connections to registry servers. */
@Module({
  imports: [ReleasesCoreModule, LogsCoreModule, ToolSchemasCoreModule, ServersModule, AuthModule],
  controllers: [RunController],
  providers: [RunService, RawRuns, ServerRunsService, Runnables, RunLinks, RunMetrics],
  exports: [ServerRunsService, ReleasesCoreModule],
})
export class RunModule {}
