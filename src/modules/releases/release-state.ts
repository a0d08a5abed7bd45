import { DomainError } from '../../platform/errors/domain-error.js';

/** What a release goes through, in this order. */
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

/** Every change of status there is; whatever is not listed does not happen. */
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

/** A change of status that the table does not know: a bug of ours. */
export class IllegalTransitionError extends DomainError {
  readonly kind = 'internal';
  readonly code = 'internal_error';

  constructor(from: ReleaseStatus, to: ReleaseStatus) {
    super(`A release does not go from ${from} to ${to}`);
  }
}

/** Whether a release may go from one status to the other. */
export function mayBecome(from: ReleaseStatus, to: ReleaseStatus): boolean {
  return transitions[from].includes(to);
}

/** The statuses from which a release may go to `to`: what a guarded `UPDATE` names in its `WHERE`. */
export function statusesBefore(to: ReleaseStatus): ReleaseStatus[] {
  return releaseStatuses.filter((from) => mayBecome(from, to));
}

/** @throws IllegalTransitionError */
export function requireTransition(from: ReleaseStatus, to: ReleaseStatus): void {
  if (!mayBecome(from, to)) throw new IllegalTransitionError(from, to);
}

/** Whether `POST …/resume` takes a release of this status: it waits for somebody to authorize. */
export function isResumable(status: ReleaseStatus): boolean {
  return status === 'AUTH_REQUIRED' || status === 'AUTH_TIMEOUT';
}

/** Whether a release has ended for good. */
export function isFinal(status: ReleaseStatus): boolean {
  return transitions[status].length === 0;
}

/** Whether nothing happens to a release any more without somebody asking for it: a stream of it ends here. */
export function isAtRest(status: ReleaseStatus): boolean {
  return isFinal(status) || status === 'AUTH_TIMEOUT';
}
