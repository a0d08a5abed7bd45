import type { JobsOptions } from 'bullmq';

/** What every job starts from. Kept jobs slow the queue's claims down on Postgres, so few are kept. */
export const jobOptions = {
  attempts: 5,
  backoff: { type: 'exponential', delay: 1_000 },
  removeOnComplete: { count: 100 },
  removeOnFail: { count: 1_000 },
} as const satisfies JobsOptions;
