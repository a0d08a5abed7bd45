import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { SampleNote } from './sample-note.entity.js';
import { SampleNotesController } from './sample-notes.controller.js';
import { SampleNotesService } from './sample-notes.service.js';

declare global {
  interface SlipwayScopes {
    'sample-notes': 'read' | 'write';
  }
}

/** Sample notes of namespaces. */
@Module({
  imports: [TypeOrmModule.forFeature([SampleNote])],
  controllers: [SampleNotesController],
  providers: [SampleNotesService],
})
export class SampleNotesModule {}
