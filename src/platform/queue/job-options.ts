import type { JobsOptions } from 'bullmq';

/** Options of every job. Finished jobs slow down claims on Postgres, so few are retained. */
export const jobOptions = {
  attempts: 5,
  backoff: { type: 'exponential', delay: 1_000 },
  removeOnComplete: { count: 100 },
  removeOnFail: { count: 1_000 },
} as const satisfies JobsOptions;
