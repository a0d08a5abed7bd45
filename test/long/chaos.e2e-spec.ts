// Runs alone: it kills processes.
import { expect, it } from '@jest/globals';
import { runChaos } from '../support/chaos.js';

it('two minutes of random failures lose no call and repeat none', async () => {
  const { code, output } = await runChaos(120);
  expect(output).toContain('Nothing was lost.');
  expect(code).toBe(0);
}, 900_000);
