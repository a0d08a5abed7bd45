import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { ServersModule } from '../servers/servers.module.js';
import { InvocationSearch } from './search/invocation-search.js';
import { LogRetention } from './store/log-retention.js';
import { LogStreams } from './stream/log-streams.js';
import { LogStreamsMetrics } from './stream/log-streams.metrics.js';
import { LogStreamsController } from './stream/log-streams.controller.js';
import { LogsCoreModule } from './logs-core.module.js';
import { OtlpController } from './otlp/otlp.controller.js';
import { RuntimeLogsController } from './search/runtime-logs.controller.js';
import { RuntimeLogsService } from './search/runtime-logs.service.js';
import { SearchIndexes } from './store/search-indexes.js';

/** Reading and following runtime logs, and taking records from elsewhere. */
@Module({
  imports: [LogsCoreModule, ServersModule, AuthModule],
  controllers: [LogStreamsController, RuntimeLogsController, OtlpController],
  providers: [InvocationSearch, LogRetention, SearchIndexes, RuntimeLogsService, LogStreams, LogStreamsMetrics],
})
export class LogsModule {}
