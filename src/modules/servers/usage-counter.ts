import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { WriteBehind } from '../../platform/database/write-behind.js';
import { ServersRepository } from './servers.repository.js';

/** Counts uses of servers in memory and adds them to their rows a second later. A killed process loses that second. */
@Injectable()
export class UsageCounter implements OnApplicationShutdown {
  private readonly counted = new WriteBehind<string, number>('server uses', (batch) => this.write(batch));

  constructor(private readonly servers: ServersRepository) {}

  /** Adds uses of a server, in memory only. */
  count(serverId: string, uses: number): void {
    this.counted.set(serverId, (this.counted.get(serverId) ?? 0) + uses);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.counted.onApplicationShutdown();
  }

  private async write(batch: Map<string, number>): Promise<void> {
    try {
      await this.servers.addUses(batch);
    } catch (error) {
      // The buffer keeps the newer of two values for a key; counts must be added instead.
      for (const [id, uses] of batch) this.count(id, uses);
      throw error;
    }
  }
}
