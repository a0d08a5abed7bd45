import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { partsOf } from '../../platform/parts.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { Schedule } from '../../platform/schedule/schedule.js';
import { ServerAccessService } from '../servers/server-access.service.js';
import { serverHolders, type ServerHolder, type ServerUse } from '../servers/server.types.js';

/** Interval of checks in case messages are lost. Two checks with their queries take less than 5 s. */
const CHECK_MS = 2_000;

/**
 * Closes uses of a server that became private, or whose grant was revoked. Streams close when the message
 * arrives; everything closes within 5 s.
 */
@Injectable()
export class HeldServers implements OnModuleInit, OnApplicationBootstrap {
  private readonly logger = new Logger('run');
  private holders!: ServerHolder[];
  /** Uses without a right at the last check. The next check cancels their calls. */
  private lost = new Set<string>();

  constructor(
    private readonly serverAccessService: ServerAccessService,
    private readonly pubSub: PubSub,
    private readonly schedule: Schedule,
    private readonly moduleRef: ModuleRef,
  ) {}

  async onModuleInit(): Promise<void> {
    this.holders = Object.values(partsOf<string, ServerHolder>(this.moduleRef, serverHolders));
    await this.pubSub.subscribe('servers.changed', ({ id }) => this.checkSoon(id));
    await this.pubSub.subscribe('grants.changed', ({ serverId, namespaceId, cut }) => {
      if (serverId ?? namespaceId) this.checkSoon(serverId, cut !== undefined);
    });
  }

  onApplicationBootstrap(): void {
    this.schedule.every('check of open sessions of private servers', CHECK_MS, () => this.checkAll());
  }

  private checkSoon(serverId?: string, now = false): void {
    this.check(serverId, now).catch((error: unknown) =>
      this.logger.warn({ msg: 'streams of a private server end at the next check', err: error }),
    );
  }

  private async checkAll(): Promise<void> {
    const before = this.lost;
    this.lost = new Set();
    for (const use of await this.lostUses()) {
      const name = nameOf(use);
      this.lost.add(name);
      for (const holder of this.holders) holder.endUse(use, before.has(name));
    }
  }

  private async check(only: string | undefined, now: boolean): Promise<void> {
    for (const use of await this.lostUses(only)) for (const holder of this.holders) holder.endUse(use, now);
  }

  /** @param only the server to check; all of them if undefined */
  private async lostUses(only?: string): Promise<ServerUse[]> {
    const uses = new Map<string, ServerUse>();
    for (const holder of this.holders) {
      for (const use of holder.uses()) {
        if (only === undefined || only === use.serverId) uses.set(nameOf(use), use);
      }
    }
    return uses.size === 0 ? [] : this.serverAccessService.lostAmong([...uses.values()]);
  }
}

function nameOf({ serverId, accountId }: ServerUse): string {
  return `${serverId} ${accountId}`;
}
