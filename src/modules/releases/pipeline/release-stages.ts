import { Injectable } from '@nestjs/common';
import { DeployStage } from './deploy-stage.js';
import { MetadataStage } from './metadata-stage.js';
import { PublishStage } from './publish-stage.js';
import type { ReleaseLease } from '../release-lease.js';
import type { Stage } from '../release-state.js';
import type { Release } from '../release.entity.js';
import { ScanStage } from './scan-stage.js';
import type { ReleaseStage, StageOutcome } from '../stage-outcome.js';

/** Runs the stages by name. */
@Injectable()
export class ReleaseStages {
  private readonly byName: Record<Stage, ReleaseStage>;

  constructor(deploy: DeployStage, scan: ScanStage, metadata: MetadataStage, publish: PublishStage) {
    this.byName = { deploy, scan, metadata, publish };
  }

  /** Runs the current stage of a release. */
  async run(release: Release, lease: ReleaseLease): Promise<StageOutcome> {
    const { stage } = release;
    await lease.log({ stage, level: 'start', message: starts[stage] });
    return this.byName[stage].run(release, lease);
  }
}

const starts: Record<Stage, string> = {
  deploy: 'Checking what was published',
  scan: 'Looking at what the server offers',
  metadata: 'Collecting what people see of the server',
  publish: 'Making this release the current one',
};
