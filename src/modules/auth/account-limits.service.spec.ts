import { setImmediate as turn } from 'node:timers/promises';
import { beforeEach, describe, expect } from '@jest/globals';
import { times } from '../../../test/support/mcp/calls.js';
import { verifies } from '../../../test/support/verifies.js';
import { loadEnv } from '../../config/env.js';
import type { AccountLimitsRepository } from './account-limits.repository.js';
import { AccountLimitsService } from './account-limits.service.js';
import { QuotaExceededError } from './auth.errors.js';

const LANES = 8;
const owner = { accountId: 'a' };

let stored: number;
let counts: number;
beforeEach(() => {
  stored = 0;
  counts = 0;
});

/** The limits of a service whose accounts may have so many namespaces. */
function limits(namespaces: number): AccountLimitsService {
  const rows: Pick<AccountLimitsRepository, 'usage' | 'set'> = {
    usage: async () => {
      counts += 1;
      const used = { namespaces: stored };
      await turn();
      return { accountId: owner.accountId, overrides: null, used };
    },
    set: () => Promise.resolve(),
  };
  return new AccountLimitsService(
    rows as AccountLimitsRepository,
    loadEnv({ ACCOUNT_LIMITS: `namespaces=${namespaces}` }),
  );
}

/** Creates so many namespaces in eight lanes. @returns how many were refused */
async function createMany(service: AccountLimitsService, total: number): Promise<number> {
  let refused = 0;
  const one = async () => {
    await turn();
    stored += 1;
  };
  const lane = async () => {
    for (let n = 0; n < total / LANES; n += 1) {
      await service.within(owner, { namespaces: 1 }, one).catch((error: unknown) => {
        if (!(error instanceof QuotaExceededError)) throw error;
        refused += 1;
      });
    }
  };
  await Promise.all(times(LANES, lane));
  return refused;
}

describe('a quota', () => {
  verifies('limits:quotas', 'is not counted for each creation while much is left', async () => {
    expect(await createMany(limits(100_000), 1_000)).toBe(0);
    expect(stored).toBe(1_000);
    expect(counts).toBeLessThanOrEqual(60);
  });

  verifies('limits:quotas', 'is counted for each of the last creations, and holds for concurrent ones', async () => {
    expect(await createMany(limits(200), 400)).toBe(200);
    expect(stored).toBe(200);
    expect(await createMany(limits(200), 80)).toBe(80);
  });
});
