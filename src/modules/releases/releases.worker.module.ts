import { Module } from '@nestjs/common';
import { CredentialsCoreModule } from '../oauth/credentials-core.module.js';
import { BlobSweeper } from './blob-sweeper.js';
import { DeployStage } from './pipeline/deploy-stage.js';
import { ExternalScan } from './scan/external-scan.js';
import { HostedScan } from './scan/hosted-scan.js';
import { MetadataStage } from './pipeline/metadata-stage.js';
import { ModuleChecks } from './pipeline/deploy-stage.js';
import { PublishStage } from './pipeline/publish-stage.js';
import { ReleasePipeline } from './pipeline/release-pipeline.js';
import { ReleasePipelineMetrics } from './pipeline/release-pipeline.metrics.js';
import { ReleaseSlots } from './pipeline/release-slots.js';
import { ReleaseStages } from './pipeline/release-stages.js';
import { ReleaseSweeper } from './pipeline/release-sweeper.js';
import { ReleasesCoreModule } from './releases-core.module.js';
import { ReleasesProcessor } from './pipeline/releases.processor.js';
import { RescanClaims } from './rescan/rescan-claims.js';
import { RescanOutcomes } from './rescan/rescan-outcomes.js';
import { RescanScan } from './rescan/rescan-scan.js';
import { RescanSweeper } from './rescan/rescan-sweeper.js';
import { Rescanner } from './rescan/rescanner.js';
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
    ReleaseSlots,
    ReleaseStages,
    ReleasePipeline,
    ReleasePipelineMetrics,
    ReleaseSweeper,
    BlobSweeper,
    RescanClaims,
    RescanScan,
    RescanOutcomes,
    Rescanner,
    RescanSweeper,
    ReleasesProcessor,
  ],
})
export class ReleasesWorkerModule {}
