#!/usr/bin/env node
// Cost of a hosted program in another process: the same request to a program here and to one there,
// turn by turn, so that a slow moment of the machine falls on both alike. The programs are plain HTTP servers.
//
//   node bench/hosting-hop.mjs [--calls 3000] [--bytes 1000]

import { spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { PlacedPrograms } from '../test/support/hosting/placed-programs.mjs';
import { ensureBuilt, freePort, integerOption, loadAverage, runBench, shown, tempFolder } from './run.mjs';

const { values: options } = parseArgs({
  options: { calls: { type: 'string', default: '3000' }, bytes: { type: 'string', default: '1000' } },
});
const calls = integerOption('calls', options.calls, 100, 1_000_000);
const body = 'x'.repeat(integerOption('bytes', options.bytes, 1, 16_000_000));

let cleanUp = async () => {};

async function main() {
  await ensureBuilt();
  const load = (file) => import(`../dist/src/${file}`);
  const [{ createApp }, { loadEnv }, { chooseQueueBackend, migrateQueue }, { startEmbeddedPostgres }, { migrate }] =
    await Promise.all([
      load('app.setup.js'),
      load('config/env.js'),
      load('platform/queue/queue-backend.js'),
      load('platform/embedded/embedded-postgres.js'),
      load('platform/database/migrations.js'),
    ]);
  const [{ HostingRouter }, { ProcessRegistry }, { HostDirectory }, { ranked }] = await Promise.all([
    load('hosting/cluster/hosting-router.js'),
    load('platform/processes/process-registry.js'),
    load('hosting/cluster/host-directory.js'),
    load('hosting/cluster/host-selector.js'),
  ]);
  const dataDir = tempFolder();
  const database = await startEmbeddedPostgres({ dataDir, log: () => {}, throwaway: true });
  await migrate(database.url);
  await migrateQueue(database.url);
  const settings = async () => ({
    PORT: String(await freePort()),
    DATABASE_URL: database.url,
    ENCRYPTION_KEYS: key,
    DATA_DIR: dataDir,
    ROLES: 'host',
    LOG_LEVEL: 'warn',
  });
  const key = `k1:${randomBytes(32).toString('base64')}`;
  const child = spawn(process.execPath, ['test/support/hosting/placed-process.mjs', `${process.cwd()}/dist`, 'there'], {
    env: { PATH: process.env.PATH, ...(await settings()) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const env = loadEnv(await settings());
  chooseQueueBackend(env);
  const app = await createApp(env, { logger: ['error', 'warn'] });
  const programs = await new PlacedPrograms({ name: 'here', dataDir }).start();
  cleanUp = async () => {
    child.kill('SIGKILL');
    await app.close();
    await programs.stop();
    await database.stop();
  };
  await once(child.stdout, 'data');
  await app.listen(env.port, env.host);
  const hosting = app.get(HostingRouter, { strict: false });
  await hosting.runWith(programs);

  const own = app.get(ProcessRegistry, { strict: false }).id;
  const hosts = await app.get(HostDirectory, { strict: false }).live();
  if (hosts.length !== 2) throw new Error(`${hosts.length} hosts instead of 2`);
  const programOn = (isOwn) => {
    for (;;) {
      const id = randomUUID();
      if ((ranked(id, hosts)[0].id === own) === isOwn) {
        return { kind: 'release', id, ownerId: id, engine: 'worker', isStateful: false };
      }
    }
  };
  const call = (ref) =>
    new Promise((resolve, reject) => {
      const at = performance.now();
      const request = { method: 'POST', path: '/echo', headers: { host: 'x' }, body, isStream: false };
      hosting.dispatch(ref, request, {
        onRequestStart: () => {},
        onResponseData: () => {},
        onResponseEnd: () => resolve(performance.now() - at),
        onResponseError: (_, error) => reject(error),
      });
    });
  const [here, there] = [programOn(true), programOn(false)];
  const times = { here: [], there: [] };
  for (let i = 0; i < calls + 200; i += 1) {
    const [a, b] = [await call(here), await call(there)];
    if (i < 200) continue;
    times.here.push(a);
    times.there.push(b);
  }
  const at = (name, share) => times[name].sort((a, b) => a - b)[Math.floor(share * calls)];
  console.log(`${calls} calls of ${body.length} bytes each; load average ${loadAverage()}`);
  for (const share of [0.1, 0.5, 0.95]) {
    const [a, b] = [at('here', share), at('there', share)];
    console.log(`p${share * 100}: here ${shown(a, 3)} ms, there ${shown(b, 3)} ms, the hop ${shown(b - a, 3)} ms`);
  }
}

await runBench(main, { cleanUp: () => cleanUp() });
