/** Lifetime of rows in the caches of calls: the `ttlMs` of each `RowCache` on their path. */
const CACHED_MS = 5_000;

/**
 * Age above which a cached row is not used when the database stops responding: the last call used it at most 5 s
 * before.
 */
const AGE_MS_MAX = CACHED_MS + 5_000;

/** Availability of the database of this process. */
class DatabaseAvailability {
  /** Earliest time at which the database stopped responding, by the monotonic clock. */
  private answeredAt = performance.now();
  private lastOutage = { lastedMs: 0, endedAt: -Infinity };
  private staleMs = 0;
  private isAway = false;

  /** @param ms `staleReadMs` of the tuning; 0: no row outlives its cache */
  allowStale(ms: number): void {
    this.staleMs = ms;
  }

  markAvailable(): void {
    const now = performance.now();
    if (this.isAway) this.lastOutage = { lastedMs: now - this.answeredAt, endedAt: now };
    this.answeredAt = now;
    this.isAway = false;
  }

  failed(): void {
    this.isAway = true;
  }

  /** True while the database is unavailable and cached rows replace it. */
  get isBridged(): boolean {
    return this.isAway && performance.now() < this.answeredAt + this.staleMs;
  }

  /**
   * Returns true for `leaseMs` after an outage in which leases of this length might have expired: they are renewed every third
   * of it.
   */
  isRenewing(leaseMs: number): boolean {
    const { lastedMs, endedAt } = this.lastOutage;
    return lastedMs > leaseMs / 2 && performance.now() < endedAt + leaseMs;
  }

  /** Returns true for a row that may be used now, past the lifetime of its cache. @param readAt by `performance.now()` */
  mayUse(readAt: number): boolean {
    return this.isBridged && readAt >= this.answeredAt - AGE_MS_MAX;
  }
}

export const databaseAvailability = new DatabaseAvailability();
