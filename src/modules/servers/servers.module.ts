import { Module } from '@nestjs/common';
import { NamespacesModule } from '../namespaces/namespaces.module.js';
import { ServersCoreModule } from './servers-core.module.js';
import { ServersController } from './servers.controller.js';
import { ServersService } from './servers.service.js';

/** The registry. */
@Module({
  imports: [ServersCoreModule, NamespacesModule],
  controllers: [ServersController],
  providers: [ServersService],
  exports: [ServersService, ServersCoreModule],
})
export class ServersModule {}
