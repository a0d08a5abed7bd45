import type { ScanHold } from '../scan/leased-scan.js';
import { LeaseLostError } from '../release-lease.js';

/** What a scan of a published release runs under: its log is told what came of it, not how it went. */
export class RescanHold implements ScanHold {
  private lose: (error: LeaseLostError) => void = () => undefined;
  private readonly lost = new Promise<never>((_, reject) => (this.lose = reject));

  constructor() {
    // Nobody may be waiting when it ends.
    this.lost.catch(() => undefined);
  }

  /** What runs under it ends now. */
  end(): void {
    this.lose(new LeaseLostError());
  }

  log(): Promise<void> {
    return Promise.resolve();
  }

  whileHeld<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.lost]);
  }
}
