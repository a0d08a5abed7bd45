import type { Readable } from 'node:stream';
import { RESERVED_SEGMENT } from '../config/published-clients.js';

export type ProgramKind = 'release' | 'source';

/** Identifies one version of a program, with the facts that decide where it may run. */
export interface ProgramRef {
  kind: ProgramKind;
  /** Version id (UUID): the release's, or the connection's, whose module never changes. */
  id: string;
  /** Owner across versions: the server's or the connection's id. Key of its state on disk and of its host. */
  ownerId: string;
  engine: EngineName;
  /** True if it stores sessions on the disk of its host, so that exactly one host must run it. */
  isStateful: boolean;
}

/** `worker`: an ES module in workerd. `bundle`: an MCPB bundle, one child process per session. */
export type EngineName = 'worker' | 'bundle';

/** Changeable inputs of a program. Contains secrets in clear. */
export type ProgramValues = Pick<Program, 'secrets' | 'egressAllow'>;

export interface ProgramQuota {
  accountId: string;
  max: number;
}

/** A program with its secrets in clear: load it late, discard it early, never log it. */
export interface Program {
  ref: ProgramRef;
  file: string;
  /** Secrets by name, passed as bindings (`worker`) or environment (`bundle`). */
  secrets: Record<string, string>;
  /** JSON Schema of the caller's configuration in the query; null for anything. */
  configSchema: Record<string, unknown> | null;
  /** Allowed hosts, such as `api.example.com` or `*.example.com`; null for any public one. */
  egressAllow: string[] | null;
}

/** Limits of one program, set by `RUNTIME_…`. */
export interface ProgramLimits {
  cpuMs: number;
  /** Time from the request to the end of its response, except for event streams. */
  wallMs: number;
  memoryMb: number;
  responseBytes: number;
  /** Size of console lines and exceptions of one request. */
  logBytes: number;
  /** Concurrent requests; more are refused. */
  concurrency: number;
}

/**
 * Memory beyond {@link ProgramLimits.memoryMb} that a program or a session of a bundle may use, in MB: workerd takes 18 at
 * rest, Node 45, plus garbage and buffers under load.
 */
export const MEMORY_BASE_MB = 128;

export interface HostedRequest {
  method: string;
  path: string;
  /** Headers by lower-case names. `host` is the program's own host name. */
  headers: Record<string, string | string[]>;
  body?: string | Buffer | Readable;
  /** True for a long-lived event stream (GET): it has no deadline and does not count as a call. */
  isStream: boolean;
}

export type RuntimeOutcome =
  | 'ok'
  | 'exception'
  | 'canceled'
  | 'exceededCpu'
  | 'exceededMemory'
  | 'exceededWall'
  | 'exceededResponse'
  | 'responseStreamDisconnected';

export interface TraceLine {
  /** Time in ms since 1970. */
  at: number;
  level: 'debug' | 'info' | 'log' | 'warn' | 'error';
  message: string;
}

/** Added to the size of each line, so that empty lines count towards the limit. */
export const LINE_BYTES = 16;

/** Limit of finished requests of one program that are remembered for late output; the oldest is forgotten. */
export const ENDED_MAX = 10_000;

export function cutLine(logBytes: number): string {
  return `Lines were left out: one request may log ${Math.floor(logBytes / 1_024)} KB.`;
}

export interface TraceException {
  /** Time in ms since 1970. */
  at: number;
  name: string;
  message: string;
  stack?: string;
}

/** Observations of one request. May arrive in several parts, since console lines are delayed. */
export interface Trace {
  ref: ProgramRef;
  /** Id from {@link INVOCATION_HEADER}, or one created here: a UUID of version 7. */
  invocationId: string;
  /** The request, in one part of its traces, if it had no id: no other record of it exists. */
  request?: { at: number; method: string; path: string; status: number; rpcMethod: string | null };
  outcome?: RuntimeOutcome;
  /** CPU time of this request, estimated if requests ran concurrently. */
  cpuMs?: number;
  wallMs?: number;
  lines: TraceLine[];
  exceptions: TraceException[];
  /** True if lines were omitted above `logBytes`. */
  isTruncated?: boolean;
}

/**
 * Header with the invocation's id. Set by the recorder of the invocation; removed from external requests and before the
 * code sees the request.
 */
export const INVOCATION_HEADER = 'x-slipway-invocation';

/**
 * Header that names a session of a stateful program when it is opened or closed; opening it again continues it. A
 * program that stores sessions repeats the header in its response. Set by this service only, and removed before the
 * code sees the request.
 */
export const SESSION_HEADER = 'x-slipway-session';

/**
 * Header of the requests of a scan: responses contain the messages of the code's errors, since only its author reads
 * them. Set by this service only, and removed before the code sees the request.
 */
export const SCAN_HEADER = 'x-slipway-scan';

/** Path of the authorization requests to a module that exports `createAuthAdapter`; used by this service only. */
export const AUTH_ADAPTER_PATH = `/${RESERVED_SEGMENT}/auth`;

/** Header with the MCP method, for the record of a request without an id. */
export const RPC_METHOD_HEADER = 'x-slipway-rpc-method';
