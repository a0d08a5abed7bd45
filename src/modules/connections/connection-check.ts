import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { Env } from '../../config/env.js';
import type { ServerInfo } from '../../mcp/protocol.js';
import { Connection } from './connection.entity.js';
import { connected, statusAfter, type ConnectionStatus } from './connection-status.js';
import { ConnectionLinks } from './connection-links.js';
import { ResourceNotFoundError } from './connections.errors.js';
import { toStoredServerInfo } from './server-info.js';

/** Looks at upstreams, and writes down what it saw. */
@Injectable()
export class ConnectionCheck {
  constructor(
    @InjectRepository(Connection) private readonly connections: Repository<Connection>,
    private readonly links: ConnectionLinks,
    private readonly env: Env,
  ) {}

  /**
   * Opens a session with the upstream and writes what came of it, unless the connection changed again meanwhile.
   *
   * @throws ResourceNotFoundError when it is deleted by then
   */
  async run(id: string): Promise<void> {
    const row = await this.links.adopt(id);
    if (!row) throw new ResourceNotFoundError();
    let serverInfo: ServerInfo | null = null;
    let status: ConnectionStatus = connected;
    try {
      serverInfo = toStoredServerInfo((await row.link.open(this.env.upstreamConnectTimeoutMs)).serverInfo);
    } catch (error) {
      const seen = statusAfter(error);
      if (!seen) throw error;
      status = seen;
    }
    const { affected } = await this.write(row.link, status, serverInfo);
    if (!affected && !(await this.connections.existsBy({ id }))) {
      await this.links.end(id);
      throw new ResourceNotFoundError();
    }
  }

  private write(
    { id, revision }: { id: string; revision: number },
    { state, reason, message, inputs }: ConnectionStatus,
    serverInfo: ServerInfo | null,
  ) {
    return this.connections
      .createQueryBuilder()
      .update()
      .set({
        statusSince: () => 'CASE WHEN status_state = :state THEN status_since ELSE now() END',
        statusState: state,
        statusReason: reason,
        statusMessage: message,
        statusInputs: inputs,
        ...(serverInfo === null ? {} : { serverInfo: serverInfo, lastOkAt: () => 'now()' }),
      })
      .where('id = :id AND revision = :revision', { id, revision })
      .setParameter('state', state)
      .execute();
  }
}
