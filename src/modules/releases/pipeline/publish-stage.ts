import { Injectable } from '@nestjs/common';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { ServerUrlsService } from '../../servers/server-urls.service.js';
import { ServerReleasesService } from '../../servers/server-releases.service.js';
import { contractLines } from '../contract/contract-change.js';
import { ReleaseContracts } from '../contract/release-contracts.js';
import type { Release } from '../release.entity.js';
import type { ReleaseCurrent } from '../releases.types.js';
import { RescansService } from '../rescan/rescans.service.js';
import type { ReleaseStage, StageOutcome } from '../release-lease.js';

/** Makes the release the current one, and logs the changes for callers. */
@Injectable()
export class PublishStage implements ReleaseStage {
  constructor(
    private readonly servers: ServerReleasesService,
    private readonly contracts: ReleaseContracts,
    private readonly rescans: RescansService,
    private readonly pubSub: PubSub,
    private readonly urls: ServerUrlsService,
  ) {}

  async run({ serverId, snapshot }: Release): Promise<StageOutcome> {
    if (!snapshot) throw new Error('A release reaches its last stage with a snapshot');
    const { releaseId } = snapshot;
    const compared = await this.contracts.compare(serverId, snapshot);
    const { previousReleaseId: previous, changes } = compared;
    const names = await this.servers.namesOf(serverId);
    // Bundles run at their clients, who download them.
    const where =
      snapshot.type === 'stdio' ? `download it from ${this.urls.record(names)}/download` : this.urls.run(names.slug);
    return {
      change: { status: 'SUCCESS' },
      lines: [
        ...(previous === null ? [] : contractLines(changes, { stage: 'publish', since: `since release ${previous}` })),
        { stage: 'publish', level: 'success', message: `Published: ${where}` },
      ],
      inTransaction: async (tx) => {
        await this.servers.setCurrent(serverId, snapshot, tx);
        await this.contracts.record({ serverId, releaseId, foundBy: 'release' }, compared, tx);
        await this.rescans.watch(serverId, snapshot, !snapshot.isClaimed, tx);
      },
      onCommitted: () => {
        const current: ReleaseCurrent = { serverId, slug: names.slug, releaseId };
        this.pubSub.publish('releases.current', current);
      },
    };
  }
}
