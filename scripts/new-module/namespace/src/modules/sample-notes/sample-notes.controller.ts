import { Body, Controller, Delete, Get, Param, Put, Query } from '@nestjs/common';
import { ApiParam, ApiTags } from '#api-docs';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { PageQueryDto } from '../../platform/http/pagination.dto.js';
import { SuccessDto } from '../../platform/http/success.dto.js';
import { Access, CurrentNamespace } from '../auth/access.decorator.js';
import type { OwnedNamespace } from '../auth/access.types.js';
import { PutSampleNoteDto, SampleNoteDto, SampleNoteListDto } from './sample-note.dto.js';
import { SampleNoteNotFoundError } from './sample-notes.errors.js';
import { SampleNotesService } from './sample-notes.service.js';

/** Only the owner of the namespace: for everybody else nothing is there. */
const ownNamespace = { owner: 'namespace', missing: () => new SampleNoteNotFoundError() };
const notFound = { status: 404, message: 'Sample note not found' };
const nameParam = { name: 'name', description: 'The sample note in its namespace.', example: 'first' };

@ApiTags('Sample notes')
@ApiParam({ name: 'namespace', description: 'The namespace.', example: 'acme' })
@Controller('sample-notes/:namespace')
export class SampleNotesController {
  constructor(private readonly sampleNotes: SampleNotesService) {}

  /** Write a sample note. One of the same name is replaced. */
  @Put(':name')
  @ApiParam(nameParam)
  @Access('sample-notes:write', ownNamespace)
  @ApiErrors(400, notFound)
  put(
    @CurrentNamespace() namespace: OwnedNamespace,
    @Param('name') name: string,
    @Body() body: PutSampleNoteDto,
  ): Promise<SampleNoteDto> {
    return this.sampleNotes.put(namespace, name, body);
  }

  /** List the sample notes of a namespace. */
  @Get()
  @Access('sample-notes:read', ownNamespace)
  @ApiErrors(400, notFound)
  list(@CurrentNamespace() namespace: OwnedNamespace, @Query() query: PageQueryDto): Promise<SampleNoteListDto> {
    return this.sampleNotes.list(namespace, query);
  }

  /** Get a sample note. */
  @Get(':name')
  @ApiParam(nameParam)
  @Access('sample-notes:read', ownNamespace)
  @ApiErrors(notFound)
  get(@CurrentNamespace() namespace: OwnedNamespace, @Param('name') name: string): Promise<SampleNoteDto> {
    return this.sampleNotes.get(namespace, name);
  }

  /** Delete a sample note. */
  @Delete(':name')
  @ApiParam(nameParam)
  @Access('sample-notes:write', ownNamespace)
  @ApiErrors(notFound)
  async remove(@CurrentNamespace() namespace: OwnedNamespace, @Param('name') name: string): Promise<SuccessDto> {
    await this.sampleNotes.remove(namespace, name);
    return { success: true };
  }
}
