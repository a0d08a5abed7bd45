/**
 * How a request ended: `ok` the server answered, be it with an error of its own; `exception` it failed, or wants
 * authorization; `canceled` the caller left; `denied` it was not asked.
 */
export type InvocationOutcome = 'ok' | 'exception' | 'canceled' | 'denied';

/** One request to a server, as the runtime logs keep it. */
export interface Invocation {
  serverId: string;
  /** The release that was current; null without one. */
  releaseId: string | null;
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
  /** What went wrong, for the server's owner; null when nothing did. */
  failure: { name: string; message: string } | null;
  wallMs: number;
  /** When it came. */
  at: Date;
}

/**
 * Hears of every POST to a run endpoint that names a server and comes with a valid key, failed and denied ones included.
 * What is done here is done on the way of a call, so it must be short, and must not throw.
 */
export abstract class InvocationObserver {
  /** Whether {@link finished} is called. No record is made up while nobody wants one. */
  abstract readonly wantsRecords: boolean;

  /** A request for this server came. */
  abstract started(serverId: string): void;

  abstract finished(invocation: Invocation): void;
}

/** Keeps nothing. */
export class NoInvocations extends InvocationObserver {
  readonly wantsRecords = false;

  started(_serverId: string): void {}

  finished(_invocation: Invocation): void {}
}
