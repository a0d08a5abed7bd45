import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuthModule } from '../auth/auth.module.js';
import { NamespacesModule } from '../namespaces/namespaces.module.js';
import { ServerDetailsService } from './server-details.service.js';
import { ServerDomainsController } from './server-domains.controller.js';
import { ServerIcon } from './server-icon.entity.js';
import { ServerIconsController } from './server-icons.controller.js';
import { ServerIconsService } from './server-icons.service.js';
import { ServerLinks } from './server-links.js';
import { ServerSearchController } from './server-search.controller.js';
import { ServerSearchService } from './server-search.service.js';
import { ServerSecret } from './server-secret.entity.js';
import { ServerSecretsController } from './server-secrets.controller.js';
import { ServerSecretsService } from './server-secrets.service.js';
import { ServerSettingsService } from './server-settings.service.js';
import { ServerUses } from './server-uses.js';
import { Server } from './server.entity.js';
import { ServersController } from './servers.controller.js';
import { ServersService } from './servers.service.js';

/** The registry. */
@Module({
  imports: [TypeOrmModule.forFeature([Server, ServerIcon, ServerSecret]), AuthModule, NamespacesModule],
  controllers: [
    ServerSearchController,
    ServersController,
    ServerIconsController,
    ServerSecretsController,
    ServerDomainsController,
  ],
  providers: [
    ServersService,
    ServerDetailsService,
    ServerSearchService,
    ServerSettingsService,
    ServerSecretsService,
    ServerIconsService,
    ServerLinks,
    ServerUses,
  ],
  exports: [ServersService, ServerSecretsService],
})
export class ServersModule {}
