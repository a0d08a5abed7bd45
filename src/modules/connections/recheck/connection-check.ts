import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { Env } from '../../../config/env.js';
import type { Channel } from '../../../mcp/protocol/channel.js';
import type { ServerInfo } from '../../../mcp/protocol/protocol.js';
import { ConnectionChannels } from '../core/connection-channels.js';
import { Connection } from '../core/connection.entity.js';
import { connected, statusAfter, type ConnectionStatus } from '../core/connection-status.js';
import { ConnectionHandles } from '../core/connection-handles.js';
import { ResourceNotFoundError } from '../core/connections.errors.js';
import { toStoredServerInfo } from '../core/server-info.js';
import { StatusWriter, type Seen } from '../core/status-writer.js';

/** A connection as it was when it was decided to look at it. */
export type Looked = Pick<Seen, 'id' | 'revision'>;

/** Looks at upstreams, and writes down what it saw. */
@Injectable()
export class ConnectionCheck {
  constructor(
    @InjectRepository(Connection) private readonly connections: Repository<Connection>,
    private readonly links: ConnectionHandles,
    private readonly channels: ConnectionChannels,
    private readonly writer: StatusWriter,
    private readonly env: Env,
  ) {}

  /**
   * Opens a session with the upstream and writes what came of it, unless the connection changed again meanwhile.
   *
   * @returns why it did not open; null when it did
   * @throws ResourceNotFoundError when it is deleted by then
   */
  async run(id: string): Promise<Error | null> {
    const row = await this.links.adopt(id);
    if (!row) throw new ResourceNotFoundError();
    const { failure, ...seen } = await this.look(row.link);
    const written = await this.writer.write([{ id, revision: row.link.revision, ...seen }], 'look');
    if (written.length === 0 && !(await this.connections.existsBy({ id }))) {
      await this.links.end(id);
      throw new ResourceNotFoundError();
    }
    return failure;
  }

  /**
   * Opens a session of its own with the upstream of a connection, ends it, and writes what came of it. Nothing happens when
   * the connection is gone.
   */
  async runAside(one: Looked): Promise<void> {
    const target = await this.links.stored(one.id);
    if (target) await this.lookAside(this.channels.to(target), [one]);
  }

  /**
   * The same for all connections that lead to this URL without credentials. Nobody's are sent, also not those that one of
   * them was given a moment ago: what the server tells them alone is none of the others' business.
   */
  runPublic(url: string, group: Looked[]): Promise<void> {
    return this.lookAside(this.channels.toPublic(url), group);
  }

  /** Writes a status that was found out without a look. */
  async found(group: Looked[], status: ConnectionStatus): Promise<void> {
    const seen = { status, at: new Date(), okAt: null, serverInfo: null };
    await this.writer.write(
      group.map(({ id, revision }) => ({ id, revision, ...seen })),
      'look',
    );
  }

  private async lookAside(channel: Channel, group: Looked[]): Promise<void> {
    try {
      const { failure: _, ...seen } = await this.look(channel);
      await this.writer.write(
        group.map(({ id, revision }) => ({ id, revision, ...seen })),
        'look',
      );
    } finally {
      await channel.close();
    }
  }

  private async look(channel: Channel): Promise<Omit<Seen, 'id' | 'revision'> & { failure: Error | null }> {
    let serverInfo: ServerInfo | null = null;
    let status: ConnectionStatus = connected;
    let failure: Error | null = null;
    try {
      serverInfo = toStoredServerInfo((await channel.open(this.env.upstreamConnectTimeoutMs)).serverInfo);
    } catch (error) {
      const seen = statusAfter(error);
      if (!seen) throw error;
      status = seen;
      failure = error as Error;
    }
    const at = new Date();
    return { status, at, okAt: status === connected ? at : null, serverInfo, failure };
  }
}
