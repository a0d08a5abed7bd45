import { Body, Controller, Get, Post } from '@nestjs/common';
import { ApiCreatedResponse, ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { Access, ApiErrors, CurrentCaller, type Caller } from '@slipway/module';
import { CreateSampleNoteDto, SampleNoteDto, SampleNoteListDto } from './sample-note.dto.js';
import { SampleNotesService } from './sample-notes.service.js';

@ApiTags('Sample notes')
@Controller('sample-notes')
export class SampleNotesController {
  constructor(private readonly sampleNotesService: SampleNotesService) {}

  @Post()
  @Access('sample-notes:write')
  @ApiOperation({ summary: 'Create a sample note' })
  @ApiCreatedResponse({ type: SampleNoteDto })
  @ApiErrors(400)
  create(@CurrentCaller() caller: Caller, @Body() body: CreateSampleNoteDto): Promise<SampleNoteDto> {
    return this.sampleNotesService.create(caller, body);
  }

  @Get()
  @Access('sample-notes:read')
  @ApiOperation({ summary: 'List your sample notes' })
  @ApiOkResponse({ type: SampleNoteListDto })
  async list(@CurrentCaller() caller: Caller): Promise<SampleNoteListDto> {
    return { sampleNotes: await this.sampleNotesService.list(caller) };
  }
}
