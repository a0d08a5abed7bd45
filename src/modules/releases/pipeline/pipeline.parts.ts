import type { ModuleMetadata } from '@nestjs/common';
import { BlobSweeper } from '../blob-sweeper.js';
import { ReleaseLeases } from '../release-lease.js';
import { DeployStage, ModuleChecks } from './deploy-stage.js';
import { MetadataStage, ReleaseStages } from './release-stages.js';
import { PublishStage } from './publish-stage.js';
import { ReleasePipeline, ReleasesProcessor } from './release-pipeline.js';
import { ReleaseSlotsRepository } from './release-slots.repository.js';
import { ReleaseSweeper } from './release-sweeper.js';
import { ScanStage } from './scan-stage.js';
import { RescanOutcomes, Rescanner } from '../rescan/rescanner.js';
import { RescanScan } from '../rescan/rescan-scan.js';
import { BundleScan } from '../scan/bundle-scan.js';
import { ExternalScan } from '../scan/external-scan.js';
import { HostedScan } from '../scan/hosted-scan.js';

export const worker: ModuleMetadata = {
  providers: [
    DeployStage,
    ModuleChecks,
    ExternalScan,
    BundleScan,
    HostedScan,
    ScanStage,
    MetadataStage,
    PublishStage,
    ReleaseSlotsRepository,
    ReleaseLeases,
    ReleaseStages,
    ReleasePipeline,
    ReleaseSweeper,
    BlobSweeper,
    RescanScan,
    RescanOutcomes,
    Rescanner,
    ReleasesProcessor,
  ],
};
