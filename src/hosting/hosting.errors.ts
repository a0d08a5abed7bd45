import { DomainError } from '../platform/errors/domain-error.js';
import type { RuntimeOutcome } from './hosting.types.js';

/** A program did not answer; the message says what happened and what to do, and names no machine. */
export abstract class HostedFailure extends DomainError {
  abstract readonly outcome: RuntimeOutcome;
  /** True when the code may have run: the request must not be sent again unasked. */
  readonly mayHaveRun: boolean = true;
}

/** No process runs hosted code, or this kind of it. */
export class HostingUnavailableError extends HostedFailure {
  readonly kind = 'unavailable';
  readonly code = 'hosting_unavailable';
  readonly outcome = 'exception';
  override readonly mayHaveRun = false;
}

/** The host that has the program does not take requests now; it or another one does in a moment. */
export class HostAwayError extends HostedFailure {
  readonly kind = 'unavailable';
  readonly code = 'hosting_unavailable';
  readonly outcome = 'exception';
  override readonly mayHaveRun = false;

  constructor(
    message: string,
    override readonly retryAfterSeconds: number,
  ) {
    super(message);
  }
}

/** The program does not start; the message holds what it said. */
export class ProgramStartError extends HostedFailure {
  readonly kind = 'upstream';
  readonly code = 'upstream_error';
  readonly outcome = 'exception';
  override readonly mayHaveRun = false;
}

/** The program crashed again and again, and is not started before a moment has passed; the message holds what it said. */
export class ProgramRestingError extends HostedFailure {
  readonly kind = 'unavailable';
  readonly code = 'upstream_error';
  readonly outcome = 'exception';
  override readonly mayHaveRun = false;

  constructor(
    message: string,
    override readonly retryAfterSeconds: number,
  ) {
    super(message);
  }
}

/** The program answers as many requests as it may; a moment later there is room. */
export class ProgramBusyError extends HostedFailure {
  readonly kind = 'rate_limited';
  readonly code = 'rate_limited';
  readonly outcome = 'exception';
  override readonly mayHaveRun = false;
  override readonly retryAfterSeconds = 1;
}

/** A request took more than it may, and was ended; `outcome` says of what. */
export class LimitExceededError extends HostedFailure {
  readonly kind = 'upstream';
  readonly code = 'upstream_error';

  constructor(
    readonly outcome: Extract<RuntimeOutcome, 'exceededCpu' | 'exceededMemory' | 'exceededWall' | 'exceededResponse'>,
    message: string,
  ) {
    super(message);
  }
}

/** The program's process ended while it worked on the request. */
export class ProgramCrashedError extends HostedFailure {
  readonly kind = 'upstream';
  readonly code = 'upstream_error';
  readonly outcome = 'exception';
}

/** What a hosted program failed of, behind whatever its caller heard; null for any other failure. */
export function hostedFailureIn(error: unknown): HostedFailure | null {
  for (let one = error, hops = 0; one instanceof Error && hops < 4; hops += 1) {
    if (one instanceof HostedFailure) return one;
    one = (one as { detail?: unknown }).detail;
  }
  return null;
}
