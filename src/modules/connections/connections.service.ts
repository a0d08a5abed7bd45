/**
 * Creates, changes, reads and deletes connections (Spec 4.1 to 4.4).
 *
 * The target of a connection never changes, except that its owner can send another `mcpUrl` while the connection has never worked; nothing
 * stored for the old address is sent to the new one. A change of the values sent, or of the tools offered, increments `revision`: handles
 * of older revisions close, and the connection is checked again. Creation stores the outcome of a real round trip, even a failure; only a
 * source module that cannot be loaded is rejected.
 *
 * Values are compared in clear under the lock of the row, because sealed values differ each time.
 */
import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { transactionOf, type Actor } from '../../platform/database/actor.js';
import { hostedFailureIn, messageForOwner, ProgramStartError } from '../../hosting/hosting.errors.js';
import { isGuest } from '../../platform/http/revocation-registry.js';
import { generateName } from '../../platform/http/generated-name.js';
import { ConflictError, InvalidInputError } from '../../platform/errors/domain-error.js';
import type { SuccessDto } from '../../platform/http/success.dto.js';
import { checkedBody } from '../../platform/http/input.pipe.js';
import type { Caller, OwnedNamespace } from '../auth/access.types.js';
import { GrantLevelError } from '../auth/auth.errors.js';
import { CredentialsService } from '../oauth/credentials.service.js';
import { OAuthClientsService } from '../oauth/oauth-clients.service.js';
import { ConnectionReader } from './core/connection-reader.js';
import {
  SetConnectionDto,
  type ConnectionDto,
  type ConnectionListDto,
  type ConnectionQueryDto,
} from './core/connection.dto.js';
import { Connection } from './core/connection.entity.js';
import { ConnectionsRepository } from './core/connection.repository.js';
import { isSamePlace, requireConnectionId, requireTarget, type NewTarget } from './core/connection-target.js';
import { ConnectionValues } from './core/connection-values.js';
import { queryFault } from './core/connection.validators.js';
import { InvalidSourceError, ResourceNotFoundError, targetConflict } from './core/connections.errors.js';
import type { MetadataFilter } from './core/metadata-filter.js';
import { TargetResolver, type TargetChange } from './core/target-resolver.js';
import { ConnectionCreation, toStoredTools } from './connection-creation.js';
import { ConnectionDeletion } from './connection-deletion.js';
import { ConnectionCheck } from './recheck/connection-check.js';

@Injectable()
export class ConnectionsService {
  constructor(
    @InjectRepository(Connection) private readonly connectionRepository: Repository<Connection>,
    private readonly connectionsRepository: ConnectionsRepository,
    private readonly targetResolver: TargetResolver,
    private readonly connectionReader: ConnectionReader,
    private readonly connectionCheck: ConnectionCheck,
    private readonly connectionValues: ConnectionValues,
    private readonly connectionCreation: ConnectionCreation,
    private readonly connectionDeletion: ConnectionDeletion,
    private readonly oauthClientsService: OAuthClientsService,
    private readonly credentialsService: CredentialsService,
  ) {}

  /**
   * @param connectionId by default a generated one
   * @param command of the local server of an uplink, which {@link commandOf} returns until it is paired
   * @throws InvalidInputError, InvalidSourceError, ResourceNotFoundError, KeyScopeError; ConflictError for an id that is taken
   */
  async create(
    namespace: OwnedNamespace,
    body: SetConnectionDto,
    caller: Caller,
    connectionId?: string,
    command?: string,
  ): Promise<ConnectionDto> {
    if (connectionId !== undefined) requireConnectionId(connectionId);
    const prepared = await this.connectionCreation.prepare(namespace, body, caller);
    if (command !== undefined) prepared.target.query = [['command', command]];
    for (;;) {
      const id = await this.connectionCreation.insert(
        caller,
        namespace,
        connectionId ?? generateName(6),
        prepared,
        body,
      );
      if (id) return this.firstCheck(id, prepared.target, namespace, caller);
      if (connectionId !== undefined) {
        throw new ConflictError(`There is a connection ${namespace.name}/${connectionId} already: choose another id.`);
      }
    }
  }

  /** @throws ResourceNotFoundError */
  remove(caller: Caller, namespace: OwnedNamespace, connectionId: string): Promise<SuccessDto> {
    return this.connectionDeletion.remove(caller, namespace, connectionId);
  }

