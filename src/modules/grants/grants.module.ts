import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { roleModule } from '../../config/role-module.js';
import { Grant } from './grant.entity.js';

/** Single servers and connections that their owners let other accounts use. */
@Module({})
export class GrantsModule {
  static readonly forRoles = roleModule(() => ({
    module: GrantsModule,
    api: { imports: [TypeOrmModule.forFeature([Grant])] },
  }));
}
