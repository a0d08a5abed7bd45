import { expect, it } from '@jest/globals';
import { runChaos } from '../support/chaos.js';

it('two minutes of faults at random lose, repeat and leave nothing', async () => {
  const { code, output } = await runChaos(120);
  expect(output).toContain('Nothing was lost.');
  expect(code).toBe(0);
}, 900_000);
