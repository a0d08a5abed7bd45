import { createHash } from 'node:crypto';
import { timeOfUuidV7, uuidV7 } from '../../../platform/database/uuid-v7.js';

/** How far the time in an id and the time of its record may be apart: what is looked for around a time is not missed. */
export const ID_SLACK_MS = 60_000;

const VERSION_7 = /^.{14}7.{4}[89ab]/;

/** Whether this UUID tells when it was made. */
export function isVersion7(id: string): boolean {
  return VERSION_7.test(id);
}

/** Whether the invocation of a moment may be kept under this id as it is: it tells the same moment. */
export function isKeepable(id: string, at: Date): boolean {
  return isVersion7(id) && Math.abs(timeOfUuidV7(id).getTime() - at.getTime()) <= ID_SLACK_MS;
}

/**
 * A UUID of version 7 that is the same whenever server, name and moment are: what is sent again is known again. Of two
 * servers it is never the same.
 */
export function derivedId(serverId: string, name: string, at: Date): string {
  const hex = createHash('sha256').update(`${serverId} ${name}`).digest('hex');
  const fresh = uuidV7(at.getTime());
  return `${fresh.slice(0, 15)}${hex.slice(0, 3)}-8${hex.slice(3, 6)}-${hex.slice(6, 18)}`;
}
