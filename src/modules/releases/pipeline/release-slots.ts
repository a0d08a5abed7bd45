import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { ReleasesQueue } from '../releases.queue.js';
import type { Claim } from '../releases.repository.js';
import { ReleaseSlotsRepository } from './release-slots.repository.js';

/**
 * Shares the workers among accounts, so that upstreams that never answer occupy only the slots of their own account.
 *
 * The account is locked before its slots are counted. A release that is made to wait while another one ends is therefore
 * found by the worker that ends it, or sees the slot that became free.
 */
@Injectable()
export class ReleaseSlots {
  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly slots: ReleaseSlotsRepository,
    private readonly queue: ReleasesQueue,
  ) {}

  /**
   * Takes a release for a worker, or makes it wait for a slot of its account.
   *
   * @returns the account, whose next release is due when this one ends; null when it was not taken
   */
  async take(claim: Claim): Promise<string | null> {
    return this.database.transaction(async (tx) => {
      const accountId = await this.slots.accountOf(claim.releaseId, tx);
      if (accountId === null) return null;
      await this.slots.lock(accountId, tx);
      if (await this.slots.take(claim, accountId, tx)) return accountId;
      await this.slots.wait(claim, tx);
      return null;
    });
  }

  /** Enqueues the oldest waiting releases of an account, one for each free slot. */
  async next(accountId: string): Promise<void> {
    const due = await this.database.transaction(async (tx) => {
      await this.slots.lock(accountId, tx);
      return this.slots.endWaits(accountId, tx);
    });
    for (const { id, attempt } of due) this.queue.enqueue({ releaseId: id, attempt });
  }

  /** Does the same for every account: a worker may have died before it called {@link next}. */
  async nextOfAll(): Promise<void> {
    for (const account of await this.slots.waitingAccounts()) await this.next(account);
  }
}
