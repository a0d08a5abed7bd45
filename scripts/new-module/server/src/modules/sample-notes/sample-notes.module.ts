import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { roleModule } from '../../config/role-module.js';
import { ServersModule } from '../servers/servers.module.js';
import { SampleNote } from './sample-note.entity.js';
import { SampleNotesController } from './sample-notes.controller.js';
import { SampleNotesRepository } from './sample-notes.repository.js';
import { SampleNotesService } from './sample-notes.service.js';

declare global {
  interface SlipwayScopes {
    'sample-notes': 'read' | 'write';
  }
}

/** Sample notes of servers. */
@Module({})
export class SampleNotesModule {
  static readonly forRoles = roleModule((env) => ({
    module: SampleNotesModule,
    api: {
      imports: [TypeOrmModule.forFeature([SampleNote]), ServersModule.forRoles(env)],
      controllers: [SampleNotesController],
      providers: [SampleNotesRepository, SampleNotesService],
    },
  }));
}
