import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { Env } from '../../config/env.js';
import { UpstreamFailure } from '../../mcp/mcp-errors.js';
import type { ServerInfo } from '../../mcp/protocol.js';
import { isForeignKeyViolation } from '../../platform/database/postgres-errors.js';
import { generateName } from '../../platform/http/generated-name.js';
import type { SuccessDto } from '../../platform/http/success.dto.js';
import { Vault } from '../../platform/vault/vault.js';
import type { OwnedNamespace } from '../auth/access.types.js';
import { ConnectionLinks } from './connection-links.js';
import type { ConnectionDto, SetConnectionDto } from './connection.dto.js';
import { Connection } from './connection.entity.js';
import { toConnectionDto } from './connection.mapper.js';
import { isConnectionId, requireConnectionId, requireNewTarget, requireSameTarget } from './connection-target.js';
import { connected, neverCalled, statusAfter, type ConnectionStatus } from './connection-status.js';
import { ResourceNotFoundError } from './connections.errors.js';
import { toStoredServerInfo } from './server-info.js';
import { StatusRecorder } from './status-recorder.js';

/** Connections: created, changed, read, deleted. Creating and changing one makes a real round trip to its upstream. */
@Injectable()
export class ConnectionsService {
  constructor(
    @InjectRepository(Connection) private readonly connections: Repository<Connection>,
    private readonly links: ConnectionLinks,
    private readonly statuses: StatusRecorder,
    private readonly vault: Vault,
    private readonly env: Env,
  ) {}

  /** Creates a connection under a generated id. @throws InvalidInputError, ResourceNotFoundError */
  async create(namespace: OwnedNamespace, body: SetConnectionDto): Promise<ConnectionDto> {
    const mcpUrl = requireNewTarget(body);
    for (;;) {
      const id = await this.insert(namespace, generateName(6), mcpUrl, body);
      if (id) return this.check(id);
    }
  }

  /**
   * Creates the connection, or changes what the body gives of it and keeps the rest. Its target stays for life.
   *
   * @returns `created` tells the two apart
   * @throws InvalidInputError, ConnectionTargetError, ResourceNotFoundError
   */
  async set(
    namespace: OwnedNamespace,
    connectionId: string,
    body: SetConnectionDto,
  ): Promise<{ created: boolean; connection: ConnectionDto }> {
    requireConnectionId(connectionId);
    const where = { namespaceId: namespace.id, connectionId };
    if (!(await this.connections.existsBy(where))) {
      const id = await this.insert(namespace, connectionId, requireNewTarget(body), body);
      if (id) return { created: true, connection: await this.check(id) };
    }
    const existing = await this.connections.findOneBy(where);
    if (!existing) throw new ResourceNotFoundError();
    requireSameTarget(existing, body);
    await this.update(existing.id, body);
    return { created: false, connection: await this.check(existing.id) };
  }

  /** @throws ResourceNotFoundError */
  async get(namespace: OwnedNamespace, connectionId: string): Promise<ConnectionDto> {
    if (!isConnectionId(connectionId)) throw new ResourceNotFoundError();
    await this.statuses.settle();
    const row = await this.connections.findOneBy({ namespaceId: namespace.id, connectionId });
    if (!row) throw new ResourceNotFoundError();
    return toConnectionDto(row);
  }

  /** Deletes a connection and ends its upstream session (Spec 4.4). @throws ResourceNotFoundError */
  async remove(namespace: OwnedNamespace, connectionId: string): Promise<SuccessDto> {
    if (!isConnectionId(connectionId)) throw new ResourceNotFoundError();
    const { raw } = (await this.connections
      .createQueryBuilder()
      .delete()
      .where({ namespaceId: namespace.id, connectionId })
      .returning('id')
      .execute()) as { raw: { id: string }[] };
    const [row] = raw;
    if (!row) throw new ResourceNotFoundError();
    this.links.announce({ id: row.id, namespaceId: namespace.id, connectionId }, null);
    await this.links.end(row.id);
    return { success: true };
  }

  /** @returns the row's id, or null when the connection id is taken */
  private async insert(
    namespace: OwnedNamespace,
    connectionId: string,
    mcpUrl: string,
    { name, metadata, headers }: SetConnectionDto,
  ): Promise<string | null> {
    const id = randomUUID();
    const row = {
      id,
      namespaceId: namespace.id,
      connectionId,
      name: name ?? connectionId,
      mcpUrl,
      metadata: (metadata ?? {}) as object,
      sealedHeaders: this.sealed(id, headers),
      statusState: neverCalled.state,
      statusMessage: neverCalled.message,
    };
    try {
      const { raw } = (await this.connections
        .createQueryBuilder()
        .insert()
        .values(row)
        .orIgnore()
        .returning('id')
        .execute()) as { raw: unknown[] };
      return raw.length > 0 ? id : null;
    } catch (error) {
      if (isForeignKeyViolation(error)) throw new ResourceNotFoundError();
      throw error;
    }
  }

  private async update(id: string, { name, metadata, headers }: SetConnectionDto): Promise<void> {
    const { affected } = await this.connections
      .createQueryBuilder()
      .update()
      .set({
        ...(name === undefined ? {} : { name }),
        ...(metadata === undefined ? {} : { metadata: metadata as object }),
        ...(headers === undefined ? {} : { sealedHeaders: this.sealed(id, headers) }),
        revision: () => 'revision + 1',
      })
      .where({ id })
      .execute();
    if (!affected) throw new ResourceNotFoundError();
  }

  /** Empty headers are none. */
  private sealed(id: string, headers: Record<string, string> | undefined): string | null {
    if (headers === undefined || Object.keys(headers).length === 0) return null;
    const lowerCase = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
    return this.vault.seal(JSON.stringify(Object.fromEntries(lowerCase)), id);
  }

  /** Opens a session with the upstream and writes what it saw, unless the connection changed again meanwhile. */
  private async check(id: string): Promise<ConnectionDto> {
    const row = await this.withHeaders(id);
    this.links.announce(row, row.revision);
    const link = this.links.adopt(row);
    let serverInfo: ServerInfo | null = null;
    let status: ConnectionStatus = connected;
    try {
      serverInfo = toStoredServerInfo((await link.open(this.env.upstreamConnectTimeoutMs)).serverInfo);
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      status = statusAfter(error);
    }
    const now = new Date();
    await this.connections.update(
      { id, revision: row.revision },
      {
        statusState: status.state,
        statusMessage: status.message,
        ...(status.state === row.statusState ? {} : { statusSince: now }),
        ...(serverInfo === null ? {} : { serverInfo: serverInfo, lastOkAt: now }),
      },
    );
    const current = await this.connections.findOneBy({ id });
    if (!current) {
      await this.links.end(id);
      throw new ResourceNotFoundError();
    }
    return toConnectionDto(current);
  }

  private async withHeaders(id: string): Promise<Connection> {
    const row = await this.connections
      .createQueryBuilder('connection')
      .addSelect('connection.sealedHeaders')
      .where({ id })
      .getOne();
    if (!row) throw new ResourceNotFoundError();
    return row;
  }
}
