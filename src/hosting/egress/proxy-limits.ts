/** Limits of the proxy. Bodies are streamed and have no limit. */
export const PROXY_LIMITS = {
  /** Concurrent requests, WebSockets and raw connections; as many idle sockets again may stay open. */
  atOnceMax: 32,
  /** Timeout of requests above this number. */
  waitMs: 10_000,
  socketsMax: 512,
  headerBytes: 16 * 1024,
  /** Time from the first byte of a request to the end of its headers. */
  headersMs: 10_000,
  idleMs: 300_000,
  tunnelIdleMs: 300_000,
  totalMs: 3_600_000,
  tunnelTotalMs: 3_600_000,
  linesPerMinute: 20,
};

export type ProxyLimits = typeof PROXY_LIMITS;
