import { DomainError, errorOf, type ErrorKind } from '../platform/errors/domain-error.js';
import { Serializable } from '../platform/internal-http/error-codec.js';
import type { RuntimeOutcome } from './hosting.types.js';

export type RefusalReason = 'busy' | 'resting' | 'start' | 'unavailable';

/**
 * The message states the problem and a remedy, and names no machine. Callers read it, so it repeats nothing that the
 * program printed or threw.
 */
export abstract class HostedFailure extends DomainError {
  abstract readonly outcome: RuntimeOutcome;
  /**
   * Null when the program had begun with the request. If this host is `unavailable`, another one can take the request.
   */
  readonly refusal: RefusalReason | null = null;

  /** True when the code might have run: the request must not be resent automatically. */
  get mayHaveRun(): boolean {
    return this.refusal === null;
  }
}

function refusedBy<Kind extends ErrorKind>(refusal: RefusalReason, kind: Kind, code: string) {
  abstract class Refused extends HostedFailure {
    readonly kind = kind;
    readonly code = code;
    readonly outcome = 'exception';
    override readonly refusal = refusal;
  }
  return Refused;
}

export class InvalidModuleError extends errorOf('invalid', 'invalid_module') {}

@Serializable()
export class HostingUnavailableError extends refusedBy('unavailable', 'unavailable', 'hosting_unavailable') {}

/** The host of the program accepts no requests now; it or another one will shortly. */
@Serializable('retryAfterSeconds')
export class HostAwayError extends refusedBy('unavailable', 'unavailable', 'hosting_unavailable') {
  constructor(
    message: string,
    override readonly retryAfterSeconds: number,
    detail?: unknown,
  ) {
    super(message, detail);
  }
}

/** The program does not start. Only its owner sees the output. */
@Serializable('output')
export class ProgramStartError extends refusedBy('start', 'upstream', 'upstream_error') {
  /** @param output the last output of the program, without its secrets; empty without any */
  constructor(
    message: string,
    detail?: unknown,
    readonly output = '',
  ) {
    super(message, detail);
  }
}

/** The program crashed repeatedly and is started again only after a back-off. */
@Serializable('retryAfterSeconds')
export class ProgramRestingError extends refusedBy('resting', 'unavailable', 'upstream_error') {
  constructor(
    message: string,
    override readonly retryAfterSeconds: number,
  ) {
    super(message);
  }
}

@Serializable()
export class ProgramBusyError extends refusedBy('busy', 'rate_limited', 'rate_limited') {
  override readonly retryAfterSeconds = 1;
}

/** A request exceeded a limit, named by `outcome`, and was aborted. */
@Serializable('outcome')
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

@Serializable()
export class ProgramCrashedError extends HostedFailure {
  readonly kind = 'upstream';
  readonly code = 'upstream_error';
  readonly outcome = 'exception';
}

/** Returns the failure of a hosted program behind an error of a caller; null for any other failure. */
export function hostedFailureIn(error: unknown): HostedFailure | null {
  for (let cause = error, hops = 0; cause instanceof Error && hops < 4; hops += 1) {
    if (cause instanceof HostedFailure) return cause;
    cause = (cause as { detail?: unknown }).detail;
  }
  return null;
}

export function messageForOwner(failure: Error): string {
  const hosted = hostedFailureIn(failure);
  return (hosted instanceof ProgramStartError && hosted.output) || failure.message;
}
