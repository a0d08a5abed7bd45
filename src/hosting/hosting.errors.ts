import { DomainError, errorOf } from '../platform/errors/domain-error.js';
import { Serializable } from '../platform/internal-http/error-codec.js';
import type { RuntimeOutcome } from './hosting.types.js';

/** A program did not answer. The message states the problem and a remedy, and names no machine. */
export abstract class HostedFailure extends DomainError {
  abstract readonly outcome: RuntimeOutcome;
  /** True when the code may have run: the request must not be resent automatically. */
  readonly mayHaveRun: boolean = true;
}

/** The code has not run, so the request may be resent. */
abstract class NotRunFailure extends HostedFailure {
  readonly outcome = 'exception';
  override readonly mayHaveRun = false;
}

/** The module of a hosted release is invalid; the message says where and why. */
export class InvalidModuleError extends errorOf('invalid', 'invalid_module') {}

/** No process runs hosted code, or this kind of it. */
@Serializable()
export class HostingUnavailableError extends NotRunFailure {
  readonly kind = 'unavailable';
  readonly code = 'hosting_unavailable';
}

/** The host of the program accepts no requests now; it or another one will shortly. */
@Serializable('retryAfterSeconds')
export class HostAwayError extends NotRunFailure {
  readonly kind = 'unavailable';
  readonly code: string = 'hosting_unavailable';

  constructor(
    message: string,
    override readonly retryAfterSeconds: number,
    detail?: unknown,
  ) {
    super(message, detail);
  }
}

/** The program does not start. The message holds its output. */
@Serializable()
export class ProgramStartError extends NotRunFailure {
  readonly kind = 'upstream';
  readonly code = 'upstream_error';
}

/** The program crashed repeatedly and is started again only after a back-off. The message holds its output. */
@Serializable('retryAfterSeconds')
export class ProgramRestingError extends NotRunFailure {
  readonly kind = 'unavailable';
  readonly code = 'upstream_error';

  constructor(
    message: string,
    override readonly retryAfterSeconds: number,
  ) {
    super(message);
  }
}

/** The program is at its limit of concurrent requests, or its account at that of running programs. */
@Serializable()
export class ProgramBusyError extends NotRunFailure {
  readonly kind = 'rate_limited';
  readonly code = 'rate_limited';
  override readonly retryAfterSeconds = 1;
}

/** A request exceeded a limit, named by `outcome`, and was ended. */
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

/** The program's process ended while it worked on the request. */
@Serializable()
export class ProgramCrashedError extends HostedFailure {
  readonly kind = 'upstream';
  readonly code = 'upstream_error';
  readonly outcome = 'exception';
}

/** The failure of a hosted program behind an error of a caller; null for any other failure. */
export function hostedFailureIn(error: unknown): HostedFailure | null {
  for (let cause = error, hops = 0; cause instanceof Error && hops < 4; hops += 1) {
    if (cause instanceof HostedFailure) return cause;
    cause = (cause as { detail?: unknown }).detail;
  }
  return null;
}
