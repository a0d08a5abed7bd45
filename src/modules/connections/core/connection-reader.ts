import { Injectable } from '@nestjs/common';
import { decodeCursor, encodeCursor } from '../../../platform/http/cursor.js';
import { shownSuspension } from '../../auth/suspension.types.js';
import type { Caller, OwnedNamespace } from '../../auth/access.types.js';
import { linkHolderOf, type LinkHolder } from '../../oauth/setup/setup.types.js';
import type { ConnectionDto, ConnectionListDto, ConnectionQueryDto } from './connection.dto.js';
import { ConnectionsRepository, type ConnectionRow, type ShownConnection } from './connection.repository.js';
import { isConnectionId } from './connection-target.js';
import type { TargetKind } from './connection.entity.js';
import { ConnectionUrls } from './connection-urls.js';
import { ConnectionValues } from './connection-values.js';
import { ownerMust, ResourceNotFoundError } from './connections.errors.js';
import type { MetadataFilter } from './metadata-filter.js';
import { StatusRecorder } from './status-recorder.js';
import { TargetResolver } from './target-resolver.js';

@Injectable()
export class ConnectionReader {
  constructor(
    private readonly connectionsRepository: ConnectionsRepository,
    private readonly targetResolver: TargetResolver,
    private readonly statusRecorder: StatusRecorder,
    private readonly connectionUrls: ConnectionUrls,
    private readonly connectionValues: ConnectionValues,
  ) {}

  /**
   * Returns a connection, including the status that calls of this process have just observed.
   *
   * @param caller receives the setup link if it can manage the connection; null: without setup links
   * @throws ResourceNotFoundError
   */
  async get(namespace: OwnedNamespace, connectionId: string, caller: Caller | null): Promise<ConnectionDto> {
    const row = isConnectionId(connectionId)
      ? await this.readSettled(
          () => this.connectionsRepository.findShown({ namespaceId: namespace.id, connectionId }),
          (connection) => connection !== null && this.statusRecorder.isPending(connection.id),
        )
      : null;
    if (!row) throw await this.connectionsRepository.missing(namespace, connectionId);
    return toConnectionDto(row, this.connectionUrls, caller && linkHolderOf(caller, namespace.name));
  }

  /**
   * Works like {@link get} for accounts with the level `call`: names the account that has to set up the connection, without
   * address, values and errors of its MCP server, metadata and the owner's choices.
   */
  async getForGuest(namespace: OwnedNamespace, id: string): Promise<ConnectionDto> {
    const connection = await this.get(namespace, id, null);
    const { connectionId, name, transport, callTimeoutMs, mock, createdAt, suspended, serverInfo } = connection;
    const { state, reason, since, lastOkAt } = connection.status;
    const isWaiting = state === 'auth_required' || state === 'input_required';
    const message = isWaiting ? ownerMust(await this.connectionsRepository.ownerName(namespace.id), state) : null;
    return {
      connectionId,
      name,
      mcpUrl: null,
      metadata: {},
      transport,
      ...(callTimeoutMs !== undefined && { callTimeoutMs }),
      ...(mock && { mock: { enabled: true } }),
      iconUrl: serverInfo?.icons?.find(({ src }) => src.startsWith('data:image/'))?.src ?? null,
      createdAt,
      ...(suspended && { suspended }),
      status: {
        state,
        reason,
        ...(message !== null && { message, nextStep: message }),
        since,
        ...(lastOkAt !== undefined && { lastOkAt }),
      },
      ...(serverInfo && {
        serverInfo: {
          name: serverInfo.name,
          version: serverInfo.version,
          title: serverInfo.title,
          description: serverInfo.description,
        },
      }),
    };
  }

  /**
   * Finds the row of a connection. @param targetKind the kind that its target must have @throws ResourceNotFoundError
   */
  async find(namespace: OwnedNamespace, connectionId: string, targetKind?: TargetKind): Promise<ConnectionRow> {
    const row = isConnectionId(connectionId)
      ? await this.connectionsRepository.findRow({
          namespaceId: namespace.id,
          connectionId,
          ...(targetKind && { targetKind }),
        })
      : null;
    if (!row) throw await this.connectionsRepository.missing(namespace, connectionId);
    return row;
  }

  /** @throws ResourceNotFoundError */
  async byRowId(id: string, namespace: OwnedNamespace, caller: Caller): Promise<ConnectionDto> {
    const row = await this.connectionsRepository.findShown({ id });
    if (!row) throw new ResourceNotFoundError();
    return toConnectionDto(row, this.connectionUrls, linkHolderOf(caller, namespace.name));
  }

