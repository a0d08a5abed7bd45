import { Injectable } from '@nestjs/common';
import type { ReleaseLease, ReleaseStage, StageOutcome } from '../release-lease.js';
import type { Stage } from '../release-state.js';
import type { Release } from '../release.entity.js';
import { ServerReleasesService } from '../../servers/server-releases.service.js';
import { ServerIconsService } from '../../servers/icons/server-icons.service.js';
import { DeployStage } from './deploy-stage.js';
import { PublishStage } from './publish-stage.js';
import { ScanStage } from './scan-stage.js';

/** Stores metadata of the server, without changing values that its owner has set. */
@Injectable()
export class MetadataStage implements ReleaseStage {
  constructor(
    private readonly serverReleasesService: ServerReleasesService,
    private readonly serverIconsService: ServerIconsService,
  ) {}

  async run({ serverId, snapshot, upstreamUrl }: Release): Promise<StageOutcome> {
    const info = snapshot?.serverInfo ?? {};
    await this.serverIconsService.adopt(serverId, info.icons, upstreamUrl);
    const filled = await this.serverReleasesService.emptyFields(serverId, info);
    const names = Object.keys(filled);
    const message = names.length === 0 ? 'Nothing to fill in' : `Filled in from the server: ${names.join(', ')}`;
    return {
      lines: [{ stage: 'metadata', level: 'info', message }],
      inTransaction: (tx) => this.serverReleasesService.fillIn(serverId, filled, tx),
    };
  }
}

@Injectable()
export class ReleaseStages {
  private readonly byName: Record<Stage, ReleaseStage>;

  constructor(
    deployStage: DeployStage,
    scanStage: ScanStage,
    metadataStage: MetadataStage,
    publishStage: PublishStage,
  ) {
    this.byName = { deploy: deployStage, scan: scanStage, metadata: metadataStage, publish: publishStage };
  }

  async run(release: Release, lease: ReleaseLease): Promise<StageOutcome> {
    const { stage } = release;
    await lease.log({ stage, level: 'start', message: starts[stage] });
    return this.byName[stage].run(release, lease);
  }
}

const starts: Record<Stage, string> = {
  deploy: 'Checking the published files or URL',
  scan: 'Reading tools, resources and prompts of the server',
  metadata: 'Filling in display name, description and icon',
  publish: 'Making this release the current one',
};
