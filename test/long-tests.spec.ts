import { beforeAll, describe, expect, it } from '@jest/globals';
import { longIt } from './support/jest/globals.mjs';
import { isThorough } from './support/random-runs.js';

describe('a file with a long test', () => {
  let hooks = 0;

  describe('alone in its block', () => {
    beforeAll(() => {
      hooks += 1;
    });

    longIt('runs it with its hooks', () => expect(hooks).toBe(1));
  });

  it('runs its other tests, and no hook for a test that is left out', () => expect(hooks).toBe(isThorough ? 1 : 0));
});
