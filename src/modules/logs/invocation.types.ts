import type { CallOrigin } from '../../mcp/protocol/channel.js';

/**
 * How a request finished. `ok`: the server returned a result. `toolError`: the result has `isError: true`. `rpcError`:
 * the server returned a JSON-RPC error. `exception`: the server failed or requires authorization. `canceled`: the
 * client cancelled the request. `denied`: rejected before the server was called. `exceeded…`: stopped because it
 * exceeded a limit. `responseStreamDisconnected`: the response broke off. `unknown`: not reported by a server that runs
 * elsewhere.
 */
export const invocationOutcomes = [
  'ok',
  'toolError',
  'rpcError',
  'exception',
  'canceled',
  'denied',
  'exceededCpu',
  'exceededMemory',
  'exceededWall',
  'exceededResponse',
  'responseStreamDisconnected',
  'unknown',
] as const;

export type InvocationOutcome = (typeof invocationOutcomes)[number];

/**
 * The outcomes of a request for which the server returned an error. The runtime of hosted code reports both as `ok`.
 */
export const answeredErrors: readonly InvocationOutcome[] = ['toolError', 'rpcError'];

/** A console line, in memory and in the table. */
export interface LogLine {
  /** Time in milliseconds since 1970. */
  at: number;
  /** `debug`, `info`, `log`, `warn` or `error` from hosted code; any string from servers that run elsewhere. */
  level: string;
  message: string;
}

/** A thrown error, in memory and in the table. */
export interface LogException {
  /** Time in milliseconds since 1970. */
  at: number;
  name: string;
  message: string;
}

/** A caller with names, which are null for a deleted account, and for a revoked key. */
export interface NamedCaller extends CallOrigin {
  accountName: string | null;
  credentialName: string | null;
}

/** The part of an invocation that each view stores. */
interface InvocationPart {
  /**
   * UUID of version 7 created when the request arrived; its time selects the partition. One per client request and
   * connection.
   */
  id: string;
  at?: number | null;
  /** HTTP method. Only in the part of the process that responded to the request, absent in later additions. */
  method?: string | null;
  /** URL without its query, which can contain credentials. */
  url?: string | null;
  /** JSON-RPC method; null if the message could not be parsed. */
  rpcMethod?: string | null;
  toolName?: string | null;
  status?: number | null;
  outcome?: InvocationOutcome | null;
  /** Null for a request of Slipway itself, and for records of servers elsewhere. */
  caller?: CallOrigin | null;
  lines: LogLine[];
  exceptions: LogException[];
}

/**
 * The server's view of a request, or a part of it. Parts with one id become one row, in any order. Outcome and CPU time of a part without
 * `method` override those of the part with it, but its `ok` does not override `toolError` and `rpcError`.
 */
export interface Invocation extends InvocationPart {
  serverId: string;
  /** The release at the time of the request; null without one. */
  releaseId?: string | null;
  cpuMs?: number | null;
  wallMs?: number | null;
  /** Arguments and result as redacted JSON, only if the owner of the server enabled this. */
  payload?: { arguments: string | null; result: string | null } | null;
  leftOut?: number;
}

/**
 * An invocation of a server that runs elsewhere, or a part of one. Parts with one `id` become one row, in any order. Only one
 * part has `method` and the other fields of the request; further parts add lines and exceptions.
 *
 * @stability preview
 */
export type IngestedInvocation = Omit<Invocation, 'serverId' | 'releaseId' | 'caller' | 'payload' | 'leftOut'>;

/** Durations in milliseconds; null if unknown. */
export interface CallDurations {
  guardMs: number | null;
  queueMs: number | null;
  connectMs: number | null;
  firstByteMs: number | null;
  totalMs: number;
}

/**
 * The connection's view of a request, or a part of it. Lines and exceptions are those of the connection's own module,
 * plus the failure that its caller received; never those of a registry server.
 */
export interface ConnectionCall extends InvocationPart {
  connectionId: string;
  timing?: CallDurations;
  /** Counts earlier calls that were too many to record. */
  leftOut?: number;
}

export type FoundCall = Omit<ConnectionCall, 'connectionId' | 'caller'> & { caller: NamedCaller | null };

/** Conditions on the requests of a server or a connection. All must hold. */
export interface CallFilter {
  /** Start of the range, inclusive. */
  from?: Date;
  /** End of the range, exclusive. */
  to?: Date;
  /** Text in a message or an exception, ignoring case; for a connection also in the tool name. */
  search?: string;
  outcome?: InvocationOutcome;
  tool?: string;
  /** Matches the name or id of an account, or the id of a credential. */
  caller?: string;
}

export interface ConnectionCallQuery extends CallFilter {
  /** Only calls of the account with this id; `search` then matches only the tool name. */
  account?: string;
}
