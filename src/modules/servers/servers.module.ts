import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { AuthModule } from '../auth/auth.module.js';
import { NamespacesModule } from '../namespaces/namespaces.module.js';
import { ServerCardsService } from './server-cards.service.js';
import { ServerDomainsController } from './settings/server-domains.controller.js';
import { ServerIconsController } from './icons/server-icons.controller.js';
import { ServerRuntimeController } from './settings/server-runtime.controller.js';
import { ServerSearchController } from './search/server-search.controller.js';
import { ServerSearchRepository } from './search/server-search.repository.js';
import { ServerSearchService } from './search/server-search.service.js';
import { ServerSecretsController } from './settings/server-secrets.controller.js';
import { ServerSecretsService } from './settings/server-secrets.service.js';
import { ServerSettingsService } from './settings/server-settings.service.js';
import { ServersCoreModule } from './servers-core.module.js';
import { ServersController } from './servers.controller.js';
import { ServersService } from './servers.service.js';

declare global {
  interface SlipwayScopes {
    servers: 'read' | 'write' | 'execute';
  }
}

/** The registry of servers. */
@Module({
  imports: [DiscoveryModule, ServersCoreModule, AuthModule, NamespacesModule],
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
    ServerSearchRepository,
    ServerSearchService,
    ServerSettingsService,
    ServerSecretsService,
  ],
  exports: [ServersCoreModule, ServersService],
})
export class ServersModule {}
