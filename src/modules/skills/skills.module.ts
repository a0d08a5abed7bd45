import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { roleModule } from '../../config/role-module.js';
import { AuthModule } from '../auth/auth.module.js';
import { NamespacesModule } from '../namespaces/namespaces.module.js';
import { GitArchives } from './git-source.js';
import { SkillFile, Skill } from './skill.entity.js';
import { SkillFilesController, SkillIndexesController } from './skill-files.controller.js';
import { SkillFilesService } from './skill-files.service.js';
import { SkillsController } from './skills.controller.js';
import { SkillsRepository } from './skills.repository.js';
import { SkillsService } from './skills.service.js';

declare global {
  interface SlipwayScopes {
    skills: 'read' | 'write' | 'publish';
  }
}

@Module({})
export class SkillsModule {
  static readonly forRoles = roleModule((env) => ({
    module: SkillsModule,
    api: {
      imports: [TypeOrmModule.forFeature([Skill, SkillFile]), AuthModule.forRoles(env), NamespacesModule.forRoles(env)],
      controllers: [SkillsController, SkillFilesController, SkillIndexesController],
      providers: [SkillsRepository, SkillsService, SkillFilesService, GitArchives],
    },
  }));
}