  async commandOf({ id: namespaceId }: OwnedNamespace, connectionId: string): Promise<string | null> {
    const where = { namespaceId, connectionId, targetKind: 'uplink' as const };
    const row = await this.connectionRepository.findOne({ where, select: { id: true, sealedQuery: true } });
    const [value] = row ? this.connectionValues.openQuery(row.id, row.sealedQuery) : [];
    return value?.[1] ?? null;
  }

  /** @throws InvalidInputError */
  checkBody(body: object): Promise<SetConnectionDto> {
    return checkedBody(SetConnectionDto, body);
  }

  /**
   * Returns a connection. A caller with the level `call` sees only the account that has to set it up.
   *
   * @param caller null: without setup links
   * @throws ResourceNotFoundError
   */
  get(namespace: OwnedNamespace, connectionId: string, caller: Caller | null): Promise<ConnectionDto> {
    if (isGuest(caller?.grant)) return this.connectionReader.getForGuest(namespace, connectionId);
    return this.connectionReader.get(namespace, connectionId, caller);
  }

  /**
   * @param caller null: without setup links
   * @throws InvalidInputError
   */
  list(
    namespace: OwnedNamespace,
    caller: Caller | null,
    query: ConnectionQueryDto,
    metadata: MetadataFilter[],
  ): Promise<ConnectionListDto> {
    return this.connectionReader.list(namespace, caller, query, metadata);
  }

  /**
   * Creates the connection, or changes the members that the body has. Checks the connection at creation, after a change of the values sent
   * or of the tools offered, and when the body names the target or headers while the connection is not `connected`.
   *
   * @param caller a caller with only a grant of the connection cannot create it again if it was deleted meanwhile
   * @throws InvalidInputError, InvalidSourceError, ConflictError, ResourceNotFoundError, KeyScopeError; GrantLevelError for `oauth`, which
   * only the owner can set
   */
  async set(
    namespace: OwnedNamespace,
    connectionId: string,
    body: SetConnectionDto,
    caller: Caller,
  ): Promise<{ created: boolean; connection: ConnectionDto }> {
    requireConnectionId(connectionId);
    if (body.oauth !== undefined && caller.grant) throw new GrantLevelError(caller.grant.level, 'administer');
    const where = { namespaceId: namespace.id, connectionId };
    if (!caller.grant && !(await this.connectionRepository.existsBy(where))) {
      requireTarget(connectionId, body);
      const prepared = await this.connectionCreation.prepare(namespace, body, caller);
      const id = await this.connectionCreation.insert(caller, namespace, connectionId, prepared, body);
      if (id) return { created: true, connection: await this.firstCheck(id, prepared.target, namespace, caller) };
    }
    const existing = await this.connectionsRepository.findWithSource(where);
    if (!existing) throw new ResourceNotFoundError();
    const change = await this.targetResolver.change(namespace, existing, body, caller);
    const isNewRevision = await this.update(caller, existing, body, change);
    if (isNewRevision) await this.connectionCheck.run(existing.id);
    else if (existing.statusState !== 'connected') {
      // A body that names the target, or headers for it, triggers a check; an uplink reports by itself.
      const { mcpUrl, server, source, headers } = body;
      if ((mcpUrl ?? server ?? source ?? headers) !== undefined) await this.connectionCheck.runAside(existing);
    }
    return { created: false, connection: await this.connectionReader.byRowId(existing.id, namespace, caller) };
  }

