import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { Env } from '../../../config/env.js';
import type { Channel } from '../../../mcp/protocol/channel.js';
import { UpstreamError } from '../../../mcp/protocol/mcp-errors.js';
import type { ServerInfo } from '../../../mcp/protocol/protocol.js';
import { ConnectionHandles } from '../core/connection-handles.js';
import { connected, statusAfter, type ConnectionStatus } from '../core/connection-status.js';
import { ConnectionTransports } from '../core/connection-transports.js';
import { Connection } from '../core/connection.entity.js';
import { ResourceNotFoundError } from '../core/connections.errors.js';
import { toStoredServerInfo } from '../core/server-info.js';
import { StatusesRepository, type Observation } from '../core/status.repository.js';

export type CheckedConnection = Pick<Observation, 'id' | 'revision'>;

@Injectable()
export class ConnectionCheck {
  constructor(
    @InjectRepository(Connection) private readonly connectionRepository: Repository<Connection>,
    private readonly connectionHandles: ConnectionHandles,
    private readonly connectionTransports: ConnectionTransports,
    private readonly statusesRepository: StatusesRepository,
    private readonly env: Env,
  ) {}

  /**
   * Writes the outcome unless the connection was changed again.
   *
   * @returns the failure; null if the session is open
   * @throws ResourceNotFoundError if the connection was deleted
   */
  async run(id: string): Promise<Error | null> {
    const handle = await this.connectionHandles.adopt(id);
    if (!handle) throw new ResourceNotFoundError();
    const { failure, ...observed } = await this.check(handle);
    const written = await this.statusesRepository.write(
      [{ id, revision: handle.owner.target.revision, ...observed }],
      'check',
    );
    if (written.length === 0 && !(await this.connectionRepository.existsBy({ id }))) {
      await this.connectionHandles.closeHandle(id);
      throw new ResourceNotFoundError();
    }
    return failure;
  }

  /** Runs a check in a separate session. Does nothing for a deleted connection. */
  async runAside(connection: CheckedConnection): Promise<void> {
    const target = await this.connectionHandles.readTarget(connection.id);
    if (target) await this.checkAside(this.connectionTransports.channelTo(target), [connection]);
  }

  /**
   * Serves all connections to this URL that have no credentials. Sends none, not even those that one of them has received since: the
   * response would not apply to the others.
   */
  runPublic(url: string, group: CheckedConnection[]): Promise<void> {
    return this.checkAside(this.connectionTransports.anonymousChannelTo(url), group);
  }

  async record(group: CheckedConnection[], status: ConnectionStatus): Promise<void> {
    await this.write(group, { status, at: new Date(), okAt: null, serverInfo: null });
  }

  private async checkAside(channel: Channel, group: CheckedConnection[]): Promise<void> {
    try {
      const { failure: _, ...observed } = await this.check(channel);
      await this.write(group, observed);
    } finally {
      await channel.close();
    }
  }

  private async write(group: CheckedConnection[], observed: Omit<Observation, 'id' | 'revision'>): Promise<void> {
    await this.statusesRepository.write(
      group.map(({ id, revision }) => ({ id, revision, ...observed })),
      'check',
    );
  }

  private async check(channel: Channel): Promise<Omit<Observation, 'id' | 'revision'> & { failure: Error | null }> {
    let serverInfo: ServerInfo | null = null;
    let status: ConnectionStatus = connected;
    let failure: Error | null = null;
    let isWait = false;
    try {
      serverInfo = toStoredServerInfo((await channel.open(this.env.upstreamConnectTimeoutMs)).serverInfo);
    } catch (error) {
      const observed = statusAfter(error);
      if (!observed) throw error;
      status = observed;
      isWait = error instanceof UpstreamError && error.retryAfterSeconds !== undefined;
      failure = error as Error;
    }
    const at = new Date();
    return { status, isWait, at, okAt: status === connected ? at : null, serverInfo, failure };
  }
}
