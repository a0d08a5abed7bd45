import { PaginationDto } from '../../platform/http/pagination.dto.js';

/** The sample notes of a server. */
export class SampleNotesDto {
  /**
   * Number of accounts that have put a sample note on the server.
   * @example 3
   */
  count: number;
  /**
   * True if the caller has put a sample note on the server.
   * @example true
   */
  mine: boolean;
}

/** A sample note of the caller. */
export class SampleNoteDto {
  /**
   * The server.
   * @example 'acme/weather'
   */
  qualifiedName: string;
  /** @example '2026-11-20T10:15:00.000Z' */
  createdAt: string;
}

export class SampleNoteListDto {
  sampleNotes: SampleNoteDto[];
  pagination: PaginationDto;
}
