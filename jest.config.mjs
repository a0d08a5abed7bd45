import { readFileSync } from 'node:fs';
import { filesUnder, hasLongTests, isLong } from './scripts/lib.mjs';

const common = {
  // Node itself loads the test files and what they import.
  testRunner: '<rootDir>/test/support/jest/runner.mjs',
  testEnvironment: '<rootDir>/test/support/jest/environment.mjs',
  injectGlobals: false,
  transform: {},
  roots: ['<rootDir>/src', '<rootDir>/test'],
};
const services = {
  ...common,
  globalSetup: '<rootDir>/test/support/global-setup.mjs',
  globalTeardown: '<rootDir>/test/support/global-teardown.mjs',
};
const files = filesUnder('test').filter((file) => file.endsWith('.e2e-spec.ts'));
/** True for a file of which some tests do not run alone: the calls with `each` and of tables count too. */
const hasOthers = (file) =>
  !isAlone(file) || /^\s*(it|test|verifies|longIt|longVerifies)(\.each)?\b/m.test(readFileSync(file, 'utf8'));
const isAlone = (file) => /^\s*(aloneIt|aloneVerifies)\(/m.test(readFileSync(file, 'utf8'));
/** Kills processes, or measures time. */
const isLongAlone = (file) => /^\/\/ Runs alone: /m.test(readFileSync(file, 'utf8').slice(0, 400));
const unitFiles = ['src', 'test'].flatMap(filesUnder).filter((file) => file.endsWith('.spec.ts'));
const startsWith = (words) => (file) => readFileSync(file, 'utf8').startsWith(words);
const redisLong = files.filter(startsWith('// Also run with the queue on Redis by test:long:'));

/** Jest takes an empty list for every file. */
const only = (chosen) => ({ testMatch: chosen.length > 0 ? chosen : ['<rootDir>/none'] });

/**
 * `unit`: no service, no database. `e2e`: everything that starts the service, on one Postgres for the whole run.
 * `long`: minutes, run by `npm run test:long`: the files of some folders, and of other files the tests made with `longIt` or
 * `longVerifies`. `alone` and `long-alone` run with one worker, after the others: what promises a wall-clock time or kills
 * processes (`aloneIt`, `aloneVerifies`; long files whose first lines say `// Runs alone:`). `redis`, `redis-long` and
 * `redis-long-alone`: the e2e tests whose first line says so, with the queue on the Redis of REDIS_FOR_TESTS.
 */
export default {
  projects: [
    { ...common, displayName: 'unit', ...only(unitFiles.filter(hasOthers)) },
    { ...services, displayName: 'e2e', ...only(files.filter((file) => !isLong(file) && hasOthers(file))) },
    {
      ...services,
      displayName: 'long',
      ...only([...files, ...unitFiles].filter((file) => hasLongTests(file) && !isLongAlone(file))),
    },
    { ...services, displayName: 'alone', ...only([...files, ...unitFiles].filter(isAlone)) },
    { ...services, displayName: 'long-alone', ...only(files.filter(isLongAlone)) },
    ...(process.env.REDIS_FOR_TESTS
      ? [
          {
            ...services,
            displayName: 'redis',
            ...only(files.filter(startsWith('// Also run with the queue on Redis:'))),
          },
          { ...services, displayName: 'redis-long', ...only(redisLong.filter((file) => !isLongAlone(file))) },
          { ...services, displayName: 'redis-long-alone', ...only(redisLong.filter(isLongAlone)) },
        ]
      : []),
  ],
  // A service that closed leaves nothing behind, but a new worker would load every module again.
  workerIdleMemoryLimit: '2GB',
  // Longer than `until` waits, so that it can say what did not happen.
  testTimeout: 180_000,
};
