import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { createPostgresBackend, runMigrations, setDefaultBackendFactory, type ConnectionOptions } from 'bullmq';
import { once } from 'node:events';
import { Pool, type PoolClient } from 'pg';
import { Env } from '../../config/env.js';
import { CONNECT_MS_MAX, openClient, prepareSession, UNLIMITED } from '../database/session.js';
import { withTimeout } from '../limits/with-timeout.js';

/**
 * Postgres connections of a process for queues. Each worker and the relay use one to listen, three in a process with
 * all roles; the others are opened on demand and close after 30 idle seconds.
 */
export const POSTGRES_CONNECTIONS_MAX = 8;

/** Time for the connections to close, since queries on a dead network would delay the exit of the process. */
export const CLOSE_MS_MAX = 5_000;

/** The connection is one pool on Postgres, or an address of Redis. */
@Injectable()
export class QueueConnection implements OnApplicationShutdown {
  private readonly pool: Pool | null;
  private readonly clients = new Set<PoolClient>();
  /** Typed for BullMQ, whose types know only Redis. */
  readonly option: ConnectionOptions;

  constructor(@Inject(Env) { redisUrl, databaseUrl }: Env) {
    this.pool = redisUrl === null ? postgresPool(databaseUrl) : null;
    this.pool?.on('connect', (client) => this.clients.add(client));
    this.pool?.on('remove', (client) => this.clients.delete(client));
    this.option = (this.pool ?? { url: redisUrl, maxRetriesPerRequest: null }) as ConnectionOptions;
  }

  /** Closes the pools, after the queues, workers and the relay, which depend on them, have closed. */
  async onApplicationShutdown(): Promise<void> {
    if (this.pool) await withTimeout(CLOSE_MS_MAX, this.closePool(this.pool), undefined);
  }

  /** Closes a pool, which itself does not wait for listening connections and whose closing connections would have no error listener. */
  private async closePool(pool: Pool): Promise<void> {
    await pool.end();
    while (this.clients.size > 0) await once(pool, 'remove');
  }
}

/**
 * BullMQ listens to the errors of a client only once it has the client. It would keep a client whose connection closed
 * before that, and no worker or relay of the process would receive anything again.
 */
class QueuePool extends Pool {
  override connect(): Promise<PoolClient>;
  override connect(callback: Parameters<Pool['connect']>[0]): void;
  override connect(callback?: Parameters<Pool['connect']>[0]): Promise<PoolClient> | void {
    if (callback) return super.connect(callback);
    return super.connect().then((client) => {
      if ((client as PoolClient & { _queryable: boolean })._queryable) return client;
      client.release(true);
      throw new Error('Connection terminated unexpectedly');
    });
  }
}

function postgresPool(databaseUrl: string | null): Pool {
  const pool = new QueuePool({
    connectionString: databaseUrl ?? '',
    application_name: 'slipway-queue',
    max: POSTGRES_CONNECTIONS_MAX,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    // Without these limits a dead network leaves a worker waiting forever, and its process cannot close.
    connectionTimeoutMillis: CONNECT_MS_MAX,
    query_timeout: 10_000,
    // BullMQ's SQL names its tables and functions without the schema.
    // eslint-disable-next-line @typescript-eslint/no-misused-promises -- pg-pool awaits it; its types lack that.
    onConnect: (client) => prepareSession(client, { search_path: 'bullmq' }),
  });
  // Each queue, worker and relay listens to the pool's errors.
  pool.setMaxListeners(0);
  return pool;
}

/**
 * Chooses Redis with `REDIS_URL`, else Postgres. Call this before any queue is constructed: the choice is global in the process,
 * since BullMQ reads it in the constructors of its queues and workers.
 */
export function chooseQueueBackend(env: Env): void {
  if (env.redisUrl) setDefaultBackendFactory();
  else setDefaultBackendFactory(createPostgresBackend as never);
}

/** Creates the tables of BullMQ (schema `bullmq`), without which a worker fails in a tight loop. */
export async function migrateQueue(databaseUrl: string): Promise<void> {
  const client = await openClient(databaseUrl, 'slipway-queue', UNLIMITED);
  try {
    await runMigrations(client);
  } finally {
    await client.end();
  }
}
