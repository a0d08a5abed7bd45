import type { Readable } from 'node:stream';

/** Whose program it is: the hosted release of a server, or the module of a connection. */
export type ProgramKind = 'release' | 'source';

/** Names one version of a program, and says what must be known before it is loaded: where it may run. */
export interface ProgramRef {
  kind: ProgramKind;
  /** A new version has another id: the release's, or the connection's (a connection's module never changes). UUID. */
  id: string;
  /** Whose it is in all its versions: the server's or the connection's id. Its state on disk and its host go by this. */
  ownerId: string;
  /** What runs it. */
  engine: EngineName;
  /** It keeps sessions on the disk of its host, so it must run in exactly one. */
  isStateful: boolean;
}

/** `worker`: an ES module in workerd. `bundle`: an MCPB bundle, one child process for each session. */
export type EngineName = 'worker' | 'bundle';

/** What a program is given beside its code, and may be given anew. Holds secrets in clear. */
export type ProgramValues = Pick<Program, 'secrets' | 'egressAllow'>;

/** All that running a program needs. Holds secrets in clear: load it late, keep it short, never log it. */
export interface Program {
  ref: ProgramRef;
  /** A local file, there while the program starts: the ES module (`worker`) or the bundle's zip (`bundle`). */
  file: string;
  /** Values by name, given to the code as bindings (`worker`) or environment (`bundle`). */
  secrets: Record<string, string>;
  /** JSON Schema of what a caller may configure by query; null for anything. */
  configSchema: Record<string, unknown> | null;
  /** The only hosts its code may reach, such as `api.example.com` or `*.example.com`; null: any public one. */
  egressAllow: string[] | null;
}

/** What one program may take. All of it is set by `RUNTIME_…`. */
export interface ProgramLimits {
  /** CPU time of one request. */
  cpuMs: number;
  /** From the request to the end of its answer; event streams that stay open are not counted. */
  wallMs: number;
  /** What its code may allocate. */
  memoryMb: number;
  /** Of one answer. */
  responseBytes: number;
  /** Console lines and exceptions of one request. */
  logBytes: number;
  /** Requests it answers at once; more are refused. */
  concurrency: number;
}

/** One HTTP request to a program. */
export interface HostedRequest {
  method: string;
  /** Path and query, as the code sees them. */
  path: string;
  /** Lower-case names. `host` is what the code sees as its own. */
  headers: Record<string, string | string[]>;
  body?: string | Buffer | Readable;
  /** An event stream that stays open (GET): it has no deadline and holds no place of a call. */
  isStream: boolean;
}

/** How the runtime saw a request end, where it knows better than the caller. */
export type RuntimeOutcome =
  | 'ok'
  | 'exception'
  | 'canceled'
  | 'exceededCpu'
  | 'exceededMemory'
  | 'exceededWall'
  | 'exceededResponse'
  | 'responseStreamDisconnected';

/** A console line. */
export interface TraceLine {
  /** Milliseconds since 1970. */
  at: number;
  level: 'debug' | 'info' | 'log' | 'warn' | 'error';
  message: string;
}

/** What the code threw, or why the runtime ended it. */
export interface TraceException {
  /** Milliseconds since 1970. */
  at: number;
  name: string;
  message: string;
  stack?: string;
}

/** What the runtime saw of one request. It may be told in several pieces: lines come late. */
export interface Trace {
  ref: ProgramRef;
  /** The id the request came with ({@link INVOCATION_HEADER}), or one made here: a UUID of version 7. */
  invocationId: string;
  /** Set in one piece when the request came without an id, so that nobody else keeps a record of it. */
  request?: { at: number; method: string; path: string; status: number; rpcMethod: string | null };
  outcome?: RuntimeOutcome;
  /** CPU time of this request, as far as it can be told from its neighbours. */
  cpuMs?: number;
  wallMs?: number;
  lines: TraceLine[];
  exceptions: TraceException[];
  /** Lines were left out: there were more than `logBytes`. */
  isTruncated?: boolean;
}

/**
 * Carries the invocation's id to the program. Set by whoever records the invocation; never taken from outside, never
 * seen by the code.
 */
export const INVOCATION_HEADER = 'x-slipway-invocation';

/**
 * Names a session of a program that keeps them, as it opens or ends: whoever opens it again goes on with it. A program that
 * keeps it answers the opening with the same header. Set by this service alone, never seen by the code.
 */
export const SESSION_HEADER = 'x-slipway-session';

/** Where a module that exports `createAuthAdapter` is asked for authorizations of its users; only by this service. */
export const AUTH_ADAPTER_PATH = '/__smithery/auth';

/** Carries the MCP method of the message, for the record of a request without an id. */
export const RPC_METHOD_HEADER = 'x-slipway-rpc-method';
