import { UnavailableError } from '../errors/domain-error.js';

/** The work could not start in time because too much other work was running. */
export class NoSlotError extends UnavailableError {
  constructor() {
    super('Too many requests of this kind are at work: try again in a few seconds', 5);
  }
}

/**
 * Limits concurrent work, and that of one kind to half of the limit, so that one slow host or busy account does not delay
 * the others. Work of several kinds, such as a host and an account, counts for each. Waiting work starts in order.
 */
export class FairSemaphore {
  private running = 0;
  private readonly runningOf = new Map<string, number>();
  private readonly waiting: { kinds: readonly string[]; start: () => void }[] = [];

  constructor(
    private readonly max: number,
    private readonly waitMs: number,
  ) {}

  /** @throws NoSlotError when the work could not start in time; what it throws otherwise */
  async run<T>(kind: string | readonly string[], work: () => Promise<T>): Promise<T> {
    const kinds = typeof kind === 'string' ? [kind] : kind;
    if (this.isFree(kinds)) this.count(kinds, 1);
    else await this.turn(kinds);
    try {
      return await work();
    } finally {
      this.count(kinds, -1);
      this.startWaiting();
    }
  }

  private isFree(kinds: readonly string[]): boolean {
    const each = Math.max(1, Math.floor(this.max / 2));
    return this.running < this.max && kinds.every((kind) => (this.runningOf.get(kind) ?? 0) < each);
  }

  private turn(kinds: readonly string[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const entry = {
        kinds,
        start: () => {
          clearTimeout(timer);
          this.count(kinds, 1);
          resolve();
        },
      };
      const timer = setTimeout(() => {
        this.waiting.splice(this.waiting.indexOf(entry), 1);
        reject(new NoSlotError());
      }, this.waitMs);
      this.waiting.push(entry);
    });
  }

  /** One ended holder may free places of several kinds. */
  private startWaiting(): void {
    for (;;) {
      const index = this.waiting.findIndex(({ kinds }) => this.isFree(kinds));
      if (index < 0) return;
      this.waiting.splice(index, 1)[0]?.start();
    }
  }

  private count(kinds: readonly string[], by: 1 | -1): void {
    this.running += by;
    for (const kind of kinds) {
      const now = (this.runningOf.get(kind) ?? 0) + by;
      if (now === 0) this.runningOf.delete(kind);
      else this.runningOf.set(kind, now);
    }
  }
}
