import { Global, Injectable, Module } from '@nestjs/common';
import { InjectDataSource, TypeOrmModule } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { Env } from '../../config/env.js';
import { Metrics } from '../telemetry/metrics.js';
import { dataSourceOptions, poolOf } from './data-source-options.js';
import { DatabaseWatch } from './database-watch.js';
import { bufferStats, type BufferStats } from './write-behind.js';

@Injectable()
export class DatabaseMetrics {
  constructor(metrics: Metrics, databaseWatch: DatabaseWatch, @InjectDataSource() database: DataSource) {
    metrics.gauge('slipway_database_connections', 'Connections of the pool for queries, by state.', () => {
      const { totalCount, idleCount } = poolOf(database);
      return [
        { labels: { state: 'busy' }, value: totalCount - idleCount },
        { labels: { state: 'idle' }, value: idleCount },
      ];
    });
    metrics.gauge('slipway_database_connections_max', 'Connections the pool may hold (DATABASE_POOL_MAX).', () =>
      Number(database.options.poolSize),
    );
    metrics.gauge(
      'slipway_database_queries_waiting',
      'Queries that wait for a connection.',
      () => poolOf(database).waitingCount,
    );
    metrics.gauge(
      'slipway_clock_offset_seconds',
      "How far the clock of this process is ahead of the database's; calls between processes tolerate 30 s in all.",
      () => databaseWatch.clockOffsetMs / 1_000,
      'first',
    );
    const buffers = (of: (stats: BufferStats) => number) =>
      bufferStats().map((stats) => ({ labels: { buffer: stats.name }, value: of(stats) }));
    metrics.gauge('slipway_buffer_rows', 'Rows that wait to be written, by buffer.', () =>
      buffers(({ waiting }) => waiting),
    );
    metrics.counter(
      'slipway_buffer_rows_dropped_total',
      'Rows that found no room in their buffer, or were not written before the process exited.',
      () => buffers(({ dropped }) => dropped),
    );
  }
}

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
