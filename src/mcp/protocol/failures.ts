/**
 * The one table of the failures of a call. An error names its row by `failure`, and the row decides the response over
 * HTTP and over JSON-RPC, the outcome in the logs, the reason of a connection's status, the step of its diagnosis, and
 * whether a request may be sent again.
 *
 * Errors other than a {@link CallFailure} have one of two rows: a DomainError is a rejection by this service, anything
 * else is an internal error.
 */
import { DomainError, type ErrorKind } from '../../platform/errors/domain-error.js';
import { rpcCode } from './protocol.js';

/** Other rows state only what differs. */
const upstream = {
  kind: 'upstream' as ErrorKind,
  code: 'upstream_error',
  /** Code of the JSON-RPC error; null: the response is an HTTP status, with `Retry-After` if the error has one. */
  rpc: rpcCode.upstreamError as number | null,
  /** Outcome of the call in the logs of a connection. `denied`: rejected by Slipway, or a user must act first. */
  outcome: 'exception' as 'canceled' | 'denied' | 'exception',
  /** Reason of the connection's status afterwards; null if the failure concerns only the call. */
  reason: null,
  /** Step of a diagnosis at which it appears. */
  step: 'http' as 'http' | 'era' | 'authorization',
  /** The request might have run, unless the error overrides this by `outcomeUnknown`: it must not be repeated. */
  mayHaveRun: false as boolean,
  isReadAgain: false as boolean,
  /** The message can name the address of the server. */
  namesAddress: true as boolean,
};
const nameless = { ...upstream, namesAddress: false };
const refused = { ...nameless, outcome: 'denied' } as const;
/** Row of a call that needs a user to authorize or to enter values first. */
const person = { ...refused, kind: 'conflict', step: 'authorization' } as const;
const login = { ...person, code: 'auth_required', rpc: rpcCode.authRequired };
const values = { ...person, code: 'input_required', rpc: rpcCode.inputRequired };
const invalid = { kind: 'invalid', code: 'validation_error' } as const;
const unrunnable = { kind: 'conflict', code: 'not_runnable' } as const;
const late = { kind: 'timeout', code: 'timeout' } as const;
const away = { kind: 'unavailable', code: 'unavailable' } as const;

const rows = {
  /** No connection, or one that broke before the response. */
  unreachable: { ...upstream, reason: 'unreachable', isReadAgain: true },
  'rate limited': { ...upstream, reason: 'rate_limited', isReadAgain: true },
  /** 429, and 503 with `Retry-After`. */
  'told to wait': { ...upstream, kind: 'rate_limited', code: 'rate_limited', reason: 'rate_limited' },
  'away for now': { ...upstream, ...away, reason: 'server_error' },
  /** Another HTTP status that is not an MCP response. */
  'server error': { ...upstream, reason: 'server_error', isReadAgain: true },
  /** The host answers, but not as an MCP server. */
  'wrong path': { ...upstream, reason: 'not_mcp' },
  /** 403 without a challenge. */
  forbidden: { ...upstream, reason: 'forbidden', step: 'authorization' },
  /** Blocked by the egress policy. */
  blocked: { ...upstream, reason: 'blocked' },
  /** The address leads back to this service. */
  loop: { ...upstream, reason: 'loop' },
  /** No supported revision. */
  'not our MCP': { ...upstream, reason: 'server_error', step: 'era' },
  /** A JSON-RPC error instead of a session. */
  refused: { ...upstream, reason: 'server_error' },
  /** A list is rejected or malformed. */
  'broken list': { ...upstream, reason: 'server_error' },
  /** A malformed response, which may occur again. */
  unreadable: { ...upstream, reason: 'unreadable', mayHaveRun: true },

  timeout: { ...upstream, ...late, rpc: rpcCode.timeout, reason: 'timeout' },
  'caller left': { ...nameless, ...late, rpc: rpcCode.cancelled, outcome: 'canceled', mayHaveRun: true },
  restarting: { ...upstream, ...away, reason: 'unreachable', mayHaveRun: true },
  'no tunnel': { ...upstream, ...away, code: 'uplink_disconnected', outcome: 'denied', reason: 'uplink_waiting' },
  'server deleted': { ...upstream, reason: 'server_deleted' },
  /** The upstream requires input from its user, and the caller cannot forward the request. */
  'input needed': { ...upstream, kind: 'conflict', code: 'input_required' },
  busy: { ...nameless, kind: 'rate_limited', code: 'rate_limited' },
  'not hosted': { ...nameless, ...unrunnable, reason: 'source_waiting' },
  'host away': { ...nameless, ...away, rpc: null },

  unauthorized: { ...login, reason: 'unauthorized' },
  'insufficient scope': { ...login, reason: 'insufficient_scope' },
  'authorization ended': { ...login, reason: 'authorization_ended' },
  'missing values': { ...values, reason: 'missing_values' },
  'invalid values': { ...values, ...invalid, rpc: rpcCode.invalidParams, reason: 'invalid_values' },

  'no token': { ...refused, reason: 'authorization_unavailable' },
  'not runnable': { ...refused, ...unrunnable, rpc: rpcCode.notRunnable, reason: 'not_runnable' },
  /** A server of this service that the account has no access to. */
  'access required': { ...refused, kind: 'forbidden', code: 'access_required', rpc: null },
  suspended: { ...refused, kind: 'forbidden', code: 'suspended', rpc: null },
  'passed before': { ...refused, kind: 'invalid', code: 'loop', rpc: rpcCode.loop },

  'other refusal': refused,
  'internal fault': { ...nameless, kind: 'internal', code: 'internal', rpc: null },
} as const;

export type FailureName = keyof typeof rows;

export type Failure = Omit<typeof upstream, 'reason'> & { reason: (typeof rows)[FailureName]['reason'] };

export const failures: Record<FailureName, Failure> = rows;

export abstract class CallFailure extends DomainError {
  abstract readonly failure: FailureName;
  readonly data?: unknown;

  /** Row of the table. An error from a process of a newer version can have a row that is unknown here. */
  get row(): Failure {
    return (failures as Partial<typeof failures>)[this.failure] ?? failures.unreachable;
  }

  get kind(): ErrorKind {
    return this.row.kind;
  }

  get code(): string {
    return this.row.code;
  }

  /** The message without the consequence for the call. */
  get aboutTarget(): string {
    return this.message;
  }
}

export function failureOf(error: unknown): Failure {
  if (error instanceof CallFailure) return error.row;
  return error instanceof DomainError ? failures['other refusal'] : failures['internal fault'];
}
