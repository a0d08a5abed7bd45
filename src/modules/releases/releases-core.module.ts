import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { registerQueue } from '../../platform/queue/register-queue.js';
import { ServersCoreModule } from '../servers/servers-core.module.js';
import { HostedChannelsService } from '../../hosting/mcp/hosted-channels.service.js';
import { SessionNames } from '../../hosting/mcp/session-names.js';
import { ReleaseContract } from './contract/release-contract.entity.js';
import { ReleaseContracts } from './contract/release-contracts.js';
import { ReleaseArtifact, ReleaseLog, Release } from './release.entity.js';
import { ReleaseFiles } from './release-files.js';
import { BlobsRepository } from './blobs.repository.js';
import { ReleaseLogRepository } from './release-log.repository.js';
import { ReleasesRepository } from './releases.repository.js';
import { RescanRepository } from './rescan/rescan.repository.js';
import { RescansService } from './rescan/rescans.service.js';
import { ServerRescan } from './rescan/server-rescan.entity.js';
import { RELEASES_QUEUE, ReleasesQueue } from './releases.queue.js';

/** Providers that the API and the jobs of this module share. Has no controllers. */
@Module({
  imports: [
    TypeOrmModule.forFeature([Release, ReleaseLog, ReleaseArtifact, ReleaseContract, ServerRescan]),
    registerQueue(RELEASES_QUEUE),
    ServersCoreModule,
  ],
  providers: [
    BlobsRepository,
    ReleasesRepository,
    ReleaseLogRepository,
    RescanRepository,
    ReleasesQueue,
    ReleaseFiles,
    ReleaseContracts,
    RescansService,
    SessionNames,
    HostedChannelsService,
  ],
  exports: [
    TypeOrmModule,
    ServersCoreModule,
    BlobsRepository,
    ReleasesRepository,
    ReleaseLogRepository,
    RescanRepository,
    ReleasesQueue,
    ReleaseFiles,
    ReleaseContracts,
    RescansService,
    HostedChannelsService,
  ],
})
export class ReleasesCoreModule {}
