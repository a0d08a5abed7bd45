import { availableParallelism } from 'node:os';
import { withTimeout } from '../../platform/limits/with-timeout.js';
import { FairSemaphore } from '../../platform/limits/fair-semaphore.js';

/**
 * Limit of concurrent starts. One takes a core for about 80 ms, and more starts than cores delay each other; two on one
 * core, since a start also waits for files.
 */
const STARTS_MAX = Math.max(2, availableParallelism());

/** Time after which a start releases its place: a module that never finishes loading must not block other starts. */
const HELD_MS = 5_000;

/** Limits concurrent starts, and those of one owner to half of the limit. Further ones wait in order. */
export class StartSemaphore {
  private readonly slots: FairSemaphore;

  /** @param waitMs maximum waiting time */
  constructor(
    waitMs: number,
    max = STARTS_MAX,
    private readonly heldMs = HELD_MS,
  ) {
    this.slots = new FairSemaphore(max, waitMs);
  }

  /** @throws NoSlotError on timeout; errors of `start` */
  async run(ownerId: string, start: () => Promise<void>): Promise<void> {
    let started = Promise.resolve();
    await this.slots.run(ownerId, () => {
      started = start();
      const over = started.catch(() => undefined);
      return withTimeout(this.heldMs, over, undefined);
    });
    await started;
  }
}
