import { Injectable } from '@nestjs/common';
import { ServerUrlsService } from '../../servers/server-urls.service.js';
import { ServerReleasesService } from '../../servers/server-releases.service.js';
import { contractLines } from '../contract/contract-change.js';
import type { Release } from '../release.entity.js';
import type { ReleaseStage, StageOutcome } from '../release-lease.js';
import { ReleaseSwitch } from '../release-switch.js';

@Injectable()
export class PublishStage implements ReleaseStage {
  constructor(
    private readonly serverReleasesService: ServerReleasesService,
    private readonly releaseSwitch: ReleaseSwitch,
    private readonly serverUrlsService: ServerUrlsService,
  ) {}

  async run({ serverId, snapshot }: Release): Promise<StageOutcome> {
    if (!snapshot) throw new Error('A release reaches its last stage with a snapshot');
    const compared = await this.releaseSwitch.compare(serverId, snapshot);
    const { previousReleaseId: previous, changes } = compared;
    const names = await this.serverReleasesService.namesOf(serverId);
    const isRemote = this.serverUrlsService.remoteTypes.includes(snapshot.type);
    const where = isRemote
      ? this.serverUrlsService.run(names.slug)
      : `download it from ${this.serverUrlsService.record(names)}/download`;
    return {
      change: { status: 'SUCCESS' },
      lines: [
        ...(previous === null ? [] : contractLines(changes, { stage: 'publish', since: `since release ${previous}` })),
        { stage: 'publish', level: 'success', message: `Published: ${where}` },
      ],
      inTransaction: (tx) => this.releaseSwitch.replace(serverId, snapshot, compared, !snapshot.isClaimed, tx),
      onCommitted: () => this.releaseSwitch.announce(serverId, names.slug, snapshot.releaseId),
    };
  }
}
