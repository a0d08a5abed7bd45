import { Serializable } from '../../../platform/internal-http/error-codec.js';
import { isObject } from '../../../platform/text/json.js';

/** What the states we give begin with; those of upstreams mean nothing to us. */
export const STATE_MARK = 'sw1.parked.';

/** What a client comes back with belongs to no call that waits, or to another one than it repeats. */
@Serializable('isLost')
export class StateRefusedError extends Error {
  /** @param isLost the call is over; else the request is wrong */
  constructor(
    message: string,
    readonly isLost: boolean,
  ) {
    super(message);
  }
}

/** A call is not there any more, for whatever reason. */
export function lost(): StateRefusedError {
  return new StateRefusedError(
    'The call that these answers are for is not waiting any more: it was answered, its 10 minutes are over, or the service ' +
      'was restarted. Make the call again, without requestState.',
    true,
  );
}

/** A state in our form that we did not give this client for this address, or not so. */
export function foreign(): StateRefusedError {
  return new StateRefusedError(
    'requestState was changed, or was given to another client or address: make the call again without it',
    false,
  );
}

/** Which call a client's answers are for, as its state says. */
export interface RequestState {
  /** Begins with the process that holds the call. */
  name: string;
  /** Where that process is reached; null when it does not say. */
  url: string | null;
  /** In epoch milliseconds. */
  until: number;
}

/** Who asks for the next turn of which call, with what answers. */
export interface RoundRequest {
  name: string;
  caller: string;
  /** Digest of what the request is about. */
  about: string;
  /** JSON text of an object. */
  answers: string;
}

/** The state a client gives back with its answers; undefined when it gives none, or something that is no text. */
export function stateIn(params: unknown): string | undefined {
  const state = isObject(params) ? params.requestState : undefined;
  return typeof state === 'string' ? state : undefined;
}

/** Whether a request's state has the form of those we give. */
export function isRequestState(params: unknown): boolean {
  return stateIn(params)?.startsWith(STATE_MARK) ?? false;
}
