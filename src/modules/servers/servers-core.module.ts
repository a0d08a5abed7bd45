import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { NamespacesCoreModule } from '../namespaces/namespaces-core.module.js';
import { ServerIcon } from './server-icon.entity.js';
import { ServerIconsService } from './server-icons.service.js';
import { ServerLinks } from './server-links.js';
import { ServerReleasesService } from './server-releases.service.js';
import { Server } from './server.entity.js';

/** What jobs need of the registry. Serves nothing. */
@Module({
  imports: [TypeOrmModule.forFeature([Server, ServerIcon]), NamespacesCoreModule],
  providers: [ServerLinks, ServerIconsService, ServerReleasesService],
  exports: [TypeOrmModule, ServerLinks, ServerIconsService, ServerReleasesService],
})
export class ServersCoreModule {}
