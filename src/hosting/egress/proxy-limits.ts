/** Limits of one program's egress proxy. */
export interface ProxyLimits {
  /** Concurrent requests, WebSockets and raw connections; as many idle sockets again may stay open. */
  atOnceMax: number;
  /** Timeout of requests above this number. */
  waitMs: number;
  /** Sockets from the program to the proxy, each with one request at a time: also the limit of waiting requests. */
  socketsMax: number;
  /** Header size of one request or answer, the limit of the parsers on both sides. */
  headerBytes: number;
  /** Time from the first byte of a request to the end of its headers. */
  headersMs: number;
  /** Idle timeout of an HTTP exchange, and of a WebSocket or raw connection. */
  idleMs: number;
  tunnelIdleMs: number;
  /** Total timeout of an HTTP exchange, and of a WebSocket or raw connection. */
  totalMs: number;
  tunnelTotalMs: number;
  /** Lines about refusals in the program's log. */
  linesPerMinute: number;
}

/** Bodies are streamed and have no limit. 16 KB of headers is the limit of `Egress`. */
export const PROXY_LIMITS: ProxyLimits = {
  atOnceMax: 32,
  waitMs: 10_000,
  socketsMax: 512,
  headerBytes: 16 * 1024,
  headersMs: 10_000,
  idleMs: 300_000,
  tunnelIdleMs: 300_000,
  totalMs: 3_600_000,
  tunnelTotalMs: 3_600_000,
  linesPerMinute: 20,
};
