import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { InvalidInputError } from '../../platform/errors/domain-error.js';
import { pageOf, type PageQueryDto } from '../../platform/http/pagination.dto.js';
import type { OwnedNamespace } from '../auth/access.types.js';
import {
  toSampleNoteDto,
  type PutSampleNoteDto,
  type SampleNoteDto,
  type SampleNoteListDto,
} from './sample-note.dto.js';
import { SampleNote } from './sample-note.entity.js';
import { SampleNoteNotFoundError } from './sample-notes.errors.js';

/** Sample notes of namespaces. */
@Injectable()
export class SampleNotesService {
  constructor(@InjectRepository(SampleNote) private readonly sampleNotes: Repository<SampleNote>) {}

  /** Writes a sample note; one of this name is replaced. @throws InvalidInputError */
  async put(namespace: OwnedNamespace, name: string, { text }: PutSampleNoteDto): Promise<SampleNoteDto> {
    if (!/^[a-z0-9-]{1,64}$/.test(name)) {
      throw new InvalidInputError('name must be 1 to 64 lower-case letters, digits and hyphens');
    }
    await this.sampleNotes.upsert({ namespaceId: namespace.id, name, text }, ['namespaceId', 'name']);
    return this.get(namespace, name);
  }

  /** @throws SampleNoteNotFoundError */
  async get(namespace: OwnedNamespace, name: string): Promise<SampleNoteDto> {
    const sampleNote = await this.sampleNotes.findOneBy({ namespaceId: namespace.id, name });
    if (!sampleNote) throw new SampleNoteNotFoundError();
    return toSampleNoteDto(sampleNote);
  }

  /** Lists the sample notes of a namespace by name. A page past the end is empty. */
  async list(namespace: OwnedNamespace, query: PageQueryDto): Promise<SampleNoteListDto> {
    const where = { namespaceId: namespace.id };
    const { offset, pagination } = pageOf(query, await this.sampleNotes.countBy(where));
    const page = { skip: offset ?? 0, take: pagination.pageSize };
    const rows = offset === null ? [] : await this.sampleNotes.find({ where, order: { name: 'ASC' }, ...page });
    return { sampleNotes: rows.map(toSampleNoteDto), pagination };
  }

  /** @throws SampleNoteNotFoundError */
  async remove(namespace: OwnedNamespace, name: string): Promise<void> {
    const { affected } = await this.sampleNotes.delete({ namespaceId: namespace.id, name });
    if (affected === 0) throw new SampleNoteNotFoundError();
  }
}
