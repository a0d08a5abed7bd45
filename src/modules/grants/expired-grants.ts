import { Injectable } from '@nestjs/common';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { GrantsRepository } from './grants.repository.js';

/** Deletes expired grants with the client authorizations that they opened. */
@Injectable()
export class ExpiredGrants {
  constructor(
    private readonly grantsRepository: GrantsRepository,
    private readonly pubSub: PubSub,
  ) {}

  /** Deletes expired grants, and announces the deletion to every process. */
  async delete(now: Date): Promise<void> {
    const targets = new Map((await this.grantsRepository.deleteExpired(now)).map((target) => [target.id, target]));
    for (const { kind, id } of targets.values()) this.pubSub.announce('grants.changed', { [`${kind}Id`]: id });
  }
}
