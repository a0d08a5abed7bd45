/** Node itself loads the test files and what they import: see test/support/jest/runner.mjs. */
export default {
  testEnvironment: '<rootDir>/test/support/jest/environment.mjs',
  testRunner: '<rootDir>/test/support/jest/runner.mjs',
  injectGlobals: false,
  transform: {},
  roots: ['<rootDir>/src', '<rootDir>/test'],
  testRegex: '\\.(spec|e2e-spec)\\.ts$',
  globalSetup: '<rootDir>/test/support/global-setup.mjs',
  globalTeardown: '<rootDir>/test/support/global-teardown.mjs',
  workerIdleMemoryLimit: '1GB',
  // More than a `until` has patience, so that it can say what did not happen.
  testTimeout: 180_000,
};
