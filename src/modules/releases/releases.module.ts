import { Module, type OnModuleInit } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { CredentialsModule } from '../oauth/credentials.module.js';
import { CredentialsService } from '../oauth/credentials.service.js';
import { ServersService } from '../servers/servers.service.js';
import { ServersModule } from '../servers/servers.module.js';
import { ContractChangesController } from './contract/contract-changes.controller.js';
import { BundleController } from './bundle/bundle.controller.js';
import { PublishController } from './publish/publish.controller.js';
import { PublishService } from './publish/publish.service.js';
import { ReleaseStreams } from './stream/release-streams.js';
import { ReleaseStreamsController } from './stream/release-streams.controller.js';
import { ReleasesCoreModule } from './releases-core.module.js';
import { ReleasesController } from './releases.controller.js';
import { ReleasesService } from './releases.service.js';

/** Publishing and releases. */
@Module({
  imports: [ReleasesCoreModule, ServersModule, CredentialsModule, AuthModule],
  controllers: [
    PublishController,
    ReleaseStreamsController,
    ReleasesController,
    BundleController,
    ContractChangesController,
  ],
  providers: [PublishService, ReleasesService, ReleaseStreams],
  exports: [ReleasesCoreModule],
})
export class ReleasesModule implements OnModuleInit {
  constructor(
    private readonly credentials: CredentialsService,
    private readonly releases: ReleasesService,
    private readonly servers: ServersService,
  ) {}

  /** Resumes a release once it is authorized, and revokes the credentials of a deleted server. */
  onModuleInit(): void {
    this.servers.beforeDeletion(({ id }) => this.credentials.remove({ kind: 'server', id }));
    this.credentials.onAuthorized('server', (serverId) => this.releases.resumeNewest(serverId));
  }
}
