/**
 * How a request ended. `ok`: the server answered, be it with an error of its own. `exception`: it failed, or wants
 * authorization. `canceled`: the caller left. `denied`: the server was not asked. `exceeded…`: it took more than it may,
 * and was ended. `responseStreamDisconnected`: its answer broke off. `unknown`: a server elsewhere did not say.
 */
export const invocationOutcomes = [
  'ok',
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

/** A console line. `level` is one of `debug`, `info`, `log`, `warn`, `error` where a runtime of ours told it. */
export interface InvocationLine {
  at: Date;
  level: string;
  message: string;
}

/** What was thrown. */
export interface InvocationException {
  at: Date;
  name: string;
  message: string;
}

/** One request to a server, as the runtime logs keep it. */
export interface Invocation {
  /** A UUID of version 7, made when the request came: the day it is kept under is read from it. */
  id: string;
  serverId: string;
  /** The release that was current; null without one. */
  releaseId: string | null;
  /** When it came. */
  at: Date;
  /** The HTTP method. */
  method: string;
  /** Without the query, which may hold a caller's secrets. */
  url: string;
  /** The JSON-RPC method; null when the message could not be read. */
  rpcMethod: string | null;
  /** The tool of a `tools/call`. */
  toolName: string | null;
  /** The HTTP status of the answer. */
  status: number;
  outcome: InvocationOutcome;
  cpuMs: number;
  wallMs: number;
  lines: InvocationLine[];
  exceptions: InvocationException[];
  /** JSON text of arguments and result, redacted; only where the server's owner asked for it. */
  payload?: { arguments: string | null; result: string | null };
}

/** More of an invocation that is recorded elsewhere, or was before. Both may come first. */
export interface InvocationPiece {
  id: string;
  serverId: string;
  /** Overrules what the record says. */
  outcome?: InvocationOutcome;
  /** Overrules what the record says. */
  cpuMs?: number;
  lines: InvocationLine[];
  exceptions: InvocationException[];
}
