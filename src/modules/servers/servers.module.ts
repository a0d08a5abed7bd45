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
import { ServerCardsService } from './server-cards.service.js';
import { ServerDetailsService } from './server-details.service.js';
import { ServerReleasesService } from './server-releases.service.js';
import { ServerUrlsService } from './server-urls.service.js';
import { Server } from './server.entity.js';
import { ServersController } from './servers.controller.js';
import { ServersRepository } from './servers.repository.js';
import { ServersService } from './servers.service.js';
import { ServerDomainsController } from './settings/server-domains.controller.js';
import { ServerRuntimeController } from './settings/server-runtime.controller.js';
import { ServerRuntime } from './settings/server-runtime.entity.js';
import { ServerEgressService, ServerRuntimeService } from './settings/server-runtime.service.js';
import { ServerSecret } from './settings/server-secret.entity.js';
import { ServerSecretsController } from './settings/server-secrets.controller.js';
import { SecretValuesService, ServerSecretsService } from './settings/server-secrets.service.js';
import { ServerSettingsService } from './settings/server-settings.service.js';
import { UsageCounter } from './usage-counter.js';

declare global {
  interface SlipwayScopes {
    servers: 'read' | 'write' | 'execute';
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
        SecretValuesService,
        ServerEgressService,
        ServerUrlsService,
        ServerIconsService,
        ServerReleasesService,
      ],
      exports: [SecretValuesService, ServerEgressService, ServerUrlsService, ServerIconsService, ServerReleasesService],
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
        ServerCardsService,
        ServerDetailsService,
        ServerSearchRepository,
        ServerSearchService,
        ServerSettingsService,
        ServerSecretsService,
        ServerRuntimeService,
        UsageCounter,
      ],
      exports: [ServersService],
    },
  }));
}
