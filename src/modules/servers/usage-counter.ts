import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { WriteBehind } from '../../platform/database/write-behind.js';
import { Server } from './server.entity.js';

/** How often servers were used, added to their rows a second later. A process that is killed loses that second. */
@Injectable()
export class UsageCounter implements OnApplicationShutdown {
  private readonly counted = new WriteBehind<string, number>('server uses', (batch) => this.write(batch));

  constructor(@InjectRepository(Server) private readonly servers: Repository<Server>) {}

  /** Costs nothing but memory: safe on the path of a call. */
  count(serverId: string, uses: number): void {
    this.counted.set(serverId, (this.counted.get(serverId) ?? 0) + uses);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.counted.onApplicationShutdown();
  }

  /** In the order of ids, so that two processes cannot wait for one another. */
  private async write(batch: Map<string, number>): Promise<void> {
    const rows = [...batch].toSorted(([a], [b]) => (a < b ? -1 : 1));
    try {
      await this.servers.query(
        `WITH used AS (
           SELECT s.id, s.use_count + u.uses AS total FROM servers s
             JOIN unnest($1::uuid[], $2::bigint[]) AS u(id, uses) ON u.id = s.id
            ORDER BY s.id FOR UPDATE OF s)
         UPDATE servers s SET use_count = used.total, popularity = floor(4 * log(2, used.total + 1))
           FROM used WHERE s.id = used.id`,
        [rows.map(([id]) => id), rows.map(([, uses]) => uses)],
      );
    } catch (error) {
      // The batch is put back where nothing newer waits; counts must be added to what is newer.
      for (const [id, uses] of batch) this.count(id, uses);
      throw error;
    }
  }
}
