/** A Jest environment without a VM context: runner.mjs runs test files in the worker's own. */
import { createRequire } from 'node:module';

const fromCircus = createRequire(createRequire(import.meta.url).resolve('jest-circus/package.json'));
const fromJestEnvironment = createRequire(fromCircus.resolve('@jest/environment/package.json'));
const { ModernFakeTimers } = fromJestEnvironment('@jest/fake-timers');
const { ModuleMocker } = fromJestEnvironment('jest-mock');

export default class NativeEnvironment {
  /** Jest writes the console it records into here; tests keep the real one. */
  global = {};
  moduleMocker = new ModuleMocker(globalThis);
  fakeTimers = null;

  constructor({ projectConfig }) {
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis });
  }

  getVmContext() {
    return null;
  }

  exportConditions() {
    return ['node', 'node-addons'];
  }

  async setup() {}

  async teardown() {
    this.fakeTimersModern.useRealTimers();
    this.moduleMocker.restoreAllMocks();
  }
}
