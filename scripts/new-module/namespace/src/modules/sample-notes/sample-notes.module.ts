import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { roleModule } from '../../config/role-module.js';
import { SampleNote } from './sample-note.entity.js';
import { SampleNotesController } from './sample-notes.controller.js';
import { SampleNotesService } from './sample-notes.service.js';

declare global {
  interface SlipwayScopes {
    'sample-notes': 'read' | 'write';
  }
}

/** Sample notes of namespaces. */
@Module({})
export class SampleNotesModule {
  static readonly forRoles = roleModule(() => ({
    module: SampleNotesModule,
    api: {
      imports: [TypeOrmModule.forFeature([SampleNote])],
      controllers: [SampleNotesController],
      providers: [SampleNotesService],
    },
  }));
}
