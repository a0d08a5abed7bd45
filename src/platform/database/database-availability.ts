/** Age above which a cached row is not used when the database stops answering. */
const AGE_MS_MAX = 5_000;

/**
 * Availability of the database, and the rule for rows that were read before it stopped answering. One for the process, like
 * its database.
 */
class DatabaseAvailability {
  /** Lower bound of the moment at which the database stopped answering, by the monotonic clock. */
  private answeredAt = performance.now();
  private staleMs = 0;
  private isAway = false;

  /** @param ms `STALE_READ_MS`; 0: no row outlives its cache */
  allowStale(ms: number): void {
    this.staleMs = ms;
  }

  answered(): void {
    this.answeredAt = performance.now();
    this.isAway = false;
  }

  failed(): void {
    this.isAway = true;
  }

  /** True while the database is away and rows of caches stand in for it. */
  get isBridged(): boolean {
    return this.isAway && performance.now() < this.answeredAt + this.staleMs;
  }

  /** True for a row that may be used now, past the lifetime of its cache. @param readAt by `performance.now()` */
  mayUse(readAt: number): boolean {
    return this.isBridged && readAt >= this.answeredAt - AGE_MS_MAX;
  }
}

export const databaseAvailability = new DatabaseAvailability();
