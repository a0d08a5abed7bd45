// Runs alone: it restarts processes.
import { describe, expect } from '@jest/globals';
import { runRolling } from '../support/chaos.js';
import { verifies } from '../support/verifies.js';

describe('a rolling restart behind the nginx sample', () => {
  verifies(
    'stop:rolling',
    'answers every call, and executes none twice, while each process restarts in turn',
    async () => {
      const { code, output } = await runRolling();
      process.stdout.write(output);
      expect(output).toContain(' restarts: 0 failed, 0 executed twice, 0 answered with another count');
      expect(code).toBe(0);
    },
    600_000,
  );
});
