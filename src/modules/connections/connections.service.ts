import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { hostedFailureIn, ProgramStartError } from '../../hosting/hosting.errors.js';
import { Hosting } from '../../hosting/hosting.js';
import { isForeignKeyViolation } from '../../platform/database/postgres-errors.js';
import { generateName } from '../../platform/http/generated-name.js';
import { InvalidInputError } from '../../platform/errors/domain-error.js';
import type { SuccessDto } from '../../platform/http/success.dto.js';
import type { OwnedNamespace } from '../auth/access.types.js';
import { CredentialsService } from '../oauth/credentials.service.js';
import { ServersService } from '../servers/servers.service.js';
import { ConnectionCheck } from './recheck/connection-check.js';
import { ConnectionHandles } from './core/connection-handles.js';
import { ConnectionReader } from './core/connection-reader.js';
import type { ConnectionDto, MockDto, SetConnectionDto } from './core/connection.dto.js';
import { Connection } from './core/connection.entity.js';
import { isConnectionId, requireConnectionId, type NewTarget } from './core/connection-target.js';
import { neverCalled, uplinkWaiting } from './core/connection-status.js';
import { ConnectionValues } from './core/connection-values.js';
import { queryFault } from './core/connection.validators.js';
import type { QueryValues, StoredMock, TargetKind } from './core/connection.types.js';
import { InvalidSourceError, ResourceNotFoundError } from './core/connections.errors.js';
import { MockCreation, type NewMock } from './mock/mock-creation.js';
import { TargetResolver } from './core/target-resolver.js';

/** Kinds of target that Slipway looks at by itself. */
const LEADS_OUT: ReadonlySet<TargetKind> = new Set(['url', 'server']);

/** A connection whose creation broke off is looked at after this long. */
const FIRST_LOOK = "now() + interval '1 minute'";

/** Connections: created, changed, read, deleted. Creating and changing one makes a real round trip to its upstream. */
@Injectable()
export class ConnectionsService {
  constructor(
    @InjectRepository(Connection) private readonly connections: Repository<Connection>,
    private readonly targets: TargetResolver,
    private readonly reader: ConnectionReader,
    private readonly checks: ConnectionCheck,
    private readonly links: ConnectionHandles,
    private readonly values: ConnectionValues,
    private readonly servers: ServersService,
    private readonly credentials: CredentialsService,
    private readonly mocks: MockCreation,
    private readonly hosting: Hosting,
  ) {}

  /** Creates a connection under a generated id. @throws InvalidInputError, ResourceNotFoundError */
  async create(namespace: OwnedNamespace, body: SetConnectionDto): Promise<ConnectionDto> {
    const target = await this.targets.resolve(body, namespace.id);
    const mock = await this.mocks.prepare(namespace.id, target, body.mock);
    for (;;) {
      const id = await this.insert(namespace, generateName(6), target, body, mock);
      if (id) return this.firstLook(id, target);
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
      const target = await this.targets.resolve(body, namespace.id);
      const mock = await this.mocks.prepare(namespace.id, target, body.mock);
      const id = await this.insert(namespace, connectionId, target, body, mock);
      if (id) return { created: true, connection: await this.firstLook(id, target) };
    }
    const rows = this.connections.createQueryBuilder('connection').addSelect('connection.source');
    const existing = await rows.where(where).getOne();
    if (!existing) throw new ResourceNotFoundError();
    const change = await this.targets.change(existing, body);
    await this.update(existing.id, body, change);
    return { created: false, connection: await this.checked(existing.id) };
  }

  /** @throws ResourceNotFoundError */
  get(namespace: OwnedNamespace, connectionId: string): Promise<ConnectionDto> {
    return this.reader.get(namespace, connectionId);
  }

  /** Deletes a connection, ends its upstream session (Spec 4.4) and revokes what it was authorized with. @throws ResourceNotFoundError */
  async remove(namespace: OwnedNamespace, connectionId: string): Promise<SuccessDto> {
    if (!isConnectionId(connectionId)) throw new ResourceNotFoundError();
    const where = { namespaceId: namespace.id, connectionId };
    const found = await this.connections.findOne({ where, select: { id: true } });
    // While its row is there: with it the tokens would go before anybody could revoke them.
    if (found) {
      await this.links.prepareEnd(found.id);
      await this.credentials.remove({ kind: 'connection', id: found.id });
    }
    const { raw } = (await this.connections
      .createQueryBuilder()
      .delete()
      .where(where)
      .returning(['id', 'targetKind'])
      .execute()) as {
      raw: { id: string; target_kind: TargetKind }[];
    };
    const [row] = raw;
    if (!row) throw new ResourceNotFoundError();
    await this.ended({ id: row.id, namespaceId: namespace.id, connectionId }, row.target_kind);
    return { success: true };
  }

  /**
   * For a namespace that is about to go with its connections: what tells the authorization servers afterwards, and ends the
   * modules that run for it.
   */
  async prepareRevocation(namespace: OwnedNamespace): Promise<() => void> {
    // Only those that hold something; the table is asked by name, since it belongs to another module.
    const rows = await this.connections.query<{ id: string }[]>(
      `SELECT c.id FROM connections c JOIN upstream_credentials u ON u.owner_kind = 'connection' AND u.owner_id = c.id
        WHERE c.namespace_id = $1 AND u.state = 'active' LIMIT 1000`,
      [namespace.id],
    );
    const revoke = await this.credentials.prepareRevocation(
      'connection',
      rows.map(({ id }) => id),
    );
    const modules = await this.connections.find({
      where: { namespaceId: namespace.id, targetKind: 'source' },
      select: { id: true },
    });
    return () => {
      revoke();
      for (const { id } of modules) void this.hosting.forget(id);
    };
  }

