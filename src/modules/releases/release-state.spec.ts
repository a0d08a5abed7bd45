import { describe, expect, it } from '@jest/globals';
import { isAtRest, isFinal, isResumable, mayBecome, releaseStatuses, statusesBefore } from './release-state.js';

const allowed = [
  'QUEUED WORKING',
  'QUEUED CANCELLED',
  'WORKING SUCCESS',
  'WORKING FAILURE',
  'WORKING FAILURE_SCAN',
  'WORKING INTERNAL_ERROR',
  'WORKING AUTH_REQUIRED',
  'WORKING CANCELLED',
  'AUTH_REQUIRED WORKING',
  'AUTH_REQUIRED AUTH_TIMEOUT',
  'AUTH_REQUIRED CANCELLED',
  'AUTH_TIMEOUT WORKING',
  'AUTH_TIMEOUT CANCELLED',
];
const all = releaseStatuses.flatMap((from) => releaseStatuses.map((to) => [from, to] as const));

describe('the status of a release', () => {
  it.each(all.filter(([from, to]) => allowed.includes(`${from} ${to}`)))('may go from %s to %s', (from, to) => {
    expect(mayBecome(from, to)).toBe(true);
    expect(statusesBefore(to)).toContain(from);
  });

  it.each(all.filter(([from, to]) => !allowed.includes(`${from} ${to}`)))('never goes from %s to %s', (from, to) => {
    expect(mayBecome(from, to)).toBe(false);
    expect(statusesBefore(to)).not.toContain(from);
  });

  it('can be resumed only if authorization is required or has timed out', () => {
    expect(releaseStatuses.filter(isResumable)).toEqual(['AUTH_REQUIRED', 'AUTH_TIMEOUT']);
  });

  it('is final when it cannot change any more', () => {
    expect(releaseStatuses.filter(isFinal)).toEqual([
      'SUCCESS',
      'FAILURE',
      'FAILURE_SCAN',
      'INTERNAL_ERROR',
      'CANCELLED',
    ]);
  });

  it('is idle when it is final or the time for authorization is over', () => {
    expect(releaseStatuses.filter((status) => isAtRest(status) && !isFinal(status))).toEqual(['AUTH_TIMEOUT']);
  });
});
