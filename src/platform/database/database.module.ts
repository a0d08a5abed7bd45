import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Env } from '../../config/env.js';
import { DatabaseWatch } from './database-watch.js';
import { DatabaseMetrics } from './database.metrics.js';
import { dataSourceOptions } from './data-source-options.js';

/** The process' connection pool; each module names its own entities. */
@Global()
@Module({
  imports: [
    TypeOrmModule.forRootAsync({
      inject: [Env],
      useFactory: (env: Env) => ({
        ...dataSourceOptions(env.databaseUrl ?? '', env.databasePoolMax),
        autoLoadEntities: true,
        retryAttempts: 0,
      }),
    }),
  ],
  providers: [DatabaseWatch, DatabaseMetrics],
  exports: [DatabaseWatch],
})
export class DatabaseModule {}
