/**
 * The errors of requests whose program was not started, was killed or has exited. Callers read them, so none repeats
 * what the program printed, which is in the log of its owner.
 *
 * `LimitExceededError` goes to the request that exceeded a limit, `ProgramCrashedError` to others in flight: these
 * might have run in part, so only the caller knows whether a retry is safe. Busy, resting, not started and unavailable
 * mean that the request did not run.
 */
import {
  HostAwayError,
  HostingUnavailableError,
  LimitExceededError,
  ProgramBusyError,
  ProgramCrashedError,
  ProgramRestingError,
  type HostedFailure,
} from '../hosting.errors.js';
import type { InstanceExit } from '../engine.js';
import type { ProgramLimits } from '../hosting.types.js';

const IN_LOG = 'Its owner finds its output in the log.';

export type KillReason = 'cpu' | 'stall' | 'memory';

export function limitError(
  reason: KillReason,
  { cpuMs, memoryMb }: ProgramLimits,
  stallMs: number,
): LimitExceededError {
  if (reason === 'memory') return overMemory(memoryMb);
  const used = reason === 'cpu' ? `used more than ${cpuMs} ms of CPU time` : `let nothing else run for ${stallMs} ms`;
  return new LimitExceededError(
    'exceededCpu',
    `The request ${used} and was stopped: look for a loop that does not end, or do less in one call.`,
  );
}

export function collateralError(): ProgramCrashedError {
  return new ProgramCrashedError(
    'The program was killed because another request to it exceeded a limit. This one may have run in part: try again.',
  );
}

/** Returns the error for memory that all requests together have exhausted. */
export function overMemory(memoryMb: number): LimitExceededError {
  return new LimitExceededError(
    'exceededMemory',
    `The program exceeded its limit of ${memoryMb} MB of memory and was killed with all its requests. Keep less in memory at a time.`,
  );
}

export function overWall(wallMs: number): LimitExceededError {
  return new LimitExceededError(
    'exceededWall',
    `The request did not finish within ${wallMs} ms and was stopped: look for a promise that never settles, or respond in parts.`,
  );
}

export function overResponse(bytes: number): LimitExceededError {
  return new LimitExceededError(
    'exceededResponse',
    `The answer is larger than ${bytes / 1_048_576} MB and was cut: answer in pages, or with a link.`,
  );
}

export function whenGone({ reason }: InstanceExit, { memoryMb }: ProgramLimits): HostedFailure {
  if (reason === 'memory') return overMemory(memoryMb);
  if (reason === 'stopped') {
    return new ProgramCrashedError(
      'The program was stopped while it worked on the request, which may have run: try again.',
    );
  }
  return new ProgramCrashedError(`The program crashed while it worked on the request, which may have run. ${IN_LOG}`);
}

/** Returns the error for a program that continues after it has closed the connection. */
export function noAnswer(): ProgramCrashedError {
  return new ProgramCrashedError(
    'The program closed the connection without a response. The request may have run: try again.',
  );
}

export function restingError(crashes: number, restMs: number): ProgramRestingError {
  const seconds = Math.ceil(restMs / 1_000);
  return new ProgramRestingError(
    `The program crashed ${crashes} times in a row and is started again in ${seconds} s. ${IN_LOG}`,
    seconds,
  );
}

export function busyError(concurrency: number): ProgramBusyError {
  return new ProgramBusyError(
    `The program has ${concurrency} requests in progress, which is its limit: try again in a moment.`,
  );
}

export function tooManyStreams(max: number): ProgramBusyError {
  return new ProgramBusyError(`The program has ${max} open event streams, which is its limit: close one first.`);
}

export function noFreePlace(): HostingUnavailableError {
  return new HostingUnavailableError(
    'The limit of running programs is reached and all of them are busy: try again in a moment. The operator can raise it (RUNTIME_LIVE_MAX).',
  );
}

export function noMemory(): HostAwayError {
  return new HostAwayError(
    'The memory of this service is used and no program is idle: try again in a moment. The operator can give it more memory, or ' +
      'run hosted code on processes of its own (ROLES=host).',
    5,
  );
}

export function overQuota(max: number): ProgramBusyError {
  return new ProgramBusyError(
    `This account is at its limit of livePrograms: ${max} of its programs run and all of them are busy. Try again in a ` +
      'moment, or ask the operator for more. GET /accounts/me/usage lists all limits.',
  );
}

export function stopping(): HostingUnavailableError {
  return new HostingUnavailableError('The service is being stopped: try again in a moment.');
}

/** Returns the error for a runtime that did not load; the log has the details. */
export function notLoaded(): HostingUnavailableError {
  return new HostingUnavailableError(
    'The program could not be loaded: try again. If this lasts, ask the operator to look into the log.',
  );
}
