import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { NamespacesCoreModule } from '../namespaces/namespaces-core.module.js';
import { ServerIcon } from './icons/server-icon.entity.js';
import { ServerIconsService } from './icons/server-icons.service.js';
import { ServerIconsRepository } from './icons/server-icons.repository.js';
import { ServersRepository } from './servers.repository.js';
import { ServerUrlsService } from './server-urls.service.js';
import { ServerReleasesService } from './server-releases.service.js';
import { SecretValuesService } from './settings/server-secrets.service.js';
import { ServerSecret } from './settings/server-settings.entity.js';
import { ServerEgressService } from './settings/server-runtime.service.js';
import { ServerRuntime } from './settings/server-settings.entity.js';
import { Server } from './server.entity.js';

/** Providers that the API and jobs of other modules share. Has no controllers. */
@Module({
  imports: [TypeOrmModule.forFeature([Server, ServerIcon, ServerRuntime, ServerSecret]), NamespacesCoreModule],
  providers: [
    ServersRepository,
    ServerIconsRepository,
    SecretValuesService,
    ServerEgressService,
    ServerUrlsService,
    ServerIconsService,
    ServerReleasesService,
  ],
  exports: [
    TypeOrmModule,
    ServersRepository,
    SecretValuesService,
    ServerEgressService,
    ServerUrlsService,
    ServerIconsService,
    ServerReleasesService,
  ],
})
export class ServersCoreModule {}
