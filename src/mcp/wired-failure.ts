import {
  CallerLeftError,
  UplinkBusyError,
  UplinkDisconnectedError,
  UpstreamError,
  UpstreamFailure,
  UpstreamTimeoutError,
} from './mcp-errors.js';

/** A failure of an upstream as it goes from process to process. */
export interface WiredFailure {
  is: 'timeout' | 'disconnected' | 'busy' | 'left' | 'other';
  message: string;
  outcomeUnknown: boolean;
}

/** @throws the error itself when it is none that a caller may read */
export function toWire(error: unknown): WiredFailure {
  if (!(error instanceof UpstreamFailure)) throw error;
  const { message, outcomeUnknown } = error;
  if (error instanceof UpstreamTimeoutError) return { is: 'timeout', message, outcomeUnknown };
  if (error instanceof UplinkDisconnectedError) return { is: 'disconnected', message, outcomeUnknown };
  if (error instanceof CallerLeftError) return { is: 'left', message, outcomeUnknown };
  return { is: error instanceof UplinkBusyError ? 'busy' : 'other', message, outcomeUnknown };
}

/** The failure that {@link toWire} was given. */
export function fromWire({ is, message, outcomeUnknown }: WiredFailure): UpstreamFailure {
  switch (is) {
    case 'timeout':
      return new UpstreamTimeoutError(message, outcomeUnknown);
    case 'busy':
      return new UplinkBusyError(message);
    case 'disconnected':
      return Object.assign(new UplinkDisconnectedError(outcomeUnknown), { message });
    case 'left':
      return new CallerLeftError();
    case 'other':
      return new UpstreamError(message, undefined, outcomeUnknown);
  }
}
