import { availableParallelism } from 'node:os';
import { withTimeout } from '../../platform/limits/with-timeout.js';
import { FairSemaphore } from '../../platform/limits/fair-semaphore.js';

/**
 * Programs that start at once. One takes a core for about 80 ms, and more of them than there are cores only make each other
 * late; two where there is one core, since a start waits for its files too.
 */
const STARTS_MAX = Math.max(2, availableParallelism());

/** A start that takes longer leaves its place: a module that never ends loading must not hold up everybody else's. */
const HELD_MS = 5_000;

/** Lets so many programs start at once, and of one owner half of them. The others wait in order. */
export class StartSemaphore {
  private readonly slots: FairSemaphore;

  /** @param waitMs how long one may wait for its turn */
  constructor(
    waitMs: number,
    max = STARTS_MAX,
    private readonly heldMs = HELD_MS,
  ) {
    this.slots = new FairSemaphore(max, waitMs);
  }

  /** @throws NoSlotError when its turn did not come in time; what `start` throws otherwise */
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
