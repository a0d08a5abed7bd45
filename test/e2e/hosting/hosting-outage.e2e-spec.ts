import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { HostDirectory } from '../../../src/hosting/cluster/host-directory.js';
import { HostingRouter } from '../../../src/hosting/cluster/hosting-router.js';
import { ProcessRegistry } from '../../../src/platform/processes/process-registry.js';
import { cloneDatabase, startApp, type TestApp } from '../../support/app.js';
import { startDatabaseRelay, type DatabaseRelay } from '../../support/database/database-relay.js';
import { ask, programRef, whoRuns } from '../../support/hosting/hosting-calls.js';
import { PlacedPrograms } from '../../support/hosting/placed-programs.mjs';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

let database: Awaited<ReturnType<typeof cloneDatabase>>;
let relay: DatabaseRelay;
let host: TestApp;
/** A process without the role `host`. */
let front: TestApp;
let programs: PlacedPrograms;

beforeAll(async () => {
  database = await cloneDatabase();
  relay = await startDatabaseRelay(database.url);
  host = await startApp({ DATABASE_URL: relay.url }, { runtimeLeaseMs: 3_000 });
  front = await host.sibling({ ROLES: 'api' });
  programs = await new PlacedPrograms({ name: 'one', dataDir: host.env.dataDir }).start();
  await host.get(HostingRouter).runWith(programs);
  await until(async () => (await front.get(HostDirectory).live()).length === 1, 'the host is known');
});
afterAll(async () => {
  await relay.open();
  for (const each of [front, host]) await each.close();
  await programs.stop();
  await relay.close();
  await database.drop();
});

describe('while the database is unavailable for longer than a lease', () => {
  verifies(
    'hosting:hosts:outage',
    'requests to stateless programs succeed until the lease is renewed; others are rejected with the time to wait',
    async () => {
      const [free, kept] = [programRef(), programRef({ isStateful: true })];
      const isAnswered = async () => expect((await whoRuns(front, free)).name).toBe('one');
      await isAnswered();
      await ask(front, kept, '/who');
      const registry = host.get(ProcessRegistry);
      const before = registry.epoch;
      await relay.shut();
      await until(async () => {
        await isAnswered();
        return registry.epoch === null;
      }, 'the lease is over');
      // A message of another process that a host joined or left.
      front.get(HostDirectory).forget();
      await isAnswered();
      await expect(ask(front, kept, '/who')).rejects.toMatchObject({
        name: 'HostAwayError',
        kind: 'unavailable',
        retryAfterSeconds: expect.any(Number),
      });
      await relay.open();
      await until(async () => {
        await isAnswered();
        const [known] = await front.get(HostDirectory).live();
        return known?.epoch !== before && known?.epoch === registry.epoch;
      }, 'the host is registered again');
      await isAnswered();
      expect((await whoRuns(front, kept)).name).toBe('one');
    },
  );
});
