import { timeOfUuidV7 } from '../../../platform/database/uuid-v7.js';

export const DAY_MS = 24 * 60 * 60_000;
export const HOUR_MS = 60 * 60_000;

/** The day in UTC, as `YYYY-MM-DD`. Also the key of a partition. */
export function dayOf(time: Date | number): string {
  return new Date(time).toISOString().slice(0, 10);
}

/** The day whose partition holds an invocation. @param id a UUID of version 7 */
export function dayOfId(id: string): string {
  return dayOf(timeOfUuidV7(id));
}

/** The name of a day's partition. */
export function partitionOf(day: string): string {
  return `invocations_${day.replaceAll('-', '')}`;
}

/** The smallest id of a time: the bound for `id >=`, and as the end of a range for `id <`. */
export function leastIdAt(time: Date | number): string {
  const hex = Number(time).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}
