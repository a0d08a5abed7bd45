import { Injectable, type OnModuleInit } from '@nestjs/common';
import { OAuthClientsService } from '../../oauth/oauth-clients.service.js';
import { ServerChannelsService } from '../../run/server-channels.service.js';
import { ConnectionValues } from './connection-values.js';
import type { ConnectionTarget } from './connection.entity.js';
import { ConnectionsRepository, type ByIds } from './connection.repository.js';

@Injectable()
export class ConnectionTargets implements OnModuleInit {
  constructor(
    private readonly connectionsRepository: ConnectionsRepository,
    private readonly connectionValues: ConnectionValues,
    private readonly serverChannelsService: ServerChannelsService,
    private readonly oauthClientsService: OAuthClientsService,
  ) {}

  /** Registers the adapters of registry servers, whose code can authorize its users itself. */
  onModuleInit(): void {
    this.oauthClientsService.provideAdapters(async (id) => {
      const target = await this.read({ id });
      if (target?.kind !== 'server' || target.serverId === null) return null;
      return this.serverChannelsService.adapterFor(target.serverId, target);
    });
  }

  async read(where: ByIds): Promise<ConnectionTarget | null> {
    const row = await this.connectionsRepository.findTarget(where);
    if (!row) return null;
    const { id, revision, namespaceId, namespace, accountId, ownerName, connectionId, setupEpoch, recordingUntil } =
      row;
    const { serverId, mock, tools, callTimeoutMs, suspended } = row;
    const owner = { namespaceId, namespace, accountId, ownerName };
    const ref = { id, revision, ...owner, connectionId, setupEpoch, recordingUntil, tools, callTimeoutMs, suspended };
    const serverName = row.serverName ?? '';
    if (mock) return { ...ref, kind: 'mock', serverId, serverName, scenario: mock.scenario ?? null };
    if (row.targetKind === 'uplink') return { ...ref, kind: 'uplink' };
    if (row.targetKind === 'source') return { ...ref, kind: 'source', isStateful: row.isStateful };
    const headers = this.connectionValues.openHeaders(id, row.sealedHeaders);
    if (row.targetKind === 'url')
      return { ...ref, kind: 'url', url: this.connectionValues.openUrl(row) ?? '', headers };
    const query = this.connectionValues.openQuery(id, row.sealedQuery);
    return { ...ref, kind: 'server', serverId, serverName, headers, query };
  }
}
