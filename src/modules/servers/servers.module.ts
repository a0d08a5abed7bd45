import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { roleModule } from '../../config/role-module.js';
import { AuthModule } from '../auth/auth.module.js';
import { NamespacesModule } from '../namespaces/namespaces.module.js';
import { ServerIcon } from './icons/server-icon.entity.js';
import { ServerIconsController } from './icons/server-icons.controller.js';
import { ServerIconsRepository } from './icons/server-icons.repository.js';
import { ServerIconsService } from './icons/server-icons.service.js';
import { ServerSearchController } from './search/server-search.controller.js';
import { ServerSearchRepository } from './search/server-search.repository.js';
import { ServerSearchService } from './search/server-search.service.js';
import { ServerAccessService } from './server-access.service.js';
import { ServerCardsService } from './server-cards.service.js';
import { ServerReleasesService } from './server-releases.service.js';
import { ServerUrlsService } from './server-urls.service.js';
import { Server } from './server.entity.js';
import { ServersController } from './servers.controller.js';
import { ServersRepository } from './servers.repository.js';
import { ServersService } from './servers.service.js';
import { ProgramSettingsService } from './settings/program-settings.service.js';
import { ServerRuntime, ServerSecret } from './settings/server-settings.entity.js';
import { ServerSecretsService } from './settings/server-secrets.service.js';
import {
  ServerDomainsController,
  ServerRuntimeController,
  ServerSecretsController,
} from './settings/server-settings.controller.js';
import { ServerSettingsService } from './settings/server-settings.service.js';

declare global {
  interface SlipwayScopes {
    servers: 'read' | 'write' | 'publish' | 'execute';
  }
}

/** The registry of servers. */
@Module({})
export class ServersModule {
  static readonly forRoles = roleModule((env) => ({
    module: ServersModule,
    always: {
      imports: [
        TypeOrmModule.forFeature([Server, ServerIcon, ServerRuntime, ServerSecret]),
        NamespacesModule.forRoles(env),
      ],
      providers: [
        ServersRepository,
        ServerIconsRepository,
        ProgramSettingsService,
        ServerUrlsService,
        ServerIconsService,
        ServerReleasesService,
      ],
      exports: [ProgramSettingsService, ServerUrlsService, ServerIconsService, ServerReleasesService],
    },
    api: {
      imports: [DiscoveryModule, AuthModule.forRoles(env)],
      controllers: [
        ServerSearchController,
        ServersController,
        ServerIconsController,
        ServerSecretsController,
        ServerDomainsController,
        ServerRuntimeController,
      ],
      providers: [
        ServersService,
        ServerAccessService,
        ServerCardsService,
        ServerSearchRepository,
        ServerSearchService,
        ServerSettingsService,
        ServerSecretsService,
      ],
      exports: [ServersService, ServerAccessService, ServerSearchService, ServerSecretsService, ServerSettingsService],
    },
  }));
}
