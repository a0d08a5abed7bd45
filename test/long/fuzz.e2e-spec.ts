import { describe, expect } from '@jest/globals';
import { fuzz } from '../fuzz/fuzz.js';
import { verifies } from '../support/verifies.js';

const INPUTS = 2_000;

describe(`${INPUTS} generated inputs of three accounts each`, () => {
  verifies(
    'service:fuzz',
    'get documented answers and leave a consistent state',
    async () => {
      const report = await fuzz(INPUTS);
      process.stdout.write(report.text);
      if (report.faults.length > 0) throw new Error(report.text);
      expect(report.operations.succeeded).toBeGreaterThan(50);
    },
    900_000,
  );
});
