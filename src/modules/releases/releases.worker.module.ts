import { Module } from '@nestjs/common';
import { CredentialsCoreModule } from '../credentials/credentials-core.module.js';
import { BlobSweeper } from './blob-sweeper.js';
import { DeployStage } from './deploy-stage.js';
import { ExternalScan } from './external-scan.js';
import { HostedScan } from './hosted-scan.js';
import { MetadataStage } from './metadata-stage.js';
import { ModuleChecks } from './module-checks.js';
import { PublishStage } from './publish-stage.js';
import { ReleasePipeline } from './release-pipeline.js';
import { ReleasePipelineMetrics } from './release-pipeline.metrics.js';
import { ReleaseSlots } from './release-slots.js';
import { ReleaseStages } from './release-stages.js';
import { ReleaseSweeper } from './release-sweeper.js';
import { ReleasesCoreModule } from './releases-core.module.js';
import { ReleasesProcessor } from './releases.processor.js';
import { RescanClaims } from './rescan/rescan-claims.js';
import { RescanOutcomes } from './rescan/rescan-outcomes.js';
import { RescanScan } from './rescan/rescan-scan.js';
import { RescanSweeper } from './rescan/rescan-sweeper.js';
import { Rescanner } from './rescan/rescanner.js';
import { ScanStage } from './scan-stage.js';

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
