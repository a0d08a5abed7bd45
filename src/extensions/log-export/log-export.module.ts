import { Global, Module } from '@nestjs/common';
import { getDataSourceToken } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { CallEvents, LogsModule, Metrics, resourceOf, roleModule } from '../../extension.js';

/**
 * Sends runtime logs to a collector, if one is set. Global, because Nest stops global modules after all others: lines
 * that LogsModule writes at shutdown are sent as well.
 */
@Global()
@Module({})
export class LogExportModule {
  static readonly forRoles = roleModule((env) => ({
    module: LogExportModule,
    ...(env.sendsLogs && {
      always: {
        imports: [LogsModule.forRoles(env)],
        providers: [
          {
            provide: 'log export',
            inject: [getDataSourceToken(), CallEvents, Metrics],
            useFactory: async (database: DataSource, callEvents: CallEvents, metrics: Metrics) => {
              const { LogExport } = await import('./log-export.js');
              return new LogExport(database, await resourceOf(env.roles), callEvents, metrics);
            },
          },
        ],
      },
    }),
  }));
}
