import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { NamespacesCoreModule } from '../namespaces/namespaces-core.module.js';
import { ServerReleasesService } from './server-releases.service.js';
import { Server } from './server.entity.js';

/** What jobs need of the registry. Serves nothing. */
@Module({
  imports: [TypeOrmModule.forFeature([Server]), NamespacesCoreModule],
  providers: [ServerReleasesService],
  exports: [TypeOrmModule, ServerReleasesService],
})
export class ServersCoreModule {}
