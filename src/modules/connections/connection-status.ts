import { UpstreamAuthRequiredError, type UpstreamFailure } from '../../mcp/mcp-errors.js';
import { toStorableText } from '../../platform/database/storable.js';

/** Every state a connection may be in. `connected` is written only after a real round trip. */
export const connectionStates = ['connected', 'disconnected', 'auth_required', 'error'] as const;
export type ConnectionState = (typeof connectionStates)[number];

/** What was last seen of the upstream. */
export interface ConnectionStatus {
  state: ConnectionState;
  /** What happened and what to do; null while there is nothing to do. */
  message: string | null;
}

/** The state of a connection nobody has called yet. */
export const neverCalled: ConnectionStatus = { state: 'disconnected', message: 'Not called yet.' };

export const connected: ConnectionStatus = { state: 'connected', message: null };

/** What a failed call says of the connection. */
export function statusAfter(failure: UpstreamFailure): ConnectionStatus {
  const state = failure instanceof UpstreamAuthRequiredError ? 'auth_required' : 'error';
  return { state, message: toStorableText(failure.message) };
}
