import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository, type SelectQueryBuilder } from 'typeorm';
import { decodeCursor, encodeCursor } from '../../platform/http/cursor.js';
import type { OwnedNamespace } from '../auth/access.types.js';
import type { ConnectionListDto, ConnectionQueryDto } from './connection.dto.js';
import { Connection } from './connection.entity.js';
import { shownColumns, toConnectionDto, type ShownConnection } from './connection.mapper.js';
import { meaningsOf, type MetadataFilter } from './metadata-filter.js';
import { StatusRecorder } from './status-recorder.js';

/** Lists connections along indexes. Rows are read raw: making entities of a hundred takes longer than finding them. */
@Injectable()
export class ConnectionListService {
  constructor(
    @InjectRepository(Connection) private readonly connections: Repository<Connection>,
    private readonly statuses: StatusRecorder,
  ) {}

  /** Newest first. Every filter must match; the page is read along an index whatever its depth. */
  async list(
    namespace: OwnedNamespace,
    { limit = 100, cursor, name, mcpUrl }: ConnectionQueryDto,
    metadata: MetadataFilter[],
  ): Promise<ConnectionListDto> {
    await this.statuses.settle();
    const rows = this.connections
      .createQueryBuilder('connection')
      .select('connection.seq', 'seq')
      .where('connection.namespaceId = :namespaceId', { namespaceId: namespace.id })
      .orderBy('connection.seq', 'DESC')
      .limit(limit + 1);
    for (const column of shownColumns) rows.addSelect(`connection.${column}`, column);
    if (cursor !== undefined) rows.andWhere('connection.seq < :seq', { seq: decodeCursor(cursor) });
    if (name !== undefined) rows.andWhere('connection.name = :name', { name });
    if (mcpUrl !== undefined) rows.andWhere('connection.mcpUrl = :mcpUrl', { mcpUrl });
    addFilters(rows, metadata);
    const found = await rows.getRawMany<ShownConnection & { seq: string }>();
    const page = found.slice(0, limit);
    const last = page[page.length - 1];
    return {
      connections: page.map(toConnectionDto),
      nextCursor: found.length > limit && last ? encodeCursor(last.seq) : null,
    };
  }
}

/**
 * Containment finds the rows by index. Filters that mean one text each become one test: the planner judges it better
 * than several (measured on 1,000,000 rows, two common values that never meet: 6 ms instead of 220).
 */
function addFilters(rows: SelectQueryBuilder<Connection>, filters: MetadataFilter[]): void {
  const plain = filters.filter((filter) => meaningsOf(filter).length === 1);
  if (plain.length > 0) {
    const object = Object.fromEntries(plain.map(({ key, value }) => [key, value]));
    rows.andWhere('connection.metadata @> :plain::jsonb', { plain: JSON.stringify(object) });
  }
  filters.filter((filter) => !plain.includes(filter)).forEach((filter, i) => addFilter(rows, filter, i));
}

/**
 * A filter whose text may also mean a JSON value. For objects and arrays containment finds too much, `{"a": 1, "b": 2}`
 * by `{"a": 1}`, so those are compared as well; for other values it is equality already, and a second test would only
 * mislead the planner (40 to 220 ms instead of 2).
 */
function addFilter(rows: SelectQueryBuilder<Connection>, filter: MetadataFilter, i: number): void {
  const tests = meaningsOf(filter).map((meaning, j) => {
    rows.setParameter(`o${i}_${j}`, JSON.stringify(Object.fromEntries([[filter.key, meaning]])));
    const contains = `connection.metadata @> :o${i}_${j}::jsonb`;
    if (typeof meaning !== 'object' || meaning === null) return contains;
    rows.setParameters({ [`k${i}`]: filter.key, [`v${i}_${j}`]: JSON.stringify(meaning) });
    return `${contains} AND connection.metadata -> :k${i}::text = :v${i}_${j}::jsonb`;
  });
  rows.andWhere(`(${tests.join(' OR ')})`);
}
