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

/** The allowed changes of status. */
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

/** True if a release may change from one status to the other. */
export function mayBecome(from: ReleaseStatus, to: ReleaseStatus): boolean {
  return transitions[from].includes(to);
}

/** The statuses from which a release may change to `to`, for the `WHERE` of a guarded `UPDATE`. */
export function statusesBefore(to: ReleaseStatus): ReleaseStatus[] {
  return releaseStatuses.filter((from) => mayBecome(from, to));
}

/** True if `POST …/resume` accepts this status: the release waits for authorization. */
export function isResumable(status: ReleaseStatus): boolean {
  return status === 'AUTH_REQUIRED' || status === 'AUTH_TIMEOUT';
}

/** True if a release ended without success, or waits for an authorization that did not come. */
export function isFailure(status: ReleaseStatus): boolean {
  return status !== 'SUCCESS' && (isFinal(status) || status === 'AUTH_TIMEOUT');
}

/** True if a release cannot change its status any more. */
export function isFinal(status: ReleaseStatus): boolean {
  return transitions[status].length === 0;
}

/** True if a release changes only on request: a stream of it ends. */
export function isAtRest(status: ReleaseStatus): boolean {
  return isFinal(status) || status === 'AUTH_TIMEOUT';
}
