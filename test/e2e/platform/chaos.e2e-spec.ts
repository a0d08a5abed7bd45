import { expect } from '@jest/globals';
import { runChaos } from '../../support/chaos.js';
import { verifies } from '../../support/verifies.js';

verifies(
  'call:counted-in-chaos',
  'for 3 s of faults at random: nothing is lost, repeated or left over',
  async () => {
    const { code, output } = await runChaos(3);
    expect(output).toContain('Nothing was lost.');
    expect(code).toBe(0);
  },
  600_000,
);
