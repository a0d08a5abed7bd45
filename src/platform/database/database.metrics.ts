import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { Pool } from 'pg';
import { DataSource } from 'typeorm';
import { Metrics } from '../telemetry/metrics.js';
import { bufferStats, type BufferStats } from './write-behind.js';

/** Gauges of the database connections and of the write-behind buffers. */
@Injectable()
export class DatabaseMetrics {
  constructor(metrics: Metrics, @InjectDataSource() { driver, options }: DataSource) {
    const pool = () => (driver as unknown as { master: Pool }).master;
    metrics.gauge('slipway_database_connections', 'Connections of the pool for queries, by what they do.', () => {
      const { totalCount, idleCount } = pool();
      return [
        { labels: { state: 'busy' }, value: totalCount - idleCount },
        { labels: { state: 'idle' }, value: idleCount },
      ];
    });
    metrics.gauge('slipway_database_connections_max', 'Connections the pool may hold (DATABASE_POOL_MAX).', () =>
      Number(options.poolSize),
    );
    metrics.gauge('slipway_database_queries_waiting', 'Queries that wait for a connection.', () => pool().waitingCount);
    const buffers = (of: (stats: BufferStats) => number) =>
      bufferStats().map((stats) => ({ labels: { buffer: stats.name }, value: of(stats) }));
    metrics.gauge('slipway_buffer_rows', 'Rows that wait to be written, by buffer.', () =>
      buffers(({ waiting }) => waiting),
    );
    metrics.counter('slipway_buffer_rows_dropped_total', 'Rows that found no room in their buffer.', () =>
      buffers(({ dropped }) => dropped),
    );
  }
}
