import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { NamespacesCoreModule } from '../namespaces/namespaces-core.module.js';
import { ServerIcon } from './icons/server-icon.entity.js';
import { ServerIconsService } from './icons/server-icons.service.js';
import { ServerIconsRepository } from './icons/server-icons.repository.js';
import { ServersRepository } from './servers.repository.js';
import { ServerUrlsService } from './server-urls.service.js';
import { ServerReleasesService } from './server-releases.service.js';
import { ServerSecret, ServerRuntime } from './settings/server-settings.entity.js';
import { Server } from './server.entity.js';
import { ProgramSettingsService } from './settings/program-settings.service.js';

/** Providers that the API and jobs of other modules share. Has no controllers. */
@Module({
  imports: [TypeOrmModule.forFeature([Server, ServerIcon, ServerRuntime, ServerSecret]), NamespacesCoreModule],
  providers: [
    ServersRepository,
    ServerIconsRepository,
    ProgramSettingsService,
    ServerUrlsService,
    ServerIconsService,
    ServerReleasesService,
  ],
  exports: [
    TypeOrmModule,
    ServersRepository,
    ProgramSettingsService,
    ServerUrlsService,
    ServerIconsService,
    ServerReleasesService,
  ],
})
export class ServersCoreModule {}
