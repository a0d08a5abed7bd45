import { OutboundDeniedError } from './outbound.errors.js';

/** Releases a place; call once. */
export type Release = () => void;

/** Limits concurrent requests of one program; further ones wait in order, limited in number and time. */
export class Semaphore {
  private taken = 0;
  private readonly waiting = new Set<() => void>();

  constructor(
    private readonly max: number,
    private readonly waitingMax: number,
    private readonly waitMs: number,
  ) {}

  /**
   * Resolves when a place is free.
   *
   * @throws OutboundDeniedError (503) when too many wait, or on timeout
   */
  async take(): Promise<Release> {
    if (this.taken >= this.max) await this.turn();
    this.taken++;
    return () => {
      this.taken--;
      const [next] = this.waiting;
      if (next) next();
    };
  }

  private turn(): Promise<void> {
    if (this.waiting.size >= this.waitingMax) return Promise.reject(this.full());
    return new Promise((resolve, reject) => {
      const start = (): void => {
        clearTimeout(timer);
        this.waiting.delete(start);
        resolve();
      };
      const timer = setTimeout(() => {
        this.waiting.delete(start);
        reject(this.full());
      }, this.waitMs);
      this.waiting.add(start);
    });
  }

  private full(): OutboundDeniedError {
    return new OutboundDeniedError(
      `${this.max} requests of this program are under way, as many as may be, and none ended in ${this.waitMs} ms: ` +
        'send fewer at once, and read or cancel every answer.',
      503,
    );
  }
}
