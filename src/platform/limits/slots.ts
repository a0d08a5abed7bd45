import { DomainError } from '../errors/domain-error.js';

/** More work wants to run than may, and none of it ended in time. */
export class NoSlotError extends DomainError {
  readonly kind = 'unavailable';
  readonly code = 'unavailable';
  override readonly retryAfterSeconds = 5;

  constructor() {
    super('Too many requests of this kind are at work: try again in a few seconds');
  }
}

/**
 * Lets so much work run at once, and of one kind only half of it, so that one slow host or busy owner does not hold up the
 * others. What must wait is started in order.
 */
export class Slots {
  private running = 0;
  private readonly runningOf = new Map<string, number>();
  private readonly waiting: { kind: string; start: () => void }[] = [];

  constructor(
    private readonly max: number,
    private readonly waitMs: number,
  ) {}

  /** @throws NoSlotError when the work could not start in time; what it throws otherwise */
  async run<T>(kind: string, work: () => Promise<T>): Promise<T> {
    if (this.isFree(kind)) this.count(kind, 1);
    else await this.turn(kind);
    try {
      return await work();
    } finally {
      this.count(kind, -1);
      this.startNext();
    }
  }

  private isFree(kind: string): boolean {
    return this.running < this.max && (this.runningOf.get(kind) ?? 0) < Math.max(1, Math.floor(this.max / 2));
  }

  private turn(kind: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const entry = {
        kind,
        start: () => {
          clearTimeout(timer);
          this.count(kind, 1);
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

  private startNext(): void {
    const index = this.waiting.findIndex(({ kind }) => this.isFree(kind));
    if (index >= 0) this.waiting.splice(index, 1)[0]?.start();
  }

  private count(kind: string, by: 1 | -1): void {
    this.running += by;
    const now = (this.runningOf.get(kind) ?? 0) + by;
    if (now === 0) this.runningOf.delete(kind);
    else this.runningOf.set(kind, now);
  }
}
