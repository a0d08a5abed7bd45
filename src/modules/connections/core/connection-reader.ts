import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository, type SelectQueryBuilder } from 'typeorm';
import type { OwnedNamespace } from '../../auth/access.types.js';
import type { ConnectionDto } from './connection.dto.js';
import { Connection } from './connection.entity.js';
import { shownColumns, toConnectionDto, type ShownConnection } from './connection.mapper.js';
import { isConnectionId } from './connection-target.js';
import { ConnectionUrls } from './connection-urls.js';
import { ResourceNotFoundError } from './connections.errors.js';
import { StatusRecorder } from './status-recorder.js';

/** Reads connections as they are shown. */
@Injectable()
export class ConnectionReader {
  constructor(
    @InjectRepository(Connection) private readonly connections: Repository<Connection>,
    private readonly statuses: StatusRecorder,
    private readonly urls: ConnectionUrls,
  ) {}

  /** With what calls have just observed. @throws ResourceNotFoundError */
  async get(namespace: OwnedNamespace, connectionId: string): Promise<ConnectionDto> {
    if (!isConnectionId(connectionId)) throw new ResourceNotFoundError();
    await this.statuses.settle();
    return this.one({ namespaceId: namespace.id, connectionId });
  }

  /** @throws ResourceNotFoundError */
  byRowId(id: string): Promise<ConnectionDto> {
    return this.one({ id });
  }

  /** What is shown of connections, as raw rows: making entities of a hundred takes longer than finding them. */
  rows(): SelectQueryBuilder<Connection> {
    const rows = this.connections
      .createQueryBuilder('connection')
      .leftJoin('connection.server', 'server')
      .select('server.slug', 'slug');
    for (const column of shownColumns) rows.addSelect(`connection.${column}`, column);
    return rows;
  }

  private async one(where: { id: string } | { namespaceId: string; connectionId: string }): Promise<ConnectionDto> {
    const row = await this.rows().where(where).getRawOne<ShownConnection>();
    if (!row) throw new ResourceNotFoundError();
    return toConnectionDto(row, this.urls);
  }
}
