import { afterEach, beforeEach, describe, expect, jest } from '@jest/globals';
import type { ServerResponse } from 'node:http';
import { availableParallelism } from 'node:os';
import { loadEnv } from '../src/config/env.js';
import { Tuning } from '../src/config/tuning.js';
import { useWorkers } from '../src/config/workers.js';
import { internalRoutes } from '../src/hosting/egress/internal-routes.js';
import { StreamLimiter } from '../src/mcp/server/sessions/stream-limiter.js';
import { RequestLimits } from '../src/modules/auth/request-limits.service.js';
import { TunnelLimits } from '../src/modules/connections/uplink/tunnel-limits.js';
import { ConnectionCallsService } from '../src/modules/logs/connection-calls.service.js';
import { ownPorts } from '../src/platform/egress/egress.module.js';
import { RevocationRegistry } from '../src/platform/http/revocation-registry.js';
import { KeyedLimiter } from '../src/platform/limits/keyed-limiter.js';
import { RateCounter } from '../src/platform/limits/rate-counter.js';
import { Metrics } from '../src/platform/telemetry/metrics.js';
import { verifies } from './support/verifies.js';

const MB = 1024 * 1024;

/** How often `enter` succeeds before it fails. */
function admitted(enter: () => unknown): number {
  for (let count = 0; ; count += 1) {
    try {
      if (enter() === null) return count;
    } catch {
      return count;
    }
  }
}

/** The limits of one process as its parts apply them, of a container of 2 GB. */
function limitsOf(workers: number, redis: boolean) {
  useWorkers(workers);
  const env = loadEnv({
    WORKERS: String(workers),
    ...{ DATABASE_POOL_MAX: '12', AUTH_FAILURES_MAX: '30', HTTP_CONNECTIONS_PER_ADDRESS_MAX: '40' },
    ...{ ACCOUNT_LIMITS: 'callsAtOnce=10,requestsPerMinute=20,keyRequestsPerMinute=16' },
    // Nothing listens there: what is counted is not shared in this test.
    ...(redis && { REDIS_URL: 'redis://127.0.0.1:1' }),
  });
  const tuning = new Tuning();
  const held = new RevocationRegistry();
  const counter = new RateCounter(env);
  const requests = new RequestLimits(env, tuning, counter, held);
  const caller = { accountId: 'a', keyId: 'k', isOperator: false, scopes: null, memberships: new Map() };
  const response = { once: () => undefined } as unknown as ServerResponse;
  const tunnels = new TunnelLimits(new Metrics(env));
  const sockets = new KeyedLimiter(env.httpConnectionsPerAddressMax, Infinity);
  const streams = new StreamLimiter(held);
  const owner = { account: 'a', principal: 'k' };
  const rows: unknown[] = [];
  const log = new ConnectionCallsService(
    { recordCall: (row: unknown) => void rows.push(row) } as never,
    {} as never,
    { observeCall: () => undefined } as never,
    new Metrics(env),
  );
  for (let i = 0; i < 1_100; i += 1) {
    log.record({ connectionId: 'c', method: 'tools/call', outcome: 'ok', lines: [], exceptions: [] } as never);
  }
  void counter.onApplicationShutdown();
  return {
    databaseConnections: env.databasePoolMax,
    programs: env.runtimeLiveMax,
    bodies: tuning.httpBodiesBytes / MB,
    unread: tuning.httpUnreadBytes / MB,
    forms: tuning.httpFormsBytes / MB,
    connections: tuning.httpConnectionsMax,
    connectionsOfAddress: admitted(() => sockets.acquire('1.2.3.4')),
    callsAtOnce: admitted(() => requests.beginCall(caller, response)),
    streamsOfAccount: admitted(() => streams.openStream(owner, 1, () => undefined)),
    tunnelsOfAccount: admitted(() => tunnels.acquire('a')),
    logRowsOfMinute: rows.length,
    requestsOfKey: admitted(() => requests.admit({} as never, caller, null)),
    wrongKeys: env.authFailuresMax,
  };
}

describe('the limits of one of several workers', () => {
  beforeEach(() => {
    jest.useFakeTimers({ now: 0 });
    jest.spyOn(process, 'constrainedMemory').mockReturnValue(2_048 * MB);
  });
  afterEach(() => {
    useWorkers(1);
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  /** What the processes of a start count together, with Redis or by their supervisor; and programs, which the first one runs. */
  const whole = { programs: 32, requestsOfKey: 16, wrongKeys: 30 };
  const alone = {
    ...whole,
    ...{ databaseConnections: 12, bodies: 256, unread: 256, forms: 4, connections: 20_000, connectionsOfAddress: 40 },
    ...{ callsAtOnce: 10, streamsOfAccount: 128, tunnelsOfAccount: 5_000, logRowsOfMinute: 1_000 },
  };
  const half = {
    ...whole,
    ...{ databaseConnections: 6, bodies: 128, unread: 128, forms: 2, connections: 10_000, connectionsOfAddress: 20 },
    ...{ callsAtOnce: 5, streamsOfAccount: 64, tunnelsOfAccount: 2_500, logRowsOfMinute: 500 },
  };

  verifies('workers:limits', 'are its share, except for what is counted together, without and with Redis', () => {
    for (const redis of [false, true]) {
      expect(limitsOf(1, redis)).toEqual(alone);
      expect(limitsOf(2, redis)).toEqual(half);
    }
  });

  verifies('workers:limits', 'are never 0, and leave the work that waits as it is', () => {
    useWorkers(8);
    const env = loadEnv({ WORKERS: '8' });
    expect(env.databasePoolMax).toBe(4);
    expect(new Tuning().httpBodiesBytes).toBe(32 * MB);
    const one = new KeyedLimiter(3, Infinity);
    expect(admitted(() => one.acquire('a'))).toBe(1);
    const waiting = KeyedLimiter.fair(8, 1_000);
    expect(admitted(() => waiting.acquire('a'))).toBe(4);
  });
});

describe('WORKERS', () => {
  verifies(
    'workers:setting',
    'is a number, or the processors of the machine, of a process that serves requests',
    () => {
      const workers = (WORKERS: string, ROLES = 'api') => loadEnv({ WORKERS, ROLES }).workers;
      expect([workers('1'), workers('3'), workers('auto')]).toEqual([1, 3, availableParallelism()]);
      expect(() => workers('0')).toThrow('WORKERS must be a whole number from 1 to 64');
      expect(() => workers('2', 'worker,host')).toThrow('WORKERS must be 1 without the role `api`');
    },
  );

  verifies('workers:internal-ports', 'gives each process an address of its own, and closes those of all', () => {
    const worker = { number: 1, port: 3_000, internalPort: 7_001, internalPorts: [7_001, 7_002] };
    const urlWith = (settings: NodeJS.ProcessEnv) => loadEnv(settings).copyWith({ worker }).internalUrl;
    expect([
      urlWith({}),
      urlWith({ HOST: '0.0.0.0' }),
      urlWith({ HOST: '0.0.0.0', ADVERTISE_URL: 'http://10.0.0.11:3000' }),
      urlWith({ HOST: '::1' }),
    ]).toEqual(['http://127.0.0.1:7001', 'http://127.0.0.1:7001', 'http://10.0.0.11:7001', 'http://[::1]:7001']);
    const env = loadEnv({ HOSTING_EGRESS_ALLOW: 'loopback' }).copyWith({ worker });
    expect([...ownPorts(env).keys()]).toEqual([7_001, 7_002]);
    expect([...(internalRoutes(env)?.closedPorts.keys() ?? [])]).toEqual([3_000, 7_001, 7_002]);
  });
});
