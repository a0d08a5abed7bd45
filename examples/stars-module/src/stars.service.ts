import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { ServerCardField, type Caller, type ServerCardContributor, type ServerRef } from '@slipway/module';
import { Repository } from 'typeorm';
import { StarsDto } from './star.dto.js';
import { Star } from './star.entity.js';
import { StarsRepository } from './stars.repository.js';

/** Stars of servers, and their count on the cards of servers. */
@Injectable()
@ServerCardField({
  key: 'stars',
  schema: { type: 'integer', description: 'Accounts that have starred it.' },
  absent: 0,
})
export class StarsService implements ServerCardContributor {
  constructor(
    @InjectRepository(Star) private readonly stars: Repository<Star>,
    private readonly counts: StarsRepository,
  ) {}

  /** Stars a server. Repeating it changes nothing. */
  async add(server: ServerRef, caller: Caller): Promise<StarsDto> {
    await this.stars.upsert({ serverId: server.id, accountId: caller.accountId }, ['serverId', 'accountId']);
    return this.get(server, caller);
  }

  /** Removes the caller's star, if there is one. */
  async remove(server: ServerRef, caller: Caller): Promise<StarsDto> {
    await this.stars.delete({ serverId: server.id, accountId: caller.accountId });
    return this.get(server, caller);
  }

  async get(server: ServerRef, caller: Caller): Promise<StarsDto> {
    const counts = await this.counts.countsOf([server.id]);
    const starred = await this.stars.existsBy({ serverId: server.id, accountId: caller.accountId });
    return { count: counts.get(server.id) ?? 0, starred };
  }

  fieldsFor(serverIds: string[]): Promise<Map<string, number>> {
    return this.counts.countsOf(serverIds);
  }
}
