import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { ServersModule } from '../servers/servers.module.js';
import { InvocationSearch } from './invocation-search.js';
import { KeptDays } from './kept-days.js';
import { LogStreams } from './log-streams.js';
import { LogStreamsMetrics } from './log-streams.metrics.js';
import { LogStreamsController } from './log-streams.controller.js';
import { LogsCoreModule } from './logs-core.module.js';
import { OtlpController } from './otlp/otlp.controller.js';
import { RuntimeLogsController } from './runtime-logs.controller.js';
import { RuntimeLogsService } from './runtime-logs.service.js';
import { SearchIndexes } from './search-indexes.js';

/** Reading and following runtime logs, and taking records from elsewhere. */
@Module({
  imports: [LogsCoreModule, ServersModule, AuthModule],
  controllers: [LogStreamsController, RuntimeLogsController, OtlpController],
  providers: [InvocationSearch, KeptDays, SearchIndexes, RuntimeLogsService, LogStreams, LogStreamsMetrics],
})
export class LogsModule {}