  /**
   * Updates a row. If the address changes, headers, authorization, recordings, status and setup links are reset to those of a new connection.
   *
   * @param existing the row that the change was made for
   * @throws ConflictError if the connection has worked or moved since that row was read
   * @returns true if more than name and metadata changed, which increments the revision
   */
  private async update(
    actor: Actor,
    existing: Connection,
    body: SetConnectionDto,
    { mcpUrl, query, isMove = false }: TargetChange,
  ): Promise<boolean> {
    const { id } = existing;
    const { name, metadata, tools, callTimeoutMs } = body;
    // If the connection moves, values that the body leaves out are removed.
    const headers = body.headers ?? (isMove ? {} : undefined);
    const sentOauth = body.oauth === undefined && isMove ? null : body.oauth;
    let revoke = () => {};
    const isNewRevision = await transactionOf(this.connectionRepository, actor, async (tx) => {
      const stored = await this.connectionsRepository.lock(id, tx);
      if (!stored) throw new ResourceNotFoundError();
      // Headers of this body were meant for the address that was read.
      const isElsewhere = stored.targetKind === 'url' && !isSamePlace(stored.mcpUrl ?? '', existing.mcpUrl ?? '');
      if (isElsewhere || (isMove && stored.lastOkAt !== null)) throw targetConflict('mcpUrl');
      const owner = { kind: 'connection', id } as const;
      const fresh = isMove ? await this.connectionsRepository.forgetAddress(id, tx) : {};
      if (isMove) {
        revoke = await this.credentialsService.removeIn(owner, tx);
        await this.oauthClientsService.replacePreregistered(owner, undefined, null, tx);
        Object.assign(stored, { oauth: null, sealedOauthSecret: null });
      }
      const storedQuery = this.connectionValues.openQuery(id, stored.sealedQuery);
      // Query values are never returned, so a change names only its own: an empty value deletes one, others are kept.
      const names = new Set(query?.map(([key]) => key));
      const all = query && [
        ...storedQuery.filter(([key]) => !names.has(key)),
        ...query.filter(([, value]) => value !== ''),
      ];
      const fault = all ? queryFault(all) : null;
      if (fault !== null) throw new InvalidInputError(`The query values ${fault}`);
      const sealedHeaders = this.connectionValues.sealHeaders(id, headers);
      const storedHeaders = this.connectionValues.openHeaders(id, stored.sealedHeaders);
      const login = sentOauth === undefined ? null : this.connectionValues.oauthOf(stored, sentOauth);
      const storedSecret = this.connectionValues.openOauthSecret(id, stored.sealedOauthSecret);
      const isOtherLogin = login !== null && !(isSame(login.oauth, stored.oauth) && login.secret === storedSecret);
      if (isOtherLogin && (stored.oauth?.clientId ?? login.oauth?.clientId) !== undefined) {
        await this.oauthClientsService.replacePreregistered(owner, login.oauth?.clientId, login.secret, tx);
      }
      const sent = {
        ...fresh,
        ...(login &&
          (isOtherLogin || isMove) && {
            oauth: login.oauth,
            sealedOauthSecret: this.connectionValues.sealOauthSecret(id, login.secret),
          }),
        ...(headers !== undefined &&
          !isSame(this.connectionValues.openHeaders(id, sealedHeaders), storedHeaders) && { sealedHeaders }),
        ...(mcpUrl !== undefined &&
          mcpUrl !== this.connectionValues.openUrl(stored) &&
          this.connectionValues.sealUrl(id, mcpUrl)),
        ...(all !== undefined &&
          !isSame(all, storedQuery) && { sealedQuery: this.connectionValues.sealQuery(id, all) }),
      };
      const offered = {
        ...(tools !== undefined && !isSame(toStoredTools(tools), stored.tools) && { tools: toStoredTools(tools) }),
        ...(callTimeoutMs !== undefined && callTimeoutMs !== stored.callTimeoutMs && { callTimeoutMs }),
      };
      const details = {
        ...(name !== undefined && name !== stored.name && { name }),
        ...(metadata !== undefined && !isSame(metadata, stored.metadata) && { metadata: metadata as object }),
      };
      const endLinks = Object.keys(sent).length > 0;
      const isNewRevision = endLinks || Object.keys(offered).length > 0;
      if (isNewRevision)
        await this.connectionsRepository.update(id, { ...details, ...offered, ...sent }, { endLinks }, tx);
      else if (Object.keys(details).length > 0) await tx.update(Connection, { id }, details);
      return isNewRevision;
    });
    revoke();
    return isNewRevision;
  }

  /** @throws InvalidSourceError */
  private async firstCheck(
    id: string,
    { source }: NewTarget,
    namespace: OwnedNamespace,
    caller: Caller,
  ): Promise<ConnectionDto> {
    const failure = await this.connectionCheck.run(id);
    if (source && hostedFailureIn(failure) instanceof ProgramStartError) {
      await this.connectionDeletion.delete(caller, id);
      throw InvalidSourceError.whileLoading(source.entrypoint, messageForOwner(failure as Error));
    }
    return this.connectionReader.byRowId(id, namespace, caller);
  }
}

function isSame(sent: unknown, stored: unknown): boolean {
  return isDeepStrictEqual(JSON.parse(JSON.stringify(sent)), stored);
}
