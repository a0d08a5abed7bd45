export const stages = ['deploy', 'scan', 'metadata', 'publish'] as const;
export type Stage = (typeof stages)[number];

export const releaseStatuses = [
  'QUEUED',
  'WORKING',
  'SUCCESS',
  'FAILURE',
  'FAILURE_SCAN',
  'INTERNAL_ERROR',
  'AUTH_REQUIRED',
  'AUTH_TIMEOUT',
  'CANCELLED',
] as const;
export type ReleaseStatus = (typeof releaseStatuses)[number];

const transitions: Record<ReleaseStatus, readonly ReleaseStatus[]> = {
  QUEUED: ['WORKING', 'CANCELLED'],
  WORKING: ['SUCCESS', 'FAILURE', 'FAILURE_SCAN', 'INTERNAL_ERROR', 'AUTH_REQUIRED', 'CANCELLED'],
  AUTH_REQUIRED: ['WORKING', 'AUTH_TIMEOUT', 'CANCELLED'],
  AUTH_TIMEOUT: ['WORKING', 'CANCELLED'],
  SUCCESS: [],
  FAILURE: [],
  FAILURE_SCAN: [],
  INTERNAL_ERROR: [],
  CANCELLED: [],
};

export function mayBecome(from: ReleaseStatus, to: ReleaseStatus): boolean {
  return transitions[from].includes(to);
}

/** Returns the statuses before a status, for the `WHERE` of a guarded `UPDATE`. */
export function statusesBefore(to: ReleaseStatus): ReleaseStatus[] {
  return releaseStatuses.filter((from) => mayBecome(from, to));
}

/** Returns true for a release that waits for authorization: `POST …/resume` accepts only these. */
export function isResumable(status: ReleaseStatus): boolean {
  return status === 'AUTH_REQUIRED' || status === 'AUTH_TIMEOUT';
}

/** Returns true if a release finished without success, or its authorization timed out. */
export function isFailure(status: ReleaseStatus): boolean {
  return status !== 'SUCCESS' && (isFinal(status) || status === 'AUTH_TIMEOUT');
}

export function isFinal(status: ReleaseStatus): boolean {
  return transitions[status].length === 0;
}

/** Returns true for a release that changes only on request, so that its streams are complete. */
export function isAtRest(status: ReleaseStatus): boolean {
  return isFinal(status) || status === 'AUTH_TIMEOUT';
}
