/**
 * Creates, changes, reads and deletes connections (Spec 4.1 to 4.4).
 *
 * The target of a connection (URL, registry server, source module, uplink, mock) stays for life. A change of what is
 * sent to the server or offered of it counts up `revision`: handles of older revisions close, and the server is asked
 * again. Name, metadata and values that are stored already leave the session alone. Creating makes a real round trip,
 * whose outcome becomes the status; a failed one is no error of the request. Only a source module that cannot be loaded
 * is refused, and its row deleted.
 *
 * Values are sealed for the row and compared in clear under its lock, because sealed values differ each time. Deletion
 * ends the upstream session and revokes the tokens. Limits of the account: QuotaExceededError.
 */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { hostedFailureIn, ProgramStartError } from '../../hosting/hosting.errors.js';
import { Hosting } from '../../hosting/hosting.js';
import type { ToolChoice } from '../../mcp/client/tool-choice.js';
import { isForeignKeyViolation } from '../../platform/database/postgres-errors.js';
import { generateName } from '../../platform/http/generated-name.js';
import { InvalidInputError } from '../../platform/errors/domain-error.js';
import type { SuccessDto } from '../../platform/http/success.dto.js';
import { AccountLimitsService } from '../auth/account-limits.service.js';
import type { Caller, OwnedNamespace } from '../auth/access.types.js';
import { NamespacesService } from '../namespaces/namespaces.service.js';
import { CredentialsService } from '../oauth/credentials.service.js';
import { ServersService } from '../servers/servers.service.js';
import { ConnectionHandles } from './core/connection-handles.js';
import { ConnectionReader } from './core/connection-reader.js';
import type { ConnectionDto, SetConnectionDto, ToolsDto } from './core/connection.dto.js';
import { Connection, type QueryValues, type TargetKind } from './core/connection.entity.js';
import { ConnectionRepository, type DeletedConnection } from './core/connection.repository.js';
import { requireConnectionId, requireTarget, type NewTarget } from './core/connection-target.js';
import { neverCalled, uplinkWaiting } from './core/connection-status.js';
import { ConnectionValues } from './core/connection-values.js';
import { queryFault } from './core/connection.validators.js';
import { InvalidSourceError, ResourceNotFoundError } from './core/connections.errors.js';
import { TargetResolver } from './core/target-resolver.js';
import { MockCreation, type NewMock } from './mock/mock-creation.js';
import { ConnectionCheck } from './recheck/connection-check.js';
import { SourceCompiler } from './source/source-compiler.js';

/** Kinds of target that are rechecked without a call. */
const RECHECKED: ReadonlySet<TargetKind> = new Set(['url', 'server']);

/** The first recheck of a connection whose creation broke off. */
const FIRST_CHECK = "now() + interval '1 minute'";

/** A target that was resolved and prepared; only its row is missing. */
interface PreparedTarget {
  target: NewTarget;
  mock: NewMock | null;
}

/** Creates, changes, reads and deletes connections. */
@Injectable()
export class ConnectionsService implements OnModuleInit {
  constructor(
    @InjectRepository(Connection) private readonly connections: Repository<Connection>,
    private readonly repository: ConnectionRepository,
    private readonly targets: TargetResolver,
    private readonly reader: ConnectionReader,
    private readonly checks: ConnectionCheck,
    private readonly handles: ConnectionHandles,
    private readonly values: ConnectionValues,
    private readonly servers: ServersService,
    private readonly namespaces: NamespacesService,
    private readonly credentials: CredentialsService,
    private readonly mocks: MockCreation,
    private readonly sources: SourceCompiler,
    private readonly hosting: Hosting,
    private readonly limits: AccountLimitsService,
  ) {}

  onModuleInit(): void {
    this.namespaces.beforeDeletion((namespace) => this.prepareDeletion(namespace));
  }

  /**
   * Creates a connection under a generated id.
   *
   * @throws InvalidInputError, InvalidSourceError, ResourceNotFoundError, KeyScopeError
   */
  async create(namespace: OwnedNamespace, body: SetConnectionDto, caller: Caller): Promise<ConnectionDto> {
    const prepared = await this.prepare(namespace, body, caller);
    for (;;) {
      const id = await this.insert(namespace, generateName(6), prepared, body);
      if (id) return this.firstCheck(id, prepared.target);
    }
  }

