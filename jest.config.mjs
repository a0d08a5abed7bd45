import { readFileSync } from 'node:fs';
import { filesUnder, isLong } from './scripts/lib.mjs';

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
const hasLong = (file) => isLong(file) || /\b(longIt|longVerifies)\b/.test(readFileSync(file, 'utf8'));
const startsWith = (words) => (file) => readFileSync(file, 'utf8').startsWith(words);

/** Jest takes an empty list for every file. */
const only = (chosen) => ({ testMatch: chosen.length > 0 ? chosen : ['<rootDir>/none'] });

/**
 * `unit`: no service, no database. `e2e`: everything that starts the service, on one Postgres for the whole run.
 * `long`: minutes, run by `npm run test:long`: the files of some folders, and of other files the tests made with `longIt` or
 * `longVerifies`. `redis` and `redis-long`: the e2e tests whose first line says so, with the
 * queue on the Redis of REDIS_FOR_TESTS.
 */
export default {
  projects: [
    { ...common, displayName: 'unit', testRegex: '\\.spec\\.ts$' },
    { ...services, displayName: 'e2e', ...only(files.filter((file) => !isLong(file))) },
    { ...services, displayName: 'long', ...only(files.filter(hasLong)) },
    ...(process.env.REDIS_FOR_TESTS
      ? [
          {
            ...services,
            displayName: 'redis',
            ...only(files.filter(startsWith('// Also run with the queue on Redis:'))),
          },
          {
            ...services,
            displayName: 'redis-long',
            ...only(files.filter(startsWith('// Also run with the queue on Redis by test:long:'))),
          },
        ]
      : []),
  ],
  // A service that closed leaves nothing behind, but a new worker would load every module again.
  workerIdleMemoryLimit: '2GB',
  // Longer than `until` waits, so that it can say what did not happen.
  testTimeout: 180_000,
};
