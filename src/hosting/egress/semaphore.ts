import { OutboundDeniedError } from './outbound.errors.js';

/** A place among the requests at work; give it back once. */
export type Release = () => void;

/** Lets so many requests of one program out at once; more wait in order, so many and so long. */
export class Semaphore {
  private taken = 0;
  private readonly waiting = new Set<() => void>();

  constructor(
    private readonly max: number,
    private readonly waitingMax: number,
    private readonly waitMs: number,
  ) {}

  /**
   * Resolves when there is room.
   *
   * @throws OutboundDeniedError (503) when too many wait, or none became free in time
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
