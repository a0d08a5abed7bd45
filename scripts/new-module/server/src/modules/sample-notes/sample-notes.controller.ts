import { Controller, Delete, Get, Put, Query } from '@nestjs/common';
import { ApiTags } from '#api-docs';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { PageQueryDto } from '../../platform/http/pagination.dto.js';
import { Access, CurrentCaller } from '../auth/access.decorator.js';
import type { Caller } from '../auth/access.types.js';
import { ApiServerName, TargetServer, serverNotFound } from '../servers/server.decorator.js';
import type { ServerRef } from '../servers/server.types.js';
import { SampleNoteListDto, SampleNotesDto } from './sample-note.dto.js';
import { SampleNotesService } from './sample-notes.service.js';

const OF_SERVER = 'servers/:qualifiedName/sample-notes';

/** Every account may put a sample note on every server that it may find. */
@ApiTags('Sample notes')
@Controller()
export class SampleNotesController {
  constructor(private readonly sampleNotes: SampleNotesService) {}

  /** List your sample notes, newest first. Those on servers that you may not find are left out. */
  @Get('sample-notes')
  @Access('sample-notes:read')
  @ApiErrors(400)
  list(@CurrentCaller() caller: Caller, @Query() query: PageQueryDto): Promise<SampleNoteListDto> {
    return this.sampleNotes.list(caller, query);
  }

  /** Put your sample note on a server. Repeating it changes nothing. */
  @Put(OF_SERVER)
  @ApiServerName()
  @Access('sample-notes:write')
  @ApiErrors(serverNotFound)
  add(@TargetServer() server: ServerRef, @CurrentCaller() caller: Caller): Promise<SampleNotesDto> {
    return this.sampleNotes.add(server, caller);
  }

  /** Count the sample notes of a server. */
  @Get(OF_SERVER)
  @ApiServerName()
  @Access('sample-notes:read', { anonymous: true })
  @ApiErrors(serverNotFound)
  get(@TargetServer() server: ServerRef, @CurrentCaller() caller: Caller): Promise<SampleNotesDto> {
    return this.sampleNotes.get(server, caller);
  }

  /** Remove your sample note from a server. */
  @Delete(OF_SERVER)
  @ApiServerName()
  @Access('sample-notes:write')
  @ApiErrors(serverNotFound)
  remove(@TargetServer() server: ServerRef, @CurrentCaller() caller: Caller): Promise<SampleNotesDto> {
    return this.sampleNotes.remove(server, caller);
  }
}
