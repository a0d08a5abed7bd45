import { Module } from '@nestjs/common';
import { CredentialsCoreModule } from '../oauth/credentials-core.module.js';
import { BlobSweeper } from './blob-sweeper.js';
import { DeployStage, ModuleChecks } from './pipeline/deploy-stage.js';
import { ExternalScan } from './scan/external-scan.js';
import { HostedScan } from './scan/hosted-scan.js';
import { MetadataStage, ReleaseStages } from './pipeline/release-stages.js';
import { PublishStage } from './pipeline/publish-stage.js';
import { ReleasePipeline } from './pipeline/release-pipeline.js';
import { ReleaseSlotsRepository } from './pipeline/release-slots.repository.js';
import { ReleaseSweeper } from './pipeline/release-sweeper.js';
import { ReleasesCoreModule } from './releases-core.module.js';
import { ReleasesProcessor } from './pipeline/releases.processor.js';
import { RescanOutcomes, Rescanner } from './rescan/rescanner.js';
import { RescanScan } from './rescan/rescan-scan.js';
import { ScanStage } from './pipeline/scan-stage.js';

/** The pipeline; loaded by processes with the `worker` role. */
@Module({
  imports: [ReleasesCoreModule, CredentialsCoreModule],
  providers: [
    DeployStage,
    ModuleChecks,
    ExternalScan,
    HostedScan,
    ScanStage,
    MetadataStage,
    PublishStage,
    ReleaseSlotsRepository,
    ReleaseStages,
    ReleasePipeline,
    ReleaseSweeper,
    BlobSweeper,
    RescanScan,
    RescanOutcomes,
    Rescanner,
    ReleasesProcessor,
  ],
})
export class ReleasesWorkerModule {}
