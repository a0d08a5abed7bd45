import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { lazyPart, roleModule } from '../../config/role-module.js';
import { programOwners } from '../../hosting/hosting.js';
import { HostedChannelsService } from '../../hosting/mcp/hosted-channels.service.js';
import { registerQueue } from '../../platform/queue/register-queue.js';
import { AuthModule } from '../auth/auth.module.js';
import { LogsModule } from '../logs/logs.module.js';
import { credentialOwners } from '../oauth/credentials.types.js';
import { OAuthModule } from '../oauth/oauth.module.js';
import { ServersModule } from '../servers/servers.module.js';
import { ServerDeletion } from '../servers/servers.service.js';
import { BlobsRepository } from './blobs.repository.js';
import { BundleController } from './bundle/bundle.controller.js';
import { ContractChangesController } from './contract/contract-changes.controller.js';
import { ReleaseContract } from './contract/release-contract.entity.js';
import { ReleaseContracts } from './contract/release-contracts.js';
import { CurrentReleaseService } from './current-release.service.js';
import { ProgramChanges, ReleasePrograms, ScanTraces } from './programs/release-programs.js';
import { NewReleases } from './publish/new-releases.js';
import { PublishController } from './publish/publish.controller.js';
import { PublishService } from './publish/publish.service.js';
import { Release, ReleaseArtifact, ReleaseLog } from './release.entity.js';
import { ReleaseFiles } from './release-files.js';
import { ReleaseLogsRepository } from './release-log.repository.js';
import { ReleaseResumptionService } from './release-resumption.service.js';
import { ReleaseSwitch } from './release-switch.js';
import { ReleasesController } from './releases.controller.js';
import { RELEASES_QUEUE, ReleasesQueue } from './releases.queue.js';
import { ReleasesRepository } from './releases.repository.js';
import { ReleasesService } from './releases.service.js';
import { RescansRepository } from './rescan/rescan.repository.js';
import { RescansService } from './rescan/rescans.service.js';
import { ServerRescan } from './rescan/server-rescan.entity.js';
import { ReleaseStreams } from './stream/release-streams.js';
import { ReleaseStreamsController } from './stream/release-streams.controller.js';

const worker = lazyPart('worker', async () => (await import('./pipeline/pipeline.parts.js')).worker);

@Module({})
export class ReleasesModule {
  static readonly forRoles = roleModule((env) => ({
    module: ReleasesModule,
    always: {
      imports: [
        TypeOrmModule.forFeature([Release, ReleaseLog, ReleaseArtifact, ReleaseContract, ServerRescan]),
        registerQueue(RELEASES_QUEUE),
        ServersModule.forRoles(env),
        OAuthModule.forRoles(env),
      ],
      providers: [
        BlobsRepository,
        ReleasesRepository,
        ReleaseLogsRepository,
        RescansRepository,
        ReleasesQueue,
        ReleaseFiles,
        ReleaseContracts,
        RescansService,
        ReleaseSwitch,
        HostedChannelsService,
      ],
      exports: [HostedChannelsService],
    },
    api: {
      imports: [AuthModule.forRoles(env)],
      controllers: [
        PublishController,
        ReleaseStreamsController,
        ReleasesController,
        BundleController,
        ContractChangesController,
      ],
      providers: [
        PublishService,
        NewReleases,
        ReleasesService,
        ReleaseResumptionService,
        { provide: ServerDeletion, useExisting: ReleaseResumptionService },
        { provide: credentialOwners.server, useExisting: ReleaseResumptionService },
        CurrentReleaseService,
        ReleaseStreams,
      ],
      exports: [CurrentReleaseService, PublishService, ReleaseResumptionService, ReleasesService],
    },
    worker,
    host: {
      imports: [AuthModule.forRoles(env), LogsModule.forRoles(env)],
      providers: [
        ReleasePrograms,
        { provide: programOwners.release, useExisting: ReleasePrograms },
        ScanTraces,
        ProgramChanges,
      ],
    },
  }));
}
