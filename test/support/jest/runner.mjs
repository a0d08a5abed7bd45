/**
 * Jest's `testRunner`: jest-circus, with test files loaded by Node itself instead of into a VM context of their own.
 *
 * A VM context links every module again for each test file: 6 s of CPU time for a file that starts the service. Here
 * a worker loads `src` and the packages once. Therefore modules keep their state from one test file to the next.
 */
import { createRequire, register } from 'node:module';
import { relative } from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { isLong } from '../../../scripts/lib.mjs';
import { setGlobals } from './globals.mjs';
import { startFile } from '../seed.mjs';
import { endFile, endTest } from './leftovers.mjs';

const require = createRequire(import.meta.url);
const circus = require('jest-circus/runner').default;
const hooks = require('node:async_hooks');
const { AsyncLocalStorage } = hooks;
/** A getter since Node 24. */
const storageProperty = Object.getOwnPropertyDescriptor(hooks, 'AsyncLocalStorage');
/** The storages of the copy of jest-circus that runs. */
const storages = [];
let runs = 0;

register('./loader.mjs', import.meta.url);
// Loads what Node's own `fetch` sends with. Later, `fetch` in tests would take the package undici for it, whose 7.26 to 7.30 throw
// out of a socket event when a server closes the connection before a slow reader has the response.
new globalThis.Headers();
process.setSourceMapsEnabled(true);

export default async function run(globalConfig, config, environment, runtime, testPath, sendMessageToJest) {
  if (globalConfig.watch || globalConfig.watchAll) {
    throw new Error('Watch mode would run old modules: start the tests again instead.');
  }
  // source-map-support, which Jest installed, knows only what Jest compiled.
  delete Error.prepareStackTrace;
  const env = { ...process.env };
  const project = config.displayName?.name;
  if (project.startsWith('redis')) process.env.TEST_REDIS_URL = process.env.REDIS_FOR_TESTS;
  startFile(`${project}/${relative(config.rootDir, testPath)}`);
  const longTests = new WeakSet();
  const aloneTests = new WeakSet();
  // Before the first test: Jest refuses hooks of a block that never had one.
  environment.handleTestEvent = ({ name }, { rootDescribeBlock }) => {
    if (name === 'run_start')
      drop(rootDescribeBlock, ({ fn }) => !isWanted(project, testPath, longTests.has(fn), aloneTests.has(fn)));
  };
  const native = {
    // A new copy for each file: it holds the list of tests and the event handlers.
    requireInternalModule(path) {
      delete globalThis[Symbol.for('EVENT_HANDLERS')];
      delete require.cache[path];
      Object.defineProperty(hooks, 'AsyncLocalStorage', { value: RecordedStorage, configurable: true });
      try {
        return require(path);
      } finally {
        Object.defineProperty(hooks, 'AsyncLocalStorage', storageProperty);
      }
    },
    requireModule: require,
    setGlobalsForRuntime(globals) {
      const longIt = (name, fn, timeoutMs) => {
        longTests.add(fn);
        globals.it(name, fn, timeoutMs);
      };
      const aloneIt = (name, fn, timeoutMs) => {
        aloneTests.add(fn);
        globals.it(name, fn, timeoutMs);
      };
      setGlobals({ ...globals, longIt, aloneIt, jest: jestObject(environment) });
      globals.afterEach(endTest);
    },
    unstable_shouldLoadAsEsm: () => true,
    unstable_importModule: (path) => import(`${pathToFileURL(path).href}?run=${++runs}`),
    enterTestCode() {},
    leaveTestCode() {},
  };
  try {
    return await circus(globalConfig, config, environment, native, testPath, sendMessageToJest);
  } finally {
    await endFile();
    // Every promise copies the value of each storage that is enabled: after 80 files that took a fifth of the CPU time.
    for (const storage of storages.splice(0)) storage.disable();
    for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
    Object.assign(process.env, env);
  }
}

/** True if a test of this file belongs to a project: of a file that is in several, each test belongs to one. */
function isWanted(project, testPath, isLongTest, isAloneTest) {
  if (isAloneTest || project === 'alone') return isAloneTest && project === 'alone';
  if (project.endsWith('long-alone')) return true;
  if (project === 'long') return isLongTest || isLong(testPath);
  return !isLongTest || project.startsWith('redis-long') || process.env.RANDOM_RUNS === 'all';
}

/** Takes tests out of a block, so that they neither run nor count. */
function drop(block, isDropped) {
  block.children = block.children.filter((child) => child.type !== 'test' || !isDropped(child));
  for (const child of block.children) if (child.type === 'describeBlock') drop(child, isDropped);
}

class RecordedStorage extends AsyncLocalStorage {
  constructor(...options) {
    super(...options);
    storages.push(this);
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
