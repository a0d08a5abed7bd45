import { Serializable } from '../../../platform/internal-http/error-codec.js';
import { isObject } from '../../../platform/text/json.js';

/** Prefix of our states; those of upstreams are forwarded unread. */
export const STATE_MARK = 'sw1.parked.';

/** A `requestState` that belongs to no pending call, or to another call than the retry repeats. */
@Serializable('isLost')
export class StateRefusedError extends Error {
  /** @param isLost true when the call has ended; false when the retry is wrong */
  constructor(
    message: string,
    readonly isLost: boolean,
  ) {
    super(message);
  }
}

/** Error for a call that no longer exists. */
export function lost(): StateRefusedError {
  return new StateRefusedError(
    'The call that these answers are for is not waiting any more: it was answered, its 10 minutes are over, or the service ' +
      'was restarted. Make the call again, without requestState.',
    true,
  );
}

/** Error for a state in our form that was changed, or issued to another client or for another address. */
export function foreign(): StateRefusedError {
  return new StateRefusedError(
    'requestState was changed, or was given to another client or address: make the call again without it',
    false,
  );
}

/** Contents of our `requestState`, which identifies a pending call. */
export interface RequestState {
  /** Call id, prefixed with the id of its process. */
  name: string;
  /** Internal URL of that process; null without one. */
  url: string | null;
  /** Deadline in epoch milliseconds. */
  until: number;
}

/** Caller, call and answers of the next round. */
export interface RoundRequest {
  name: string;
  caller: string;
  /** Digest of method and params, to detect a retry of another call. */
  about: string;
  /** `inputResponses` as JSON text of an object. */
  answers: string;
}

/** `requestState` of a retry; undefined when absent or not a string. */
export function stateIn(params: unknown): string | undefined {
  const state = isObject(params) ? params.requestState : undefined;
  return typeof state === 'string' ? state : undefined;
}

/** True if the request carries a state in our form. */
export function isRequestState(params: unknown): boolean {
  return stateIn(params)?.startsWith(STATE_MARK) ?? false;
}
