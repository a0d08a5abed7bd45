import { IsText } from '../../platform/http/input-values.js';
import { PaginationDto } from '../../platform/http/pagination.dto.js';
import type { SampleNote } from './sample-note.entity.js';

export class PutSampleNoteDto {
  /**
   * Up to 1,000 characters.
   * @example 'Sunny'
   */
  @IsText(1_000)
  text: string;
}

export class SampleNoteDto {
  /** @example 'first' */
  name: string;
  /** @example 'Sunny' */
  text: string;
  /** @example '2026-11-20T10:15:00.000Z' */
  createdAt: string;
}

export class SampleNoteListDto {
  sampleNotes: SampleNoteDto[];
  pagination: PaginationDto;
}

/** Lists every field of an answer, so that a new column stays private until it is added here. */
export function toSampleNoteDto({ name, text, createdAt }: SampleNote): SampleNoteDto {
  return { name, text, createdAt: createdAt.toISOString() };
}
