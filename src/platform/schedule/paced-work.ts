/**
 * One piece of work at a time for each key, with a pause as long as the work: the rest of the process has at least half
 * of the time. Without a backlog work starts immediately.
 */
export class PacedWork {
  private readonly waiting = new Map<string, (() => void)[]>();

  /** @param work must not throw; its promises until the next turn are part of its time */
  run(key: string, work: () => void): void {
    const waiting = this.waiting.get(key);
    if (waiting) waiting.push(work);
    else this.start(key, work, []);
  }

  private start(key: string, work: () => void, later: (() => void)[]): void {
    this.waiting.set(key, later);
    const startedAt = performance.now();
    work();
    setImmediate(() => {
      setTimeout(() => {
        const next = later.shift();
        if (next) this.start(key, next, later);
        else this.waiting.delete(key);
      }, performance.now() - startedAt).unref();
    });
  }
}

/**
 * Further tasks run in order in later turns, so that other work runs in between. Without a backlog a task runs
 * immediately.
 */
export class PerTickQueue {
  private started = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly perTick: number) {}

  run(task: () => void): void {
    if (this.started === this.perTick) {
      this.waiting.push(task);
      return;
    }
    if (this.started === 0) {
      setImmediate(() => {
        this.started = 0;
        for (const next of this.waiting.splice(0, this.perTick)) this.run(next);
      });
    }
    this.started += 1;
    task();
  }
}
