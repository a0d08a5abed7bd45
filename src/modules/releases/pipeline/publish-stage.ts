import { Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { PubSub } from '../../../platform/queue/pub-sub.js';
import { ServerUrlsService } from '../../servers/server-urls.service.js';
import { ServerReleasesService } from '../../servers/server-releases.service.js';
import type { ReleaseType } from '../../servers/server.types.js';
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
    private readonly env: Env,
  ) {}

  async run({ serverId, snapshot }: Release): Promise<StageOutcome> {
    if (!snapshot) throw new Error('A release reaches its last stage with a snapshot');
    const { releaseId } = snapshot;
    const compared = await this.contracts.compare(serverId, snapshot);
    const { previousReleaseId: previous, changes } = compared;
    const slug = await this.servers.slugOf(serverId);
    return {
      change: { status: 'SUCCESS' },
      lines: [
        ...(previous === null ? [] : contractLines(changes, { stage: 'publish', since: `since release ${previous}` })),
        { stage: 'publish', level: 'success', message: await this.whereTo(serverId, slug, snapshot.type) },
      ],
      inTransaction: async (tx) => {
        await this.servers.setCurrent(serverId, snapshot, tx);
        await this.contracts.record({ serverId, releaseId, foundBy: 'release' }, compared, tx);
        await this.rescans.watch(serverId, snapshot, !snapshot.isClaimed, tx);
      },
      onCommitted: () => {
        const current: ReleaseCurrent = { serverId, slug, releaseId };
        this.pubSub.publish('releases.current', current);
      },
    };
  }

  /** The line with the run endpoint, or with the download of a bundle, which runs at its client. */
  private async whereTo(serverId: string, slug: string, type: ReleaseType): Promise<string> {
    if (type !== 'stdio') return `Published: ${this.urls.run(slug)}`;
    const name = encodeURIComponent(await this.servers.qualifiedNameOf(serverId));
    return `Published: download it from ${this.env.baseUrl}/servers/${name}/download`;
  }
}
