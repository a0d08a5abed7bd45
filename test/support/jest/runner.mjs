/**
 * Jest's `testRunner`: jest-circus, with test files loaded by Node itself instead of into a VM context of their own.
 *
 * A VM context links every module again for each test file: 1.5 to 3 s for a file that starts the service. Here a
 * worker loads `src` and the packages once. Therefore modules keep their state from one test file to the next.
 */
import { createRequire, register } from 'node:module';
import process from 'node:process';
import { pathToFileURL } from 'node:url';

import { setGlobals } from './globals.mjs';

const require = createRequire(import.meta.url);
const circus = require('jest-circus/runner').default;

register('./loader.mjs', import.meta.url);
process.setSourceMapsEnabled(true);
let runs = 0;

export default async function run(globalConfig, config, environment, runtime, testPath, sendMessageToJest) {
  if (globalConfig.watch || globalConfig.watchAll) {
    throw new Error('Watch mode would run old modules: start the tests again instead.');
  }
  // source-map-support, which Jest installed, knows only what Jest compiled.
  delete Error.prepareStackTrace;
  const env = { ...process.env };
  const native = {
    // A new copy of circus for each file: it has the list of tests and the event handlers.
    requireInternalModule(path) {
      delete globalThis[Symbol.for('EVENT_HANDLERS')];
      delete require.cache[path];
      return require(path);
    },
    requireModule: require,
    setGlobalsForRuntime: (globals) => setGlobals({ ...globals, jest: jestObject(environment) }),
    unstable_shouldLoadAsEsm: () => true,
    unstable_importModule: (path) => import(`${pathToFileURL(path).href}?run=${++runs}`),
    enterTestCode() {},
    leaveTestCode() {},
  };
  const cpu0 = process.cpuUsage(), t0 = Date.now(); //PROFILE
  try {
    return await circus(globalConfig, config, environment, native, testPath, sendMessageToJest);
  } finally {
    { const c = process.cpuUsage(cpu0); if (process.env.JEST_CPU_LOG) (await import('node:fs')).appendFileSync(process.env.JEST_CPU_LOG, `${testPath.replace(config.rootDir, '')} wall ${Date.now() - t0} cpu ${((c.user + c.system) / 1000).toFixed(0)} rss ${(process.memoryUsage().rss / 1e6).toFixed(0)}\n`); } //PROFILE
    for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
    Object.assign(process.env, env);
  }
}

/** The part of Jest's `jest` object that tests use. */
function jestObject({ fakeTimersModern: timers, moduleMocker: mocker }) {
  return {
    fn: mocker.fn.bind(mocker),
    spyOn: mocker.spyOn.bind(mocker),
    restoreAllMocks: () => mocker.restoreAllMocks(),
    useFakeTimers: (options) => timers.useFakeTimers(options),
    useRealTimers: () => timers.useRealTimers(),
    setSystemTime: (now) => timers.setSystemTime(now),
    advanceTimersByTimeAsync: (ms) => timers.advanceTimersByTimeAsync(ms),
  };
}
