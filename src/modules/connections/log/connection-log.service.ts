import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import type { OwnedNamespace } from '../../auth/access.types.js';
import { ConnectionCallsService } from '../../logs/connection-calls.service.js';
import { isConnectionId } from '../core/connection-target.js';
import { Connection } from '../core/connection.entity.js';
import { ResourceNotFoundError } from '../core/connections.errors.js';
import type { ConnectionLogDto, ConnectionLogQueryDto } from './connection-log.dto.js';
import { toConnectionInvocationDto } from './connection-log.mapper.js';

/** Reads the logs of connections. */
@Injectable()
export class ConnectionLogService {
  constructor(
    @InjectRepository(Connection) private readonly connections: Repository<Connection>,
    private readonly calls: ConnectionCallsService,
  ) {}

  /** The newest matching calls. @throws ResourceNotFoundError, and the errors of `ConnectionCallsService.find` */
  async list(
    namespace: OwnedNamespace,
    connectionId: string,
    { limit = 20, ...query }: ConnectionLogQueryDto,
  ): Promise<ConnectionLogDto> {
    const row = isConnectionId(connectionId)
      ? await this.connections.findOne({ where: { namespaceId: namespace.id, connectionId }, select: { id: true } })
      : null;
    if (!row) throw new ResourceNotFoundError();
    const { calls, total } = await this.calls.find(row.id, query, limit);
    return { invocations: calls.map(toConnectionInvocationDto), total };
  }
}
