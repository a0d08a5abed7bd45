import {
  CallerLeftError,
  UplinkBusyError,
  UplinkDisconnectedError,
  UpstreamAuthRequiredError,
  UpstreamError,
  UpstreamFailure,
  UpstreamTimeoutError,
} from './mcp-errors.js';

/** A failure of an upstream as it goes from process to process. */
export interface WiredFailure {
  is: 'timeout' | 'disconnected' | 'busy' | 'left' | 'auth' | 'other';
  message: string;
  outcomeUnknown: boolean;
  /** What the upstream wants, and the page where a person gives it, if there is one. */
  auth?: Pick<UpstreamAuthRequiredError, 'challenges' | 'wantsMore' | 'setupUrl'>;
}

/** @throws the error itself when it is none that a caller may read */
export function toWire(error: unknown): WiredFailure {
  if (!(error instanceof UpstreamFailure)) throw error;
  const { message, outcomeUnknown } = error;
  if (error instanceof UpstreamTimeoutError) return { is: 'timeout', message, outcomeUnknown };
  if (error instanceof UplinkDisconnectedError) return { is: 'disconnected', message, outcomeUnknown };
  if (error instanceof CallerLeftError) return { is: 'left', message, outcomeUnknown };
  if (error instanceof UpstreamAuthRequiredError) {
    const { challenges, wantsMore, setupUrl } = error;
    return { is: 'auth', message, outcomeUnknown, auth: { challenges, wantsMore, setupUrl } };
  }
  return { is: error instanceof UplinkBusyError ? 'busy' : 'other', message, outcomeUnknown };
}

/** The failure that {@link toWire} was given. */
export function fromWire({ is, message, outcomeUnknown, auth }: WiredFailure): UpstreamFailure {
  switch (is) {
    case 'timeout':
      return new UpstreamTimeoutError(message, outcomeUnknown);
    case 'busy':
      return new UplinkBusyError(message);
    case 'disconnected':
      return Object.assign(new UplinkDisconnectedError(outcomeUnknown), { message });
    case 'left':
      return new CallerLeftError();
    case 'auth': {
      const { challenges, wantsMore, setupUrl } = auth ?? {};
      return Object.assign(new UpstreamAuthRequiredError(false, challenges, wantsMore, setupUrl), { message });
    }
    case 'other':
      return new UpstreamError(message, undefined, outcomeUnknown);
  }
}
