import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { ServersModule } from '../servers/servers.module.js';
import { LogsCoreModule } from './logs-core.module.js';
import { OtlpController } from './otlp/otlp.controller.js';
import { RuntimeLogsController } from './search/runtime-logs.controller.js';
import { RuntimeLogsService } from './search/runtime-logs.service.js';
import { LogStreams } from './stream/log-streams.js';
import { LogStreamsController } from './stream/log-streams.controller.js';

/** Routes of runtime logs: search, streams, and records of servers that run elsewhere. */
@Module({
  imports: [LogsCoreModule, ServersModule, AuthModule],
  controllers: [LogStreamsController, RuntimeLogsController, OtlpController],
  providers: [RuntimeLogsService, LogStreams],
})
export class LogsModule {}
