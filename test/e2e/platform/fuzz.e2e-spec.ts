import { describe, expect } from '@jest/globals';
import { fuzz } from '../../fuzz/fuzz.js';
import { verifies } from '../../support/verifies.js';

describe('generated inputs', () => {
  verifies('service:fuzz', 'get documented answers and leave a consistent state', async () => {
    const report = await fuzz({ seed: '6', seconds: 20 });
    if (report.faults.length > 0) throw new Error(report.text);
    expect(report.checks).toBeGreaterThan(0);
    expect(Object.keys(report.kinds)).toEqual(expect.arrayContaining(['REST: valid', 'MCP: connection']));
  });
});