  /**
   * Lists connections that match every filter, newest first. Any address of a registry server matches all connections to that server.
   *
   * @throws InvalidInputError for an invalid cursor
   */
  async list(
    namespace: OwnedNamespace,
    caller: Caller | null,
    { limit = 100, cursor, name, mcpUrl, server, state }: ConnectionQueryDto,
    metadata: MetadataFilter[],
  ): Promise<ConnectionListDto> {
    const serverId = mcpUrl === undefined ? null : await this.targetResolver.serverIdOf(mcpUrl, namespace);
    const namedServer = server === undefined ? undefined : await this.targetResolver.serverNamed(server, namespace);
    if (namedServer === null || (serverId !== null && namedServer && namedServer.id !== serverId))
      return { connections: [], nextCursor: null };
    const hashes = mcpUrl === undefined ? null : this.connectionValues.urlHashes(mcpUrl);
    const filter = {
      ...(cursor !== undefined && { beforeSeq: decodeCursor(cursor, namespace.id) }),
      ...(name !== undefined && { name }),
      ...(serverId === null && mcpUrl !== undefined && { mcpUrl: hashes === null ? mcpUrl : { hashes } }),
      serverId: namedServer?.id ?? serverId ?? undefined,
      state,
      metadata,
    };
    // A pending status can add a connection to the list of a state.
    if (state !== undefined) await this.statusRecorder.settle();
    const rows = await this.readSettled(
      () => this.connectionsRepository.listShown(namespace.id, limit + 1, filter),
      (connections) => connections.some(({ id }) => this.statusRecorder.isPending(id)),
    );
    const page = rows.slice(0, limit);
    const holder = caller && linkHolderOf(caller, namespace.name);
    const last = page[page.length - 1];
    return {
      connections: page.map((row) => toConnectionDto(row, this.connectionUrls, holder)),
      nextCursor: rows.length > limit && last ? encodeCursor(last.seq, namespace.id) : null,
    };
  }

  /** Reads again after writing pending statuses if those concern the result. Does not wait for those of others. */
  private async readSettled<Result>(
    read: () => Promise<Result>,
    isPending: (result: Result) => boolean,
  ): Promise<Result> {
    const result = await read();
    if (!isPending(result)) return result;
    await this.statusRecorder.settle();
    return read();
  }
}

/** Lists every field of the response, so that no other column is returned. */
function toConnectionDto(row: ShownConnection, urls: ConnectionUrls, holder: LinkHolder | null): ConnectionDto {
  const { statusState: state, statusReason: reason, statusInputs: inputs } = row;
  const nextStep = urls.nextStep(reason);
  const isForPerson = state === 'auth_required' || state === 'input_required' || reason === 'authorization_unavailable';
  const setupUrl = isForPerson && holder ? urls.setup(row.id, row.setupEpoch, holder) : undefined;
  // Fields are sorted by name, because the database does not keep their order.
  const sorted = <T>(fields: Record<string, T>) =>
    Object.fromEntries(Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1)));
  return {
    connectionId: row.connectionId,
    name: row.name,
    mcpUrl: row.slug === null ? row.mcpUrl : urls.run(row.slug),
    metadata: row.metadata,
    transport: row.targetKind === 'uplink' ? 'uplink' : 'http',
    ...(row.tools === null
      ? {}
      : {
          tools: {
            ...(row.tools.allow && { allow: row.tools.allow }),
            ...(row.tools.deny && { deny: row.tools.deny }),
          },
        }),
    ...(row.callTimeoutMs === null ? {} : { callTimeoutMs: row.callTimeoutMs }),
    ...(row.oauth && { oauth: { issuer: row.oauth.issuer, clientId: row.oauth.clientId, scopes: row.oauth.scopes } }),
    ...(row.mock === null ? {} : { mock: { enabled: true, ...row.mock } }),
    iconUrl: row.serverInfo?.icons?.find(({ src }) => /^(https?:\/\/|data:image\/)/.test(src))?.src ?? null,
    createdAt: row.createdAt.toISOString(),
    ...shownSuspension(row.suspended),
    status: {
      state,
      reason,
      ...(row.statusMessage === null ? {} : { message: row.statusMessage }),
      since: row.statusSince.toISOString(),
      ...(row.lastOkAt === null ? {} : { lastOkAt: row.lastOkAt.toISOString() }),
      ...(nextStep === null ? {} : { nextStep }),
      ...(inputs && {
        http: {
          ...(inputs.http.headers && { headers: sorted(inputs.http.headers) }),
          ...(inputs.http.query && { query: sorted(inputs.http.query) }),
        },
        missing: inputs.missing,
      }),
      ...(setupUrl !== undefined && { setupUrl }),
      // Published clients also read this older name.
      ...(state === 'auth_required' && setupUrl !== undefined && { authorizationUrl: setupUrl }),
    },
    ...(row.serverInfo === null
      ? {}
      : {
          serverInfo: {
            name: row.serverInfo.name,
            version: row.serverInfo.version,
            title: row.serverInfo.title,
            icons: row.serverInfo.icons,
            websiteUrl: webAddress(row.serverInfo.websiteUrl),
            description: row.serverInfo.description,
          },
        }),
  };
}

/** Returns the address, unless a browser would run it as a script. */
function webAddress(url: string | undefined): string | undefined {
  return url !== undefined && /^https?:\/\//i.test(url) ? url : undefined;
}
