import { InputInvalidError, InputRequiredError, NotRunnableError, ServerGoneError } from '../releases/run.errors.js';
import { AuthorizationRequiredError, CredentialUnavailableError } from '../credentials/credentials.errors.js';
import {
  CallerLeftError,
  UplinkBusyError,
  UplinkDisconnectedError,
  UpstreamAuthRequiredError,
  UpstreamError,
  UpstreamFailure,
  UpstreamTimeoutError,
} from '../../mcp/mcp-errors.js';
import { toStorableText } from '../../platform/database/storable.js';
import { SourceNotRunnableError } from './connections.errors.js';
import type { StatusInputs } from './connection.types.js';

/** Every state a connection may be in. `connected` is written only after a real round trip. */
export const connectionStates = ['connected', 'disconnected', 'auth_required', 'input_required', 'error'] as const;
export type ConnectionState = (typeof connectionStates)[number];

/** Why a connection is in its state: the state it means, and what its user can do. */
export const statusReasons = {
  ok: { state: 'connected', nextStep: null },
  never_called: { state: 'disconnected', nextStep: 'Call one of its tools.' },
  uplink_waiting: {
    state: 'disconnected',
    nextStep: 'Start the local server with `smithery mcp add --id <connectionId> -- <command>`: it pairs by itself.',
  },
  uplink_failed: {
    state: 'error',
    nextStep: 'Mend the local server, and start it with `smithery mcp add --id <connectionId> -- <command>`.',
  },
  unauthorized: {
    state: 'auth_required',
    nextStep: 'Open setupUrl in a browser, or PUT the connection with headers the server accepts.',
  },
  insufficient_scope: { state: 'auth_required', nextStep: 'Open setupUrl in a browser and grant what it asks for.' },
  authorization_ended: { state: 'auth_required', nextStep: 'Open setupUrl in a browser and authorize once more.' },
  missing_values: {
    state: 'input_required',
    nextStep: 'Open setupUrl in a browser, or PUT the connection with the missing headers and query values.',
  },
  invalid_values: {
    state: 'input_required',
    nextStep: 'Open setupUrl in a browser, or PUT the connection with other values.',
  },
  authorization_unavailable: {
    state: 'error',
    nextStep: 'Wait: Slipway tries again by itself, and the authorization is kept.',
  },
  not_mcp: { state: 'error', nextStep: 'Check the path of mcpUrl, and create the connection anew with the right one.' },
  blocked: { state: 'error', nextStep: 'Ask the operator of this service to add the address to EGRESS_ALLOW.' },
  forbidden: { state: 'error', nextStep: 'PUT the connection with headers that give access.' },
  timeout: { state: 'error', nextStep: 'Wait: Slipway looks again by itself. Read the diagnosis if it stays so.' },
  unreachable: { state: 'error', nextStep: 'Wait: Slipway looks again by itself. Read the diagnosis if it stays so.' },
  not_runnable: { state: 'error', nextStep: 'Publish a release of the server that runs here.' },
  server_deleted: { state: 'error', nextStep: 'Delete the connection: its server is gone.' },
  source_waiting: { state: 'error', nextStep: 'Nothing: it runs once hosting is enabled on this service.' },
} as const satisfies Record<string, { state: ConnectionState; nextStep: string | null }>;
export type StatusReason = keyof typeof statusReasons;

/** What was last seen of the upstream. */
export interface ConnectionStatus {
  state: ConnectionState;
  reason: StatusReason;
  /** What happened; null while there is nothing to say. */
  message: string | null;
  /** What it asks for; null unless it waits for values. */
  inputs: StatusInputs | null;
}

function status(reason: StatusReason, message: string | null, inputs: StatusInputs | null = null): ConnectionStatus {
  return { state: statusReasons[reason].state, reason, message: message && toStorableText(message), inputs };
}

/** The state of a connection nobody has called yet. */
export const neverCalled = status('never_called', 'Not called yet.');

/** The state of an uplink without a tunnel. */
export const uplinkWaiting = status('uplink_waiting', 'No local server is paired.');

/** The state of an uplink whose local server, or the way to it, does not speak MCP. */
export function uplinkFailed(message: string): ConnectionStatus {
  return status('uplink_failed', message);
}

export const connected = status('ok', null);

/** What a failed call says of the connection; null when it says nothing: a caller that left, one too many. */
export function statusAfter(error: unknown): ConnectionStatus | null {
  if (error instanceof CallerLeftError || error instanceof UplinkBusyError) return null;
  if (error instanceof InputRequiredError) return status('missing_values', error.message, error.data);
  if (error instanceof InputInvalidError) return status('invalid_values', error.message, null);
  const reason = reasonOf(error);
  return reason && status(reason, (error as Error).message);
}

function reasonOf(error: unknown): StatusReason | null {
  if (error instanceof UpstreamAuthRequiredError) return error.wantsMore ? 'insufficient_scope' : 'unauthorized';
  if (error instanceof AuthorizationRequiredError) return 'authorization_ended';
  if (error instanceof CredentialUnavailableError) return 'authorization_unavailable';
  if (error instanceof UplinkDisconnectedError) return 'uplink_waiting';
  if (error instanceof SourceNotRunnableError) return 'source_waiting';
  if (error instanceof NotRunnableError) return 'not_runnable';
  if (error instanceof ServerGoneError) return 'server_deleted';
  if (error instanceof UpstreamTimeoutError) return 'timeout';
  if (error instanceof UpstreamError && error.hint === 'blocked') return 'blocked';
  if (error instanceof UpstreamError && error.hint === 'wrong path') return 'not_mcp';
  if (error instanceof UpstreamError && error.hint === 'forbidden') return 'forbidden';
  return error instanceof UpstreamFailure ? 'unreachable' : null;
}
