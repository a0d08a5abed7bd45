import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { isDatabaseAway } from '../../../platform/database/database-outage.js';
import { ConnectionRechecker, RECHECK_BATCH } from './connection-rechecker.js';
import { ConnectionRefresher, type Due } from './connection-refresher.js';

/** Two cheap queries each time when there is nothing to do. Up to half more, so that processes do not march in step. */
const PAUSE_MS = 4_000;

/** Looks after connections that nobody calls: renews tokens ahead of their end, and looks again at what was broken. */
@Injectable()
export class ConnectionSweeper implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger('connections');
  private readonly timers = new Set<NodeJS.Timeout>();
  private readonly running = new Set<Promise<void>>();
  private isEnding = false;

  constructor(
    private readonly refresher: ConnectionRefresher,
    private readonly rechecker: ConnectionRechecker,
  ) {}

  onApplicationBootstrap(): void {
    // Apart, since a slow upstream must hold up no refresh.
    this.schedule(() => this.refresh());
    this.schedule(() => this.recheck());
  }

  async onApplicationShutdown(): Promise<void> {
    this.isEnding = true;
    for (const timer of this.timers) clearTimeout(timer);
    await Promise.all(this.running);
  }

  /** Renews all tokens that are due. */
  async refresh(): Promise<void> {
    let last: Due | null = null;
    do last = await this.refresher.run(last);
    while (last !== null && !this.isEnding);
  }

  /** Looks at all connections that are due. */
  async recheck(): Promise<void> {
    while ((await this.rechecker.run()) >= RECHECK_BATCH && !this.isEnding);
  }

  private schedule(work: () => Promise<void>): void {
    const timer = setTimeout(
      () => {
        this.timers.delete(timer);
        const run = this.attempt(work).finally(() => {
          this.running.delete(run);
          if (!this.isEnding) this.schedule(work);
        });
        this.running.add(run);
      },
      PAUSE_MS * (1 + Math.random() / 2),
    ).unref();
    this.timers.add(timer);
  }

  private async attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const level = isDatabaseAway(error) ? 'debug' : 'error';
      this.logger[level]({ msg: 'connections were not looked after', err: error });
    }
  }
}
