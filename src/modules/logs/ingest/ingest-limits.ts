import { createHash } from 'node:crypto';
import { timeOfUuidV7, uuidV7 } from '../../../platform/database/uuid-v7.js';

/**
 * Maximum difference between the time in an id and that of its record; searches by time extend the range of ids by it.
 */
export const ID_SLACK_MS = 60_000;

/** Accepted times of records: the log is partitioned by day, and partitions of other days might not exist. */
export const AGE_MS_MAX = 24 * 3_600_000;
const AHEAD_MS_MAX = 5 * 60_000;

const VERSION_7 = /^.{14}7.{4}[89ab]/;

/**
 * Returns why records of this time are rejected, as the end of a message; null if they are accepted.
 *
 * @stability preview
 * @example
 * const problem = timeProblem(report.time, new Date());
 * if (problem !== null) throw new InvalidInputError(`time ${problem}`);
 */
export function timeProblem(at: Date, now: Date): string | null {
  const ageMs = now.getTime() - at.getTime();
  if (ageMs > AGE_MS_MAX) return 'must not be older than 24 hours';
  return ageMs < -AHEAD_MS_MAX ? 'must not be ahead of the time here' : null;
}

/** Removes the parts of a URL that can contain credentials: query, fragment and user information. */
export function bareUrl(url: string): string {
  const [bare = ''] = url.split(/[?#]/, 1);
  return bare.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/@]*@/i, '$1');
}

/** Returns true for a UUID of version 7, which contains the time of its creation. */
export function isVersion7(id: string): boolean {
  return VERSION_7.test(id);
}

/** Returns true if an invocation of this time can use the id unchanged: the id contains about the same time. */
export function isUsableId(id: string, at: Date): boolean {
  return isVersion7(id) && Math.abs(timeOfUuidV7(id).getTime() - at.getTime()) <= ID_SLACK_MS;
}

/**
 * Returns a UUID of version 7 derived from server, name and time: a record that is sent again has the same id. Ids of two
 * servers always differ.
 *
 * @stability preview
 * @example
 * const id = invocationId(server.id, report.requestId, report.time);
 */
export function invocationId(serverId: string, name: string, at: Date): string {
  const hex = createHash('sha256').update(`${serverId} ${name}`).digest('hex');
  const fresh = uuidV7(at.getTime());
  return `${fresh.slice(0, 15)}${hex.slice(0, 3)}-8${hex.slice(3, 6)}-${hex.slice(6, 18)}`;
}