  /**
   * Creates the connection, or changes the members that the body has. The target stays for life. The server is asked at
   * creation, after a change of what is sent to it or offered of it, and when the body names the target or headers while the
   * connection is not `connected`. Name and metadata, and values that are stored already, leave its session alone.
   *
   * @param caller whom a grant of the connection let in creates none: it may have been deleted meanwhile
   * @throws InvalidInputError, InvalidSourceError, ConflictError, ResourceNotFoundError, KeyScopeError
   */
  async set(
    namespace: OwnedNamespace,
    connectionId: string,
    body: SetConnectionDto,
    caller: Caller,
  ): Promise<{ created: boolean; connection: ConnectionDto }> {
    requireConnectionId(connectionId);
    const where = { namespaceId: namespace.id, connectionId };
    if (!caller.grant && !(await this.connections.existsBy(where))) {
      requireTarget(connectionId, body);
      const prepared = await this.prepare(namespace, body, caller);
      const id = await this.insert(namespace, connectionId, prepared, body);
      if (id) return { created: true, connection: await this.firstCheck(id, prepared.target) };
    }
    const existing = await this.repository.findWithSource(where);
    if (!existing) throw new ResourceNotFoundError();
    const isNewRevision = await this.update(existing.id, body, await this.targets.change(namespace, existing, body));
    if (isNewRevision) await this.checks.run(existing.id);
    else if (existing.statusState !== 'connected') {
      // A body that names the target, or headers for it, asks for a check; an uplink reports by itself.
      const { mcpUrl, server, source, headers } = body;
      if ((mcpUrl ?? server ?? source ?? headers) !== undefined) await this.checks.runAside(existing);
    }
    return { created: false, connection: await this.reader.byRowId(existing.id) };
  }

  /**
   * Deletes a connection, ends its upstream session (Spec 4.4) and revokes its tokens.
   *
   * @throws ResourceNotFoundError
   */
  async remove(namespace: OwnedNamespace, connectionId: string): Promise<SuccessDto> {
    const { id } = await this.reader.find(namespace, connectionId);
    // Before the row is deleted: its tokens are deleted with it, and could not be revoked afterwards.
    await this.handles.prepareEnd(id);
    await this.credentials.remove({ kind: 'connection', id });
    const deleted = await this.repository.delete(id);
    if (!deleted) throw new ResourceNotFoundError();
    await this.end(deleted);
    return { success: true };
  }

  /** Reads what a namespace's deletion will delete. The result revokes its tokens and stops its modules. */
  private async prepareDeletion({ id: namespaceId }: OwnedNamespace): Promise<() => void> {
    const revoke = await this.credentials.prepareRevocation(
      'connection',
      await this.repository.idsWithTokens(namespaceId),
    );
    const where = { namespaceId, targetKind: 'source' } as const;
    const modules = await this.connections.find({ where, select: { id: true } });
    return () => {
      revoke();
      for (const { id } of modules) void this.hosting.forget(id);
    };
  }

  private async prepare(namespace: OwnedNamespace, body: SetConnectionDto, caller: Caller): Promise<PreparedTarget> {
    const target = await this.targets.resolve(namespace, body, caller);
    if (target.source) Object.assign(target, await this.sources.check(target.source, namespace.id));
    return { target, mock: await this.mocks.prepare(namespace.id, target, body.mock) };
  }

  /** @returns the row's id; null if the connection id is taken */
  private async insert(
    namespace: OwnedNamespace,
    connectionId: string,
    { target: { query, ...target }, mock: newMock }: PreparedTarget,
    { name, metadata, headers, tools, callTimeoutMs, mock }: SetConnectionDto,
  ): Promise<string | null> {
    const id = randomUUID();
    const status = target.targetKind === 'uplink' ? uplinkWaiting : neverCalled;
    const row = {
      ...target,
      ...(target.targetKind === 'url' && this.values.sealUrl(id, target.mcpUrl)),
      source: target.source as object | null,
      id,
      namespaceId: namespace.id,
      connectionId,
      name: name ?? connectionId,
      metadata: (metadata ?? {}) as object,
      tools: toStoredTools(tools),
      callTimeoutMs: callTimeoutMs ?? null,
      mock: mock?.enabled ? (mock.scenario === undefined ? {} : { scenario: mock.scenario }) : null,
      sealedHeaders: this.values.sealHeaders(id, headers),
      sealedQuery: this.values.sealQuery(id, query),
      statusState: status.state,
      statusReason: status.reason,
      statusMessage: status.message,
      nextCheckAt: RECHECKED.has(target.targetKind) && !mock?.enabled ? () => FIRST_CHECK : null,
    };
    try {
      const quotas = { connections: 1, connectionsPerNamespace: 1 };
      const isNew = await this.limits.within({ namespaceId: namespace.id }, quotas, () =>
        this.connections.manager.transaction(async (tx) => {
          const isInserted = await this.repository.insert(row, tx);
          if (isInserted && newMock) await this.mocks.insert(id, connectionId, newMock, tx);
          return isInserted;
        }),
      );
      if (!isNew) return null;
      if (target.serverId !== null) this.servers.countUse(target.serverId);
      return id;
    } catch (error) {
      if (isForeignKeyViolation(error)) throw new ResourceNotFoundError();
      throw error;
    }
  }

