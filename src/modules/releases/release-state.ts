/** The stages of the pipeline, in order. */
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

/** Returns true if a release can change from one status to the other. */
export function mayBecome(from: ReleaseStatus, to: ReleaseStatus): boolean {
  return transitions[from].includes(to);
}

/** Returns the statuses from which a release can change to `to`, for the `WHERE` of a guarded `UPDATE`. */
export function statusesBefore(to: ReleaseStatus): ReleaseStatus[] {
  return releaseStatuses.filter((from) => mayBecome(from, to));
}

/** Returns true if `POST …/resume` accepts this status: the release waits for authorization. */
export function isResumable(status: ReleaseStatus): boolean {
  return status === 'AUTH_REQUIRED' || status === 'AUTH_TIMEOUT';
}

/** Returns true if a release finished without success, or its authorization timed out. */
export function isFailure(status: ReleaseStatus): boolean {
  return status !== 'SUCCESS' && (isFinal(status) || status === 'AUTH_TIMEOUT');
}

/** Returns true if the status of a release can no longer change. */
export function isFinal(status: ReleaseStatus): boolean {
  return transitions[status].length === 0;
}

/** Returns true if a release changes only on request, so that its streams are complete. */
export function isAtRest(status: ReleaseStatus): boolean {
  return isFinal(status) || status === 'AUTH_TIMEOUT';
}
