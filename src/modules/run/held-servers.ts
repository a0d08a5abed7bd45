import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { Schedule } from '../../platform/schedule/schedule.js';
import { ServerAccessService } from '../servers/server-access.service.js';
import type { ServerUse } from '../servers/server.types.js';

/** Interval of the check that needs no message: with its queries, what is held ends within 5 s. */
const CHECK_MS = 3_000;

/** Holds something open of servers in this process, for accounts. */
export interface ServerHolder {
  /** What is open now. */
  uses(): Iterable<ServerUse>;
  /** Ends all that the account holds of the server. @param now cuts calls that are not answered yet */
  end(use: ServerUse, now: boolean): void;
}

/**
 * Ends what accounts hold open of servers that they may call no longer: the server became private, or a grant was
 * withdrawn. At once where the message arrives, otherwise within 5 s.
 */
@Injectable()
export class HeldServers implements OnModuleInit, OnApplicationBootstrap {
  private readonly logger = new Logger('run');
  private readonly holders: ServerHolder[] = [];

  constructor(
    private readonly access: ServerAccessService,
    private readonly pubSub: PubSub,
    private readonly schedule: Schedule,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('servers.changed', ({ id }) => this.checkSoon(id));
    await this.pubSub.subscribe('grants.changed', (changed) => {
      if ('serverId' in changed) this.checkSoon(changed.serverId, changed.cut !== undefined);
    });
  }

  onApplicationBootstrap(): void {
    this.schedule.every('check of what is open of private servers', CHECK_MS, () => this.check());
  }

  /** Adds a holder; called at start. */
  register(holder: ServerHolder): void {
    this.holders.push(holder);
  }

  private checkSoon(serverId: string, now = false): void {
    this.check(serverId, now).catch((error: unknown) =>
      this.logger.warn({ msg: 'streams of a private server end at the next check', err: error }),
    );
  }

  /** @param only the server to check; all of them if undefined */
  private async check(only?: string, now = false): Promise<void> {
    const uses = new Map<string, ServerUse>();
    for (const holder of this.holders) {
      for (const use of holder.uses()) {
        if (only === undefined || only === use.serverId) uses.set(`${use.serverId} ${use.accountId}`, use);
      }
    }
    if (uses.size === 0) return;
    const lost = await this.access.lostAmong([...uses.values()]);
    for (const use of lost) for (const holder of this.holders) holder.end(use, now);
  }
}
