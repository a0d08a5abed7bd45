import { describe, expect } from '@jest/globals';
import { fuzz } from '../fuzz/fuzz.js';
import { verifies } from '../support/verifies.js';

const SECONDS = 180;

describe('generated inputs of three minutes', () => {
  verifies(
    'service:fuzz',
    'get documented answers and leave a consistent state',
    async () => {
      const report = await fuzz({ seed: String(Date.now()), seconds: SECONDS });
      process.stdout.write(report.text);
      if (report.faults.length > 0) throw new Error(report.text);
      expect(report.operations.succeeded).toBeGreaterThan(50);
    },
    (SECONDS + 300) * 1_000,
  );
});
