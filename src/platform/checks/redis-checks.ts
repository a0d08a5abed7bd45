/** Requirements for Redis. Read by `INFO`, since managed ones reject `CONFIG`. */
import { Redis } from 'ioredis';
import { faultsOf, type Check, type Fault } from './check.js';

export interface RedisFacts {
  info: Partial<Record<string, string>>;
  database: string;
  hasDatabase: boolean;
}

const CONNECT_MS_MAX = 5_000;

const connectCheck: Check<{ reason: string }> = {
  asks: 'an address',
  find: (facts) => ({ ...facts }),
  fault: 'Redis cannot be used ({reason})',
  remedy: 'check REDIS_URL',
};

export const redisFactChecks: Check<RedisFacts>[] = [
  {
    asks: 'the version of Redis',
    find: ({ info: { redis_version: version = '' } }) => {
      const [major, minor] = version.split('.').map(Number);
      return major < 6 || (major === 6 && minor < 2) ? { version } : null;
    },
    fault: 'Redis {version} is too old',
    remedy: 'use 6.2 or newer',
  },
  {
    asks: 'no cluster',
    find: ({ info }) => (info.cluster_enabled === '1' || info.redis_mode === 'cluster' ? {} : null),
    fault: 'Redis is a cluster, which is not supported',
    remedy: 'unset REDIS_URL, so that the queue is in Postgres, or use one primary',
  },
  {
    asks: 'a primary',
    find: ({ info: { role = 'master' } }) => (role === 'master' ? null : { role }),
    fault: 'Redis is not a primary, its role is "{role}"',
    remedy: 'name the primary in REDIS_URL',
  },
  {
    asks: 'the number of the database',
    find: ({ database, hasDatabase }) => (hasDatabase ? null : { database }),
    fault: 'Redis has no database {database}',
    remedy: 'end REDIS_URL with the number of an existing database (`/0`), or raise `databases` in redis.conf',
  },
  {
    asks: 'no eviction',
    isFatal: false,
    find: ({ info: { maxmemory_policy: policy = 'noeviction' } }) => (policy === 'noeviction' ? null : { policy }),
    fault: 'Redis can evict waiting jobs: its `maxmemory-policy` is {policy}',
    remedy: '`redis-cli CONFIG SET maxmemory-policy noeviction`, or set it where the Redis is managed',
  },
];

export const redisChecks: Check<never>[] = [connectCheck, ...redisFactChecks];

/** Examines Redis, and reconnects if it becomes unavailable later. @returns the version, and the problems with it */
export async function examineRedis(redisUrl: string): Promise<{ found: string; faults: Fault[] }> {
  const url = new URL(redisUrl);
  const database = url.pathname.slice(1) || '0';
  // ioredis uses database 0 if the number does not exist.
  url.pathname = '';
  const redis = new Redis(url.href, {
    lazyConnect: true,
    connectTimeout: CONNECT_MS_MAX,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  let reason = '';
  redis.on('error', ({ message }: Error) => (reason = message));
  try {
    await redis.connect();
    const lines = (await redis.info()).split('\r\n').map((line) => line.split(':', 2));
    const info = Object.fromEntries(lines.filter(({ length }) => length === 2)) as Record<string, string>;
    const hasDatabase = await redis.call('SELECT', database).then(
      () => true,
      (error: Error) => info.cluster_enabled === '1' || !/index|range|invalid/i.test(error.message),
    );
    return { found: info.redis_version ?? '', faults: faultsOf(redisFactChecks, { info, database, hasDatabase }) };
  } catch (error) {
    return { found: '', faults: faultsOf([connectCheck], { reason: reason || (error as Error).message }) };
  } finally {
    redis.disconnect();
  }
}
