/** Maximum number of traces of all servers (about 2 MB), and lifetime after the last record of a trace. */
const TRACES_MAX = 10_000;
const LIFETIME_MS = 15 * 60_000;

/**
 * Caches when traces started: their records may come in several exports, seconds apart, and the id of an invocation contains
 * its time. Per process: records of a trace that reach another process, or come after the entry expired, become an
 * invocation of their own. Exporters keep their connection, and send most traces in one export.
 */
export class TraceStartCache {
  /** Least recently used first. */
  private readonly known = new Map<string, { at: Date; usedAt: number }>();

  /** The time a trace of a server started: `at` of its first call. */
  of(serverId: string, traceId: string, at: Date, now = Date.now()): Date {
    const key = `${serverId} ${traceId}`;
    const found = this.known.get(key);
    const start = found && now - found.usedAt < LIFETIME_MS ? found.at : at;
    this.known.delete(key);
    this.known.set(key, { at: start, usedAt: now });
    const [oldest] = this.known.keys();
    if (this.known.size > TRACES_MAX && oldest !== undefined) this.known.delete(oldest);
    return start;
  }
}
