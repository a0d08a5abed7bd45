/**
 * A process of its own that hosts programs: `node hosting-process.mjs <dist> <file of a module> <number>`, with the service's
 * settings in its environment. It starts so many programs of the module, each with an event that never ends, writes the ids
 * of their processes as a line of JSON, and stays.
 */
import { randomUUID } from 'node:crypto';
import { pathToFileURL } from 'node:url';

const [dist, file, count] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(`${dist}/src/${name}`).href);
const [{ loadEnv }, { Tuning }, { Engines }, { ProgramOwners }, { Runtime }, { WorkerdEngine }, { Sandbox }] =
  await Promise.all([
    load('config/env.js'),
    load('config/tuning.js'),
    load('hosting/engine.js'),
    load('hosting/hosting.js'),
    load('hosting/runtime/runtime.js'),
    load('hosting/worker/workerd-engine.js'),
    load('hosting/sandbox/sandbox.js'),
  ]);

const pids = [];
class KnownEngine extends WorkerdEngine {
  async start(program, context) {
    const instance = await super.start(program, context);
    pids.push(instance.pid);
    return instance;
  }
}

const owner = {
  withProgram: (ref, use) => use({ ref, file, secrets: { KEY: 'secret' }, configSchema: null, egressAllow: null }),
  valuesOf: () => Promise.resolve({ secrets: { KEY: 'secret' }, egressAllow: null }),
  quotaOf: () => Promise.resolve(null),
  namesOf: () => Promise.resolve({}),
  recordTrace: () => undefined,
};
const programs = new ProgramOwners({ get: () => owner });
programs.onModuleInit();
const env = loadEnv();
const engines = new Engines([new KnownEngine(new Sandbox(env))]);
const deletionTime = () => Promise.resolve(new Date());
const runtime = Runtime.create({ env, tuning: new Tuning(), owners: programs, engines, deletionTime });
const heads = Array.from({ length: Number(count) }, () => {
  const ref = { kind: 'release', id: randomUUID(), ownerId: randomUUID(), engine: 'worker', isStateful: false };
  return new Promise((resolve, reject) => {
    const request = { method: 'GET', path: '/hold', headers: { host: 'program' }, isStream: true };
    runtime.dispatch(ref, request, {
      onRequestStart: () => undefined,
      onResponseStart: resolve,
      onResponseError: (_, error) => reject(error),
    });
  });
});
await Promise.all(heads);
process.stdout.write(`${JSON.stringify(pids)}\n`);
setInterval(() => undefined, 1_000);
