/** What one program may take of the way out. */
export interface ProxyLimits {
  /** Requests, WebSockets and raw connections under way at once; as many sockets again may be kept for the next ones. */
  atOnceMax: number;
  /** Requests that wait for one of those to end, and how long. */
  waitingMax: number;
  waitMs: number;
  /** Sockets of the program to the proxy. */
  socketsMax: number;
  /** Of one request, and of one answer: what the parsers on both sides take. */
  headerBytes: number;
  /** From the first byte of a request to the end of its headers. */
  headersMs: number;
  /** Without a byte either way: of an HTTP exchange, and of a WebSocket or raw connection. */
  idleMs: number;
  tunnelIdleMs: number;
  /** From start to end: of an HTTP exchange, and of a WebSocket or raw connection. */
  totalMs: number;
  tunnelTotalMs: number;
  /** Lines about refusals in the program's log. */
  linesPerMinute: number;
}

/** Bodies have no limit: they pass through and are held nowhere. 16 KB of headers is what `Egress` takes of an answer. */
export const PROXY_LIMITS: ProxyLimits = {
  atOnceMax: 32,
  waitingMax: 512,
  waitMs: 10_000,
  socketsMax: 512,
  headerBytes: 16 * 1024,
  headersMs: 10_000,
  idleMs: 60_000,
  tunnelIdleMs: 300_000,
  totalMs: 900_000,
  tunnelTotalMs: 3_600_000,
  linesPerMinute: 20,
};
