import { expect } from '@jest/globals';
import { runChaos } from '../../support/chaos.js';
import { aloneVerifies } from '../../support/verifies.js';

aloneVerifies(
  'call:counted-in-chaos',
  'three failures of three parts lose, repeat and leave over nothing',
  async () => {
    const { code, output } = await runChaos(3);
    expect(output).toContain('Nothing was lost.');
    expect(code).toBe(0);
  },
  600_000,
);
