import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuthCoreModule } from '../auth/auth-core.module.js';
import { Namespace } from './namespace.entity.js';

/** The table of namespaces, for processes without the API. */
@Module({ imports: [TypeOrmModule.forFeature([Namespace]), AuthCoreModule], exports: [TypeOrmModule] })
export class NamespacesCoreModule {}