  /** @returns the row's id, or null when the connection id is taken */
  private async insert(
    namespace: OwnedNamespace,
    connectionId: string,
    { query, ...target }: NewTarget,
    { name, metadata, headers, mock }: SetConnectionDto,
    newMock: NewMock | null,
  ): Promise<string | null> {
    const id = randomUUID();
    const status = target.targetKind === 'uplink' ? uplinkWaiting : neverCalled;
    const row = {
      ...target,
      source: target.source as object | null,
      id,
      namespaceId: namespace.id,
      connectionId,
      name: name ?? connectionId,
      metadata: (metadata ?? {}) as object,
      mock: toStoredMock(mock),
      sealedHeaders: this.values.sealHeaders(id, headers),
      sealedQuery: this.values.sealQuery(id, query),
      statusState: status.state,
      statusReason: status.reason,
      statusMessage: status.message,
      nextCheckAt: LEADS_OUT.has(target.targetKind) && !mock?.enabled ? () => FIRST_LOOK : null,
    };
    try {
      const isNew = await this.connections.manager.transaction(async (tx) => {
        const insert = tx.createQueryBuilder().insert().into(Connection).values(row).orIgnore().returning('id');
        const { raw } = (await insert.execute()) as { raw: unknown[] };
        if (raw.length > 0 && newMock) await this.mocks.insert(id, connectionId, newMock, tx);
        return raw.length > 0;
      });
      if (!isNew) return null;
      if (target.serverId !== null) this.servers.countUse(target.serverId);
      return id;
    } catch (error) {
      if (isForeignKeyViolation(error)) throw new ResourceNotFoundError();
      throw error;
    }
  }

  private async update(
    id: string,
    { name, metadata, headers }: SetConnectionDto,
    { mcpUrl, query }: { mcpUrl?: string; query?: QueryValues },
  ): Promise<void> {
    const hasValues = headers !== undefined || mcpUrl !== undefined || query !== undefined;
    await this.connections.manager.transaction(async (tx) => {
      const stored = await tx.findOne(Connection, {
        where: { id },
        select: { id: true, sealedQuery: true },
        lock: { mode: 'pessimistic_write' },
      });
      if (!stored) throw new ResourceNotFoundError();
      const all = query && withChanges(this.values.openQuery(id, stored.sealedQuery), query);
      const fault = all ? queryFault(all) : null;
      if (fault !== null) throw new InvalidInputError(`The query values ${fault}`);
      await tx
        .createQueryBuilder()
        .update(Connection)
        .set({
          ...(name === undefined ? {} : { name }),
          ...(metadata === undefined ? {} : { metadata: metadata as object }),
          ...(headers === undefined ? {} : { sealedHeaders: this.values.sealHeaders(id, headers) }),
          ...(mcpUrl === undefined ? {} : { mcpUrl }),
          ...(all === undefined ? {} : { sealedQuery: this.values.sealQuery(id, all) }),
          ...(hasValues ? { setupEpoch: () => 'setup_epoch + 1' } : {}),
          revision: () => 'revision + 1',
          // What was seen of the one before, by whatever clock, holds back nothing that is seen of this one.
          statusSeenAt: null,
          checkFailures: 0,
        })
        .where({ id })
        .execute();
    });
  }

  /** A module that cannot even be loaded is no connection. @throws InvalidSourceError */
  private async firstLook(id: string, { source }: NewTarget): Promise<ConnectionDto> {
    const failure = await this.checks.run(id);
    if (source && hostedFailureIn(failure) instanceof ProgramStartError) {
      const { raw } = (await this.connections
        .createQueryBuilder()
        .delete()
        .where({ id })
        .returning(['id', 'namespaceId', 'connectionId'])
        .execute()) as { raw: { id: string; namespace_id: string; connection_id: string }[] };
      for (const row of raw)
        await this.ended({ id, namespaceId: row.namespace_id, connectionId: row.connection_id }, 'source');
      throw InvalidSourceError.whileLoading(source.entrypoint, failure as Error);
    }
    return this.reader.byRowId(id);
  }

  /** A connection is gone, and with it what it held. */
  private async ended(
    connection: { id: string; namespaceId: string; connectionId: string },
    kind: TargetKind,
  ): Promise<void> {
    await this.links.deleted(connection);
    if (kind === 'source') await this.hosting.forget(connection.id);
  }

  private async checked(id: string): Promise<ConnectionDto> {
    await this.checks.run(id);
    return this.reader.byRowId(id);
  }
}

/** `{enabled: false}` is no mock. */
function toStoredMock(mock: MockDto | undefined): StoredMock | null {
  if (!mock?.enabled) return null;
  return mock.scenario === undefined ? {} : { scenario: mock.scenario };
}

/**
 * Query values are never shown, so a change names only its own: those it gives replace those of the same name, empty ones
 * take them away, and the others stay.
 */
function withChanges(stored: QueryValues, given: QueryValues): QueryValues {
  const named = new Set(given.map(([name]) => name));
  return [...stored.filter(([name]) => !named.has(name)), ...given.filter(([, value]) => value !== '')];
}
