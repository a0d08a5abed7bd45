import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { NamespacesModule } from '../namespaces/namespaces.module.js';
import { Server } from './server.entity.js';
import { ServersController } from './servers.controller.js';
import { ServersService } from './servers.service.js';

/** The registry. */
@Module({
  imports: [TypeOrmModule.forFeature([Server]), NamespacesModule],
  controllers: [ServersController],
  providers: [ServersService],
  exports: [ServersService],
})
export class ServersModule {}
