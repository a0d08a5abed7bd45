import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { UplinkDisconnectedError } from '../../../mcp/protocol/mcp-errors.js';
import type { OwnedNamespace } from '../../auth/access.types.js';
import { isConnectionId } from '../core/connection-target.js';
import { Connection } from '../core/connection.entity.js';
import { ResourceNotFoundError } from '../core/connections.errors.js';
import { UplinkTunnelsRepository } from './uplink-tunnels.repository.js';

/** Uplink connections, for clients that pair local servers. */
@Injectable()
export class UplinksService {
  constructor(
    @InjectRepository(Connection) private readonly connections: Repository<Connection>,
    private readonly tunnels: UplinkTunnelsRepository,
  ) {}

  /** Id of an uplink connection. @throws ResourceNotFoundError, also for a connection with another target */
  async find({ id: namespaceId }: OwnedNamespace, connectionId: string): Promise<string> {
    const row = isConnectionId(connectionId)
      ? await this.connections.findOne({
          where: { namespaceId, connectionId, targetKind: 'uplink' },
          select: { id: true },
        })
      : null;
    if (!row) throw new ResourceNotFoundError();
    return row.id;
  }

  /** @throws ResourceNotFoundError, UplinkDisconnectedError */
  async requirePaired(namespace: OwnedNamespace, connectionId: string): Promise<void> {
    if (!(await this.tunnels.owner(await this.find(namespace, connectionId)))) throw new UplinkDisconnectedError();
  }
}