  /**
   * Writes the members that differ from the stored ones, compared as plain values under the lock of the row: sealed values
   * differ each time.
   *
   * @returns true if more than name and metadata changed, which counts up the revision
   */
  private update(
    id: string,
    { name, metadata, headers, tools, callTimeoutMs }: SetConnectionDto,
    { mcpUrl, query }: { mcpUrl?: string; query?: QueryValues },
  ): Promise<boolean> {
    return this.connections.manager.transaction(async (tx) => {
      const stored = await this.repository.lock(id, tx);
      if (!stored) throw new ResourceNotFoundError();
      const storedQuery = this.values.openQuery(id, stored.sealedQuery);
      const all = query && mergedQuery(storedQuery, query);
      const fault = all ? queryFault(all) : null;
      if (fault !== null) throw new InvalidInputError(`The query values ${fault}`);
      const sealedHeaders = this.values.sealHeaders(id, headers);
      const storedHeaders = this.values.openHeaders(id, stored.sealedHeaders);
      const sent = {
        ...(headers !== undefined &&
          !isSame(this.values.openHeaders(id, sealedHeaders), storedHeaders) && { sealedHeaders }),
        ...(mcpUrl !== undefined && mcpUrl !== this.values.openUrl(stored) && this.values.sealUrl(id, mcpUrl)),
        ...(all !== undefined && !isSame(all, storedQuery) && { sealedQuery: this.values.sealQuery(id, all) }),
      };
      const offered = {
        ...(tools !== undefined && !isSame(toStoredTools(tools), stored.tools) && { tools: toStoredTools(tools) }),
        ...(callTimeoutMs !== undefined && callTimeoutMs !== stored.callTimeoutMs && { callTimeoutMs }),
      };
      const shown = {
        ...(name !== undefined && name !== stored.name && { name }),
        ...(metadata !== undefined && !isSame(metadata, stored.metadata) && { metadata: metadata as object }),
      };
      const endLinks = Object.keys(sent).length > 0;
      const isNewRevision = endLinks || Object.keys(offered).length > 0;
      if (isNewRevision) await this.repository.update(id, { ...shown, ...offered, ...sent }, { endLinks }, tx);
      else if (Object.keys(shown).length > 0) await tx.update(Connection, { id }, shown);
      return isNewRevision;
    });
  }

  /** Deletes a new connection again if its module cannot be loaded. @throws InvalidSourceError */
  private async firstCheck(id: string, { source }: NewTarget): Promise<ConnectionDto> {
    const failure = await this.checks.run(id);
    if (source && hostedFailureIn(failure) instanceof ProgramStartError) {
      const deleted = await this.repository.delete(id);
      if (deleted) await this.end(deleted);
      throw InvalidSourceError.whileLoading(source.entrypoint, failure as Error);
    }
    return this.reader.byRowId(id);
  }

  private async end(deleted: DeletedConnection): Promise<void> {
    await this.handles.deleted(deleted);
    if (deleted.targetKind === 'source') await this.hosting.forget(deleted.id);
  }
}

/** Compares a member of a body with a stored JSON value. */
function isSame(sent: unknown, stored: unknown): boolean {
  return isDeepStrictEqual(JSON.parse(JSON.stringify(sent)), stored);
}

/** Null for `{}`, which offers all tools. */
function toStoredTools(tools: ToolsDto | undefined): ToolChoice | null {
  return tools?.allow === undefined && tools?.deny === undefined ? null : { ...tools };
}

/** Query values are never shown, so a change names only its own: an empty value deletes one, and unnamed ones stay. */
function mergedQuery(stored: QueryValues, change: QueryValues): QueryValues {
  const named = new Set(change.map(([name]) => name));
  return [...stored.filter(([name]) => !named.has(name)), ...change.filter(([, value]) => value !== '')];
}
