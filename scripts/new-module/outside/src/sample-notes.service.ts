import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Caller } from '@slipway/module';
import { Repository } from 'typeorm';
import type { CreateSampleNoteDto, SampleNoteDto } from './sample-note.dto.js';
import { SampleNote } from './sample-note.entity.js';

const LISTED_MAX = 100;

@Injectable()
export class SampleNotesService {
  constructor(@InjectRepository(SampleNote) private readonly sampleNoteRepository: Repository<SampleNote>) {}

  async create({ accountId }: Caller, { text }: CreateSampleNoteDto): Promise<SampleNoteDto> {
    return toDto(await this.sampleNoteRepository.save(this.sampleNoteRepository.create({ accountId, text })));
  }

  async list({ accountId }: Caller): Promise<SampleNoteDto[]> {
    const sampleNotes = await this.sampleNoteRepository.find({
      where: { accountId },
      order: { createdAt: 'DESC' },
      take: LISTED_MAX,
    });
    return sampleNotes.map(toDto);
  }
}

function toDto({ id, text, createdAt }: SampleNote): SampleNoteDto {
  return { id, text, createdAt: createdAt.toISOString() };
}
