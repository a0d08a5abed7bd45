import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { defineModule, roleModule } from '@slipway/module';
import { CreateSampleNotes1000000000000 } from './create-sample-notes.migration.js';
import { SampleNote } from './sample-note.entity.js';
import { SampleNotesController } from './sample-notes.controller.js';
import { SampleNotesService } from './sample-notes.service.js';

declare global {
  interface SlipwayScopes {
    'sample-notes': 'read' | 'write';
  }
}

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

export default defineModule({
  name: 'sample-notes',
  apiVersion: 1,
  module: SampleNotesModule.forRoles,
  migrations: [CreateSampleNotes1000000000000],
});
