import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { roleModule } from '../../config/role-module.js';
import { AuthModule } from '../auth/auth.module.js';
import { TargetsModule } from '../targets/targets.module.js';
import { AccountTransfersController } from './account-transfers.controller.js';
import { Namespace } from './namespace.entity.js';
import { NamespacesController } from './namespaces.controller.js';
import { NamespacesRepository } from './namespaces.repository.js';
import { NamespacesService } from './namespaces.service.js';

declare global {
  interface SlipwayScopes {
    namespaces: 'read' | 'write';
  }
}

@Module({})
export class NamespacesModule {
  static readonly forRoles = roleModule((env) => ({
    module: NamespacesModule,
    always: { imports: [TypeOrmModule.forFeature([Namespace]), AuthModule.forRoles(env), TargetsModule] },
    api: {
      controllers: [NamespacesController, AccountTransfersController],
      providers: [NamespacesRepository, NamespacesService],
      exports: [NamespacesService],
    },
  }));
}
