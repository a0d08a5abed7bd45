/** Traces that are remembered, of all servers together, and for how long after their last record: some 2 MB. */
const TRACES_MAX = 10_000;
const KEPT_MS = 15 * 60_000;

/**
 * Remembers when traces began, since the records of one may come in several exports, seconds apart, and the id of an
 * invocation tells its time. Of this process: what of a trace comes to another one, or after it was forgotten, makes an
 * invocation of its own, and nothing is lost. Exporters keep their connection, and send most traces in one export.
 */
export class TraceStartCache {
  /** The one heard of longest ago first. */
  private readonly known = new Map<string, { at: Date; heardAt: number }>();

  /** When this trace of a server began: the earliest of its first export. */
  of(serverId: string, traceId: string, at: Date, now = Date.now()): Date {
    const key = `${serverId} ${traceId}`;
    const found = this.known.get(key);
    const began = found && now - found.heardAt < KEPT_MS ? found.at : at;
    this.known.delete(key);
    this.known.set(key, { at: began, heardAt: now });
    const [oldest] = this.known.keys();
    if (this.known.size > TRACES_MAX && oldest !== undefined) this.known.delete(oldest);
    return began;
  }
}
