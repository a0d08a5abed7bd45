import { Injectable } from '@nestjs/common';
import { decodeCursor, encodeCursor } from '../../extension.js';
import type { ChangeDto, ChangeListDto, ChangesQueryDto } from './change.dto.js';
import { ChangesRepository, type ChangeRow } from './changes.repository.js';

const KEPT_DAYS = 90;
/** Retention of rows that only event handlers read, such as the result of a release. */
const FACTS_KEPT_DAYS = 7;
const DAY_MS = 86_400_000;

@Injectable()
export class ChangesService {
  constructor(private readonly changesRepository: ChangesRepository) {}

  async list(accountId: string, query: ChangesQueryDto): Promise<ChangeListDto> {
    const { since = null, actor = null, credential = null, target = null, limit = 100, cursor } = query;
    const beforeId = cursor === undefined ? null : decodeCursor(cursor, accountId);
    const filter = { since, actor, credential, target, beforeId };
    const rows = await this.changesRepository.find(accountId, filter, limit + 1);
    const last = rows.length > limit ? rows[limit - 1] : undefined;
    return {
      changes: rows.slice(0, limit).map(toChangeDto),
      nextCursor: last ? encodeCursor(last.id, accountId) : null,
    };
  }

  async deleteOld(now: Date): Promise<void> {
    const daysAgo = (days: number) => new Date(now.getTime() - days * DAY_MS);
    while ((await this.changesRepository.deleteBefore(daysAgo(KEPT_DAYS))) > 0);
    while ((await this.changesRepository.deleteFactsBefore(daysAgo(FACTS_KEPT_DAYS))) > 0);
  }
}

function toChangeDto(row: ChangeRow): ChangeDto {
  const { createdAt, action, targetId, target, accountId, actorId, actorName, credentialId, before, after } = row;
  return {
    createdAt: createdAt.toISOString(),
    action,
    target: { id: targetId, name: target },
    accountId,
    actor: actorId === null ? null : { id: actorId, name: actorName },
    credentialId,
    before,
    after,
  };
}

export function toCsv(changes: ChangeDto[]): string {
  const names = 'createdAt,action,target,targetId,accountId,actor,actorId,credentialId,before,after';
  const lines = changes.map(({ createdAt, action, target, accountId, actor, credentialId, before, after }) =>
    [
      ...[createdAt, action, target.name, target.id, accountId, actor?.name, actor?.id, credentialId],
      ...[before && JSON.stringify(before), after && JSON.stringify(after)],
    ]
      .map((value) => cell(value ?? ''))
      .join(','),
  );
  return [names, ...lines, ''].join('\r\n');
}

/** Formats a cell of CSV. A string that spreadsheets would treat as a formula gets a leading apostrophe. */
function cell(text: string): string {
  const literal = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(literal) ? `"${literal.replaceAll('"', '""')}"` : literal;
}
