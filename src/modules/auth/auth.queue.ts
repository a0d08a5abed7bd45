/** Upkeep of API keys: one job a day. */
export const AUTH_QUEUE = 'auth';

/** Removes keys that expired long ago. No payload: the job looks for itself, and may run any number of times. */
export const PURGE_EXPIRED_KEYS = 'purge-expired-keys';
export const PURGE_INTERVAL_MS = 24 * 60 * 60 * 1000;
