import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuthModule } from '../auth/auth.module.js';
import { Namespace } from './namespace.entity.js';
import { NamespacesController } from './namespaces.controller.js';
import { NamespacesRepository } from './namespaces.repository.js';
import { NamespacesService } from './namespaces.service.js';

declare global {
  interface SlipwayScopes {
    namespaces: 'read' | 'write';
  }
}

/** Namespaces and their owners. */
@Module({
  imports: [TypeOrmModule.forFeature([Namespace]), AuthModule],
  controllers: [NamespacesController],
  providers: [NamespacesRepository, NamespacesService],
  exports: [NamespacesService],
})
export class NamespacesModule {}
