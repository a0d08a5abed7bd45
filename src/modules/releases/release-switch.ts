import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { ServerReleasesService } from '../servers/server-releases.service.js';
import type { ServerSnapshot } from '../servers/server.types.js';
import type { ContractComparison } from './contract/contract-diff.js';
import { ReleaseContracts } from './contract/release-contracts.js';
import { RescansService } from './rescan/rescans.service.js';

@Injectable()
export class ReleaseSwitch {
  constructor(
    private readonly serverReleasesService: ServerReleasesService,
    private readonly releaseContracts: ReleaseContracts,
    private readonly rescansService: RescansService,
    private readonly pubSub: PubSub,
  ) {}

  compare(serverId: string, snapshot: ServerSnapshot): Promise<ContractComparison> {
    return this.releaseContracts.compare(serverId, snapshot);
  }

  /**
   * Replaces the release, and records the contract changes, in one transaction.
   *
   * @param isChecked true if the release was scanned just now, see {@link RescansService.watch}
   * @throws ServerNotFoundError
   */
  async replace(
    serverId: string,
    snapshot: ServerSnapshot,
    comparison: ContractComparison,
    isChecked: boolean,
    tx: EntityManager,
  ): Promise<void> {
    await this.serverReleasesService.setCurrent(serverId, snapshot, tx);
    await this.releaseContracts.record({ serverId, releaseId: snapshot.releaseId, foundBy: 'release' }, comparison, tx);
    await this.rescansService.watch(serverId, snapshot, isChecked, tx);
  }

  /** Announces the release. Call this after the commit. */
  announce(serverId: string, slug: string, releaseId: string): void {
    this.pubSub.publish('releases.current', { serverId, slug, releaseId });
  }
}
