import { createPostgresBackend, runMigrations, setDefaultBackendFactory, type ConnectionOptions } from 'bullmq';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { SettingsError, type Env } from '../../config/env.js';

/** Postgres connections one queue, worker or relay may hold: one listens, the others work. */
const POSTGRES_CONNECTIONS_MAX = 4;

/** The connection option of BullMQ. Its types name Redis only; the Postgres backend reads the same option. */
export function queueConnection(env: Env): ConnectionOptions {
  if (env.redisUrl) return { url: env.redisUrl, maxRetriesPerRequest: null };
  // Without these bounds a dead network leaves a worker waiting for ever, and its process cannot close.
  const connection = {
    connectionString: env.databaseUrl,
    max: POSTGRES_CONNECTIONS_MAX,
    connectionTimeoutMillis: 5_000,
    query_timeout: 10_000,
  };
  return connection;
}

/**
 * Chooses where jobs live, before any queue is constructed: Redis with `REDIS_URL`, else Postgres. The choice is the
 * process', since BullMQ reads it in the constructors of its queues and workers.
 */
export function chooseQueueBackend(env: Env): void {
  if (env.redisUrl) setDefaultBackendFactory();
  else setDefaultBackendFactory(createPostgresBackend as never);
}

const REDIS_CONNECT_MS = 5_000;

/**
 * Fails at start when `REDIS_URL` leads nowhere; a Redis that goes away later is waited for.
 *
 * @throws SettingsError
 */
export async function requireRedis({ redisUrl }: Env): Promise<void> {
  if (redisUrl === null) return;
  const redis = new Redis(redisUrl, {
    lazyConnect: true,
    connectTimeout: REDIS_CONNECT_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  let reason = '';
  redis.on('error', ({ message }: Error) => (reason = message));
  try {
    await redis.connect();
    await redis.ping();
  } catch (error) {
    throw new SettingsError(`Redis cannot be used (${reason || (error as Error).message}): check REDIS_URL.`);
  } finally {
    redis.disconnect();
  }
}

/** Creates BullMQ's tables (schema `bullmq`). Without them a worker fails in a tight loop. */
export async function migrateQueue(databaseUrl: string): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await runMigrations(client);
  } finally {
    await client.end();
  }
}
