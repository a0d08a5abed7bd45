import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { roleModule } from '../../config/role-module.js';
import { AuthModule } from '../auth/auth.module.js';
import { ConnectionCoreModule } from '../connections/core/connection-core.module.js';
import { ConnectionGrantsController } from './connection-grants.controller.js';
import { GrantCache } from './grant-cache.js';
import { Grant } from './grant.entity.js';
import { GrantsRepository } from './grants.repository.js';
import { GrantsService } from './grants.service.js';
import { ReceivedGrantsController } from './received-grants.controller.js';
import { ServerGrantsController } from './server-grants.controller.js';

/** Single servers and connections that their owners let other accounts use. */
@Module({})
export class GrantsModule {
  static readonly forRoles = roleModule((env) => ({
    module: GrantsModule,
    api: {
      imports: [TypeOrmModule.forFeature([Grant]), AuthModule.forRoles(env), ConnectionCoreModule.forRoles(env)],
      controllers: [ServerGrantsController, ConnectionGrantsController, ReceivedGrantsController],
      providers: [GrantsRepository, GrantsService, GrantCache],
    },
  }));
}
