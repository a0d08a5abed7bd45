import { describe, expect } from '@jest/globals';
import { fuzz, shownReport } from '../fuzz/fuzz.js';
import { verifies } from '../support/verifies.js';

const SECONDS = 180;

describe('generated inputs of three minutes', () => {
  verifies(
    'service:fuzz',
    'get documented answers and leave a consistent state',
    async () => {
      const report = await fuzz({ seed: String(Date.now()), seconds: SECONDS });
      const text = shownReport(report);
      process.stdout.write(text);
      if (report.faults.length > 0) throw new Error(text);
      expect(report.operations.succeeded).toBeGreaterThan(50);
    },
    (SECONDS + 300) * 1_000,
  );
});
