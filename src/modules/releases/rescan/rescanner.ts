import { Injectable, Logger } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { parseUrl } from '../../../config/parse-url.js';
import { isDatabaseAway } from '../../../platform/database/database-outage.js';
import { NoSlotError, FairSemaphore } from '../../../platform/limits/fair-semaphore.js';
import { LeaseLostError } from '../release-lease.js';
import { RescanClaims, type ClaimedRescan } from './rescan-claims.js';
import { RescanOutcomes } from './rescan-outcomes.js';
import { failedInside, RescanScan } from './rescan-scan.js';
import type { ScanHold } from '../scan/leased-scan.js';

/** Scans at once in this process; half of them at one host. */
const SCANS_MAX = 4;

/** What finds no slot, since its host is busy with others. */
const NO_SLOT_SECONDS = 15;

/** What a scan of a published release runs under: its log is told what came of it, not how it went. */
class RescanHold implements ScanHold {
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

/** Scans published releases whose time has come. Servers at one URL, to which nobody's credentials are sent, share a scan. */
@Injectable()
export class Rescanner {
  private readonly logger = new Logger('releases');
  private readonly slots: FairSemaphore;
  private readonly inHand = new Map<Promise<void>, RescanHold>();
  private taking: Promise<void> = Promise.resolve();
  private isEnding = false;

  constructor(
    private readonly claims: RescanClaims,
    private readonly scan: RescanScan,
    private readonly outcomes: RescanOutcomes,
    env: Env,
  ) {
    this.slots = new FairSemaphore(SCANS_MAX, env.upstreamConnectTimeoutMs);
  }

  /** Begins as many scans as there are hands for; each that ends begins another one. Does not wait for them, never rejects. */
  take(): Promise<void> {
    this.taking = this.taking.then(() => this.tryTake());
    return this.taking;
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    await this.taking;
    while (this.inHand.size > 0) await Promise.all(this.inHand.keys());
  }

  /** Ends what is under way, which another process begins anew, and begins nothing more. */
  async end(): Promise<void> {
    this.isEnding = true;
    for (const hold of this.inHand.values()) hold.end();
    await this.settled();
  }

  private async tryTake(): Promise<void> {
    try {
      const free = SCANS_MAX - this.inHand.size;
      if (this.isEnding || free <= 0) return;
      for (const group of groupsOf(await this.claims.take(free))) this.begin(group);
    } catch (error) {
      this.tell(error, 'nothing was taken to be scanned');
    }
  }

  private begin(group: ClaimedRescan[]): void {
    const hold = new RescanHold();
    const scanning = this.scanGroup(group, hold)
      .catch((error: unknown) => this.tell(error, 'what a scan found was not written'))
      .finally(() => {
        this.inHand.delete(scanning);
        void this.take();
      });
    this.inHand.set(scanning, hold);
  }

  private async scanGroup(group: ClaimedRescan[], hold: RescanHold): Promise<void> {
    const [first] = group;
    try {
      const host = parseUrl(first.upstreamUrl ?? '')?.host ?? 'here';
      const found = await this.slots.run(host, () => {
        // It may have waited for its slot while this process was told to stop.
        if (this.isEnding) throw new LeaseLostError();
        return this.scan.run(first, hold);
      });
      for (const one of group) await this.outcomes.write(one, found);
    } catch (error) {
      if (error instanceof LeaseLostError) return this.claims.giveBack(group, 0);
      if (error instanceof NoSlotError) return this.claims.giveBack(group, NO_SLOT_SECONDS);
      if (isDatabaseAway(error)) throw error;
      this.logger.error({ msg: 'a release could not be scanned again', releaseId: first.releaseId, err: error });
      for (const one of group) await this.outcomes.write(one, failedInside);
    }
  }

  private tell(error: unknown, msg: string): void {
    this.logger[isDatabaseAway(error) ? 'debug' : 'error']({ msg, err: error });
  }
}

/** What one scan is for. */
function groupsOf(claimed: ClaimedRescan[]): ClaimedRescan[][] {
  const groups = new Map<string, ClaimedRescan[]>();
  for (const one of claimed) {
    const key = one.isShared ? `url ${one.upstreamUrl}` : one.serverId;
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  return [...groups.values()];
}
