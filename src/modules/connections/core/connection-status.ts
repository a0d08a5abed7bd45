import type { RequiredInputs } from '../../run/run.errors.js';
import { PAIR_COMMAND } from '../../../config/published-clients.js';
import { type CallFailure, failureOf } from '../../../mcp/protocol/failures.js';
import { bearerChallenge } from '../../../mcp/oauth/challenges.js';
import { toStorableText } from '../../../platform/database/storable.js';
import { visible } from '../../../platform/text/quoted.js';
import { originalOf } from './connections.errors.js';

/** States of a connection. `connected` is written only after a real round trip. */
export const connectionStates = ['connected', 'disconnected', 'auth_required', 'input_required', 'error'] as const;
export type ConnectionState = (typeof connectionStates)[number];

/**
 * When a connection is rechecked without a call. `soon`: after a minute, then at growing intervals up to an hour.
 * `seldom`: after CONNECTION_RECHECK_HOURS without a call. `never`: only its user can change the state.
 */
export type Pace = 'soon' | 'seldom' | 'never';

const broken = { state: 'error', pace: 'soon' } as const;
const ended = { state: 'error', pace: 'never' } as const;
const login = { state: 'auth_required', pace: 'never' } as const;
const values = { state: 'input_required', pace: 'never' } as const;

export const statusReasons = {
  ok: { state: 'connected', pace: 'seldom', nextStep: null },
  never_called: { state: 'disconnected', pace: 'soon', nextStep: 'Call one of its tools.' },
  uplink_waiting: {
    state: 'disconnected',
    pace: 'never',
    nextStep: `Start the local server with ${PAIR_COMMAND}: it pairs by itself.`,
  },
  uplink_failed: { ...ended, nextStep: `Fix the local server, and start it with ${PAIR_COMMAND}.` },
  unauthorized: {
    ...login,
    nextStep: 'Open setupUrl in a browser, or PUT the connection with headers the server accepts.',
  },
  insufficient_scope: { ...login, nextStep: 'Open setupUrl in a browser and grant the requested scopes.' },
  authorization_ended: { ...login, nextStep: 'Open setupUrl in a browser and authorize again.' },
  scopes_refused: {
    ...ended,
    nextStep: 'Ask the operator of the MCP server why it rejects the granted scopes. Other tools may still work.',
  },
  missing_values: {
    ...values,
    nextStep: 'Open setupUrl in a browser, or PUT the connection with the missing headers and query values.',
  },
  invalid_values: { ...values, nextStep: 'Open setupUrl in a browser, or PUT the connection with other values.' },
  authorization_unavailable: {
    ...broken,
    nextStep:
      'Wait: Slipway retries automatically with the stored authorization. If the error persists, open setupUrl in a browser ' +
      'and authorize again.',
  },
  not_mcp: { ...broken, nextStep: 'Check the path of mcpUrl, and create a new connection with the right one.' },
  loop: {
    ...broken,
    nextStep:
      'The URL is an address of this service: create a new connection with the mcpUrl of the MCP server itself.',
  },
  blocked: { ...broken, nextStep: 'Ask the operator of this service to add the address to EGRESS_ALLOW.' },
  forbidden: { ...broken, nextStep: 'PUT the connection with headers that give access.' },
  timeout: { ...broken, nextStep: 'Wait: Slipway rechecks automatically. Read the diagnosis if the error persists.' },
  unreachable: {
    ...broken,
    nextStep: 'Check the address. If it is right, wait: Slipway rechecks automatically. The diagnosis has the details.',
  },
  rate_limited: {
    ...broken,
    nextStep:
      'Wait: Slipway rechecks automatically. If the error persists, call the MCP server less often, or ask its operator ' +
      'for a higher limit.',
  },
  server_error: {
    ...broken,
    nextStep:
      'Wait: Slipway rechecks automatically. If the error persists, ask the operator of the MCP server: it is reachable, ' +
      'but responds with an error.',
  },
  unreadable: {
    ...broken,
    nextStep:
      'Check the path of mcpUrl. If it is right, ask the operator of the MCP server: its responses cannot be read.',
  },
  not_runnable: { ...broken, nextStep: 'Publish a release of the server that runs here.' },
  server_deleted: { ...ended, nextStep: 'Delete the connection: its server was deleted.' },
  internal: {
    ...broken,
    nextStep: 'Wait: Slipway rechecks automatically. If the error persists, PUT the connection with its headers again.',
  },
  source_waiting: {
    ...broken,
    nextStep: 'Ask the operator of this service to enable hosting. The connection then works without a change.',
  },
} as const satisfies Record<string, { state: ConnectionState; pace: Pace; nextStep: string | null }>;
export type StatusReason = keyof typeof statusReasons;

/** Authorizations for the same scopes within an hour, before the status becomes `scopes_refused`. */
export const STEP_UPS_MAX = 2;

export interface ConnectionStatus {
  state: ConnectionState;
  reason: StatusReason;
  /** Message of the status; null while connected. */
  message: string | null;
  /** Required values; null unless values are missing or invalid. */
  inputs: RequiredInputs | null;
  /** Null without a 401 or 403. */
  challenges: string[] | null;
}

function status(
  reason: StatusReason,
  message: string | null,
  { inputs = null, challenges = null }: Partial<Pick<ConnectionStatus, 'inputs' | 'challenges'>> = {},
): ConnectionStatus {
  const { state } = statusReasons[reason];
  return { state, reason, message: message && toStorableText(message), inputs, challenges };
}

export const neverCalled = status('never_called', 'Not called yet.');

/**
 * Returns the next step. The command that pairs a local server names this service: without its variables, that program sends the key to another service.
 *
 * @param baseUrl address of this service
 */
export function nextStepOf(reason: StatusReason, baseUrl: string): string | null {
  return statusReasons[reason].nextStep?.replaceAll('{url}', baseUrl) ?? null;
}

export const uplinkWaiting = status('uplink_waiting', 'No local server is paired.');

export function uplinkFailed(message: string): ConnectionStatus {
  return status('uplink_failed', message);
}

export const connected = status('ok', null);

export const failedInside = status(
  'internal',
  'The check failed inside Slipway: its operator finds the error in the log of the service.',
);

export function requestedScopes({ challenges }: Pick<ConnectionStatus, 'challenges'>): string {
  return bearerChallenge(challenges ?? [])?.scope ?? '';
}

export function scopesRefused({ challenges }: ConnectionStatus): ConnectionStatus {
  const scopes = visible(requestedScopes({ challenges }), 200);
  const requested = scopes === '' ? 'more scopes' : `the scopes "${scopes}"`;
  return status(
    'scopes_refused',
    `The MCP server requests ${requested} again, although they were granted ${STEP_UPS_MAX} times within the last hour: ` +
      'it does not accept the tokens of its authorization server.',
    { challenges },
  );
}

/** @returns null if the failure concerns only the call, such as a client that disconnected */
export function statusAfter(failure: unknown): ConnectionStatus | null {
  const error = originalOf(failure);
  const { reason } = failureOf(error);
  if (reason === null) return null;
  const { aboutTarget, inputs, challenges } = error as CallFailure & Partial<ConnectionStatus>;
  return status(reason, aboutTarget, { inputs, challenges: challenges?.map(toStorableText) });
}
