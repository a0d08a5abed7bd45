import { Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { Schedule } from '../../../platform/schedule/schedule.js';
import { ConnectionRechecker } from './connection-rechecker.js';
import { ConnectionRefresher } from './connection-refresher.js';
import { RECHECK_BATCH, type DueToken } from './recheck.repository.js';

/** Two cheap queries each time, if nothing is due. Up to half more, so that processes do not run in step. */
const PAUSE_MS = 4_000;

/** Refreshes tokens and rechecks connections that nobody calls. */
@Injectable()
export class ConnectionSweeper implements OnApplicationBootstrap, OnModuleDestroy {
  private isEnding = false;

  constructor(
    private readonly refresher: ConnectionRefresher,
    private readonly rechecker: ConnectionRechecker,
    private readonly schedule: Schedule,
  ) {}

  onApplicationBootstrap(): void {
    const ms = PAUSE_MS * (1 + Math.random() / 2);
    // Two timers, so that a slow upstream holds up no refresh.
    this.schedule.every('refresh of tokens', ms, () => this.refresh());
    this.schedule.every('recheck of connections', ms, () => this.recheck());
  }

  onModuleDestroy(): void {
    this.isEnding = true;
  }

  /** Refreshes all tokens that are due. */
  async refresh(): Promise<void> {
    let last: DueToken | null = null;
    do last = await this.refresher.run(last);
    while (last !== null && !this.isEnding);
  }

  /** Checks all connections that are due. */
  async recheck(): Promise<void> {
    while ((await this.rechecker.run()) >= RECHECK_BATCH && !this.isEnding);
  }
}
