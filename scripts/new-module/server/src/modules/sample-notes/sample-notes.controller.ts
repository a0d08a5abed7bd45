import { Controller, Delete, Get, Put } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { Access, CurrentCaller } from '../auth/access.decorator.js';
import type { Caller } from '../auth/access.types.js';
import { ApiServerName, TargetServer, serverNotFound } from '../servers/server.decorator.js';
import type { ServerRef } from '../servers/server.types.js';
import { SampleNotesDto } from './sample-note.dto.js';
import { SampleNotesService } from './sample-notes.service.js';

/** Every account may put a sample note on every server. */
@ApiTags('Sample notes')
@ApiServerName()
@Controller('servers/:qualifiedName/sample-notes')
export class SampleNotesController {
  constructor(private readonly sampleNotes: SampleNotesService) {}

  /** Put your sample note on a server. Repeating it changes nothing. */
  @Put()
  @Access('sample-notes:write')
  @ApiErrors(serverNotFound)
  add(@TargetServer() server: ServerRef, @CurrentCaller() caller: Caller): Promise<SampleNotesDto> {
    return this.sampleNotes.add(server, caller);
  }

  /** Count the sample notes of a server. */
  @Get()
  @Access('sample-notes:read', { anonymous: true })
  @ApiErrors(serverNotFound)
  get(@TargetServer() server: ServerRef, @CurrentCaller() caller: Caller): Promise<SampleNotesDto> {
    return this.sampleNotes.get(server, caller);
  }

  /** Remove your sample note from a server. */
  @Delete()
  @Access('sample-notes:write')
  @ApiErrors(serverNotFound)
  remove(@TargetServer() server: ServerRef, @CurrentCaller() caller: Caller): Promise<SampleNotesDto> {
    return this.sampleNotes.remove(server, caller);
  }
}
