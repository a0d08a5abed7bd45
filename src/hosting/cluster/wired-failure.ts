import {
  HostAwayError,
  HostedFailure,
  HostingUnavailableError,
  LimitExceededError,
  ProgramBusyError,
  ProgramCrashedError,
  ProgramRestingError,
  ProgramStartError,
} from '../hosting.errors.js';

/** A failure as it goes from process to process. */
export interface WiredFailure {
  /** The class; `broken` for an answer that broke off, as undici says it. */
  is: string;
  message: string;
  outcome?: string;
  retryAfterSeconds?: number;
  /** undici's or the socket's. */
  code?: string;
}

/** A program's last words may be longer; each character takes up to six bytes of the 128 KB a failure may have there. */
const MESSAGE_CHARS_MAX = 16_000;

type Revive = (wired: WiredFailure) => HostedFailure;

const classes: Record<string, Revive> = {
  HostingUnavailableError: ({ message }) => new HostingUnavailableError(message),
  HostAwayError: ({ message, retryAfterSeconds = 1 }) => new HostAwayError(message, retryAfterSeconds),
  ProgramRestingError: ({ message, retryAfterSeconds = 1 }) => new ProgramRestingError(message, retryAfterSeconds),
  ProgramStartError: ({ message }) => new ProgramStartError(message),
  ProgramBusyError: ({ message }) => new ProgramBusyError(message),
  ProgramCrashedError: ({ message }) => new ProgramCrashedError(message),
  LimitExceededError: ({ message, outcome }) =>
    new LimitExceededError(outcome as LimitExceededError['outcome'], message),
};

/** What another process may know of it: all its caller may, and of other errors what undici's callers look at. */
export function toWire(error: Error): WiredFailure {
  const { name } = error;
  const message = cut(error.message);
  if (!(error instanceof HostedFailure)) return { is: 'broken', message, code: (error as NodeJS.ErrnoException).code };
  const { outcome, retryAfterSeconds } = error;
  return { is: name, message, outcome, retryAfterSeconds };
}

/** The failure that {@link toWire} was given. One of a class this version does not know is a crash: the careful reading. */
export function fromWire(wired: WiredFailure): Error {
  if (wired.is === 'broken') return Object.assign(new Error(wired.message), { code: wired.code });
  return (classes[wired.is] ?? classes.ProgramCrashedError)(wired);
}

function cut(message: string): string {
  return message.length > MESSAGE_CHARS_MAX ? `${message.slice(0, MESSAGE_CHARS_MAX)}…` : message;
}
