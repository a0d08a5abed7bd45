import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { NamespacesModule } from '../namespaces/namespaces.module.js';
import { ServerDetailsService } from './server-details.service.js';
import { ServerDomainsController } from './server-domains.controller.js';
import { ServerIconsController } from './server-icons.controller.js';
import { ServerRuntimeController } from './server-runtime.controller.js';
import { ServerRuntimeService } from './server-runtime.service.js';
import { ServerSearchController } from './server-search.controller.js';
import { ServerSearchService } from './server-search.service.js';
import { ServerSecretsController } from './server-secrets.controller.js';
import { ServerSecretsService } from './server-secrets.service.js';
import { ServerSettingsService } from './server-settings.service.js';
import { ServerUses } from './server-uses.js';
import { ServersCoreModule } from './servers-core.module.js';
import { ServersController } from './servers.controller.js';
import { ServersService } from './servers.service.js';

/** The registry. */
@Module({
  imports: [ServersCoreModule, AuthModule, NamespacesModule],
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
    ServerDetailsService,
    ServerSearchService,
    ServerSettingsService,
    ServerSecretsService,
    ServerRuntimeService,
    ServerUses,
  ],
  exports: [ServersCoreModule, ServersService, ServerSecretsService, ServerRuntimeService],
})
export class ServersModule {}
