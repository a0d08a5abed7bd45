import type { ListenFilter } from '../../../mcp/channel.js';
import {
  UplinkBusyError,
  UplinkDisconnectedError,
  UpstreamError,
  UpstreamFailure,
  UpstreamTimeoutError,
} from '../../../mcp/mcp-errors.js';
import type { ServerHello } from '../../../mcp/protocol.js';

/** What one process asks of the one that holds a tunnel; the params of a request follow on the lines after it. */
export type InternalAsk =
  | { ask: 'open'; timeoutMs: number }
  | { ask: 'request'; timeoutMs: number; method: string; hasParams: boolean; wantsNotifications: boolean }
  | { ask: 'listen'; timeoutMs: number; filter: ListenFilter };

/** One line of the answer. `text` is a message of the local server, untouched. */
export type InternalLine =
  | { line: 'hello'; hello: ServerHello }
  | { line: 'notification'; method: string; text: string }
  | { line: 'reply'; text: string }
  | { line: 'listening'; honoured: ListenFilter }
  | { line: 'end' }
  | { line: 'failure'; failure: WiredFailure };

/** A failure as it goes from process to process. */
export interface WiredFailure {
  is: 'timeout' | 'disconnected' | 'busy' | 'other';
  message: string;
  outcomeUnknown: boolean;
}

/** @throws the error itself when it is none that a caller may read */
export function toWire(error: unknown): WiredFailure {
  if (!(error instanceof UpstreamFailure)) throw error;
  const { message, outcomeUnknown } = error;
  if (error instanceof UpstreamTimeoutError) return { is: 'timeout', message, outcomeUnknown };
  if (error instanceof UplinkDisconnectedError) return { is: 'disconnected', message, outcomeUnknown };
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
    case 'other':
      return new UpstreamError(message, undefined, outcomeUnknown);
  }
}
