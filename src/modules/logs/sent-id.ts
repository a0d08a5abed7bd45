import { createHash } from 'node:crypto';
import { timeOfUuidV7, uuidV7 } from '../../platform/database/uuid-v7.js';
import { timeFault } from './sent-bounds.js';

const VERSION_7 = /^.{14}7.{4}[89ab]/;

/** Whether an invocation may be kept under this id as it is: it tells a day that records are taken for. */
export function isKeepable(id: string, now: Date): boolean {
  return VERSION_7.test(id) && timeFault(timeOfUuidV7(id), now) === null;
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
