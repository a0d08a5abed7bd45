import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { NamespacesCoreModule } from '../namespaces/namespaces-core.module.js';
import { ServerIcon } from './server-icon.entity.js';
import { ServerIconsService } from './server-icons.service.js';
import { ServerLinksService } from './server-links.service.js';
import { ServerReleasesService } from './server-releases.service.js';
import { Server } from './server.entity.js';

/** What jobs need of the registry. Serves nothing. */
@Module({
  imports: [TypeOrmModule.forFeature([Server, ServerIcon]), NamespacesCoreModule],
  providers: [ServerLinksService, ServerIconsService, ServerReleasesService],
  exports: [TypeOrmModule, ServerLinksService, ServerIconsService, ServerReleasesService],
})
export class ServersCoreModule {}
