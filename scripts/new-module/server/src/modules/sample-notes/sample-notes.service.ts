import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { onViolation } from '../../platform/database/postgres-errors.js';
import { pageOf, type PageQueryDto } from '../../platform/http/pagination.dto.js';
import type { Caller } from '../auth/access.types.js';
import { ServerCardField, type ServerCardContributor } from '../servers/server-card.decorator.js';
import { formatQualifiedName, type ServerRef } from '../servers/server.types.js';
import { ServerNotFoundError } from '../servers/servers.errors.js';
import type { SampleNoteListDto, SampleNotesDto } from './sample-note.dto.js';
import { SampleNote } from './sample-note.entity.js';
import { SampleNotesRepository } from './sample-notes.repository.js';

/** Sample notes of accounts on servers, and their count on the cards of servers. */
@Injectable()
@ServerCardField({
  key: 'sampleNotes',
  schema: { type: 'integer', description: 'Number of accounts that have put a sample note on the server.' },
  absent: 0,
})
export class SampleNotesService implements ServerCardContributor {
  constructor(
    @InjectRepository(SampleNote) private readonly sampleNotes: Repository<SampleNote>,
    private readonly rows: SampleNotesRepository,
  ) {}

  /** Puts the caller's sample note on a server. Repeating it changes nothing. @throws ServerNotFoundError */
  async add(server: ServerRef, caller: Caller): Promise<SampleNotesDto> {
    const sampleNote = { serverId: server.id, accountId: caller.accountId };
    // The server may be deleted meanwhile.
    const onGone = onViolation({ foreignKey: () => new ServerNotFoundError() });
    await this.sampleNotes.upsert(sampleNote, ['serverId', 'accountId']).catch(onGone);
    return this.get(server, caller);
  }

  /** Removes the caller's sample note from a server. Without a sample note it changes nothing. */
  async remove(server: ServerRef, caller: Caller): Promise<SampleNotesDto> {
    await this.sampleNotes.delete({ serverId: server.id, accountId: caller.accountId });
    return this.get(server, caller);
  }

  /** The number of sample notes of a server, and whether the caller has put a sample note on it. */
  async get(server: ServerRef, caller: Caller): Promise<SampleNotesDto> {
    const counts = await this.rows.countsOf([server.id]);
    const mine = await this.sampleNotes.existsBy({ serverId: server.id, accountId: caller.accountId });
    return { count: counts.get(server.id) ?? 0, mine };
  }

  /** Lists the caller's sample notes, newest first, without those on servers that it may not find. */
  async list(caller: Caller, query: PageQueryDto): Promise<SampleNoteListDto> {
    const { offset, pagination } = pageOf(query, await this.rows.countOf(caller));
    const rows = offset === null ? [] : await this.rows.pageOf(caller, offset, pagination.pageSize);
    const sampleNotes = rows.map(({ createdAt, ...server }) => ({
      qualifiedName: formatQualifiedName(server),
      createdAt: createdAt.toISOString(),
    }));
    return { sampleNotes, pagination };
  }

  /** The counts for the cards of a page of servers, by server id. */
  fieldsFor(serverIds: string[]): Promise<Map<string, number>> {
    return this.rows.countsOf(serverIds);
  }
}
