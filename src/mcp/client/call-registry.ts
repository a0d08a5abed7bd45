import { Serializable } from '../../platform/internal-http/error-codec.js';
import { UpstreamFailure } from '../protocol/mcp-errors.js';

/** The process stops before the call was answered. */
@Serializable()
export class RestartingError extends UpstreamFailure {
  readonly kind = 'unavailable';
  readonly code = 'unavailable';
  override readonly outcomeUnknown = true;

  constructor() {
    super('The service is restarting, and the MCP server did not answer before.');
  }
}

interface PendingCall {
  reject: (error: Error) => void;
  /** Index in the list. */
  at: number;
}

/** Calls of this process that wait for an upstream. A list, for the reason of `InFlight`. */
const pending: PendingCall[] = [];

/** The outcome of `work`, or a RestartingError if {@link abandonCalls} comes first. */
export function untilRestart<T>(work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const one: PendingCall = { reject, at: pending.length };
    pending.push(one);
    const settle = (outcome: () => void) => {
      const last = pending.pop();
      if (last && last !== one) {
        last.at = one.at;
        pending[one.at] = last;
      }
      outcome();
    };
    work.then(
      (value) => settle(() => resolve(value)),
      (error: Error) => settle(() => reject(error)),
    );
  });
}

/** Answers every waiting call with an error: the process is about to end. */
export function abandonCalls(): void {
  for (const { reject } of pending) reject(new RestartingError().ofCall());
}
