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
import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { hostedFailureIn, ProgramStartError } from '../../hosting/hosting.errors.js';
import { generateName } from '../../platform/http/generated-name.js';
import { InvalidInputError } from '../../platform/errors/domain-error.js';
import type { Caller, OwnedNamespace } from '../auth/access.types.js';
import { ConnectionReader } from './core/connection-reader.js';
import type { ConnectionDto, SetConnectionDto } from './core/connection.dto.js';
import { Connection, type QueryValues } from './core/connection.entity.js';
import { ConnectionRepository } from './core/connection.repository.js';
import { requireConnectionId, requireTarget, type NewTarget } from './core/connection-target.js';
import { ConnectionValues } from './core/connection-values.js';
import { queryFault } from './core/connection.validators.js';
import { InvalidSourceError, ResourceNotFoundError } from './core/connections.errors.js';
import { TargetResolver } from './core/target-resolver.js';
import { ConnectionCreation, toStoredTools } from './connection-creation.js';
import { ConnectionDeletion } from './connection-deletion.js';
import { ConnectionCheck } from './recheck/connection-check.js';

/** Creates and changes connections. */
@Injectable()
export class ConnectionsService {
  constructor(
    @InjectRepository(Connection) private readonly connections: Repository<Connection>,
    private readonly repository: ConnectionRepository,
    private readonly targets: TargetResolver,
    private readonly reader: ConnectionReader,
    private readonly checks: ConnectionCheck,
    private readonly values: ConnectionValues,
    private readonly creation: ConnectionCreation,
    private readonly deletion: ConnectionDeletion,
  ) {}

  /**
   * Creates a connection under a generated id.
   *
   * @throws InvalidInputError, InvalidSourceError, ResourceNotFoundError, KeyScopeError
   */
  async create(namespace: OwnedNamespace, body: SetConnectionDto, caller: Caller): Promise<ConnectionDto> {
    const prepared = await this.creation.prepare(namespace, body, caller);
    for (;;) {
      const id = await this.creation.insert(namespace, generateName(6), prepared, body);
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
      const prepared = await this.creation.prepare(namespace, body, caller);
      const id = await this.creation.insert(namespace, connectionId, prepared, body);
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
      // Query values are never shown, so a change names only its own: an empty value deletes one, and unnamed ones stay.
      const named = new Set(query?.map(([key]) => key));
      const all = query && [
        ...storedQuery.filter(([key]) => !named.has(key)),
        ...query.filter(([, value]) => value !== ''),
      ];
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
      await this.deletion.delete(id);
      throw InvalidSourceError.whileLoading(source.entrypoint, failure as Error);
    }
    return this.reader.byRowId(id);
  }
}

/** Compares a member of a body with a stored JSON value. */
function isSame(sent: unknown, stored: unknown): boolean {
  return isDeepStrictEqual(JSON.parse(JSON.stringify(sent)), stored);
}
