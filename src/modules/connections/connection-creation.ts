import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { transactionOf, type Actor } from '../../platform/database/actor.js';
import type { ToolChoice } from '../../mcp/client/tools/tool-choice.js';
import { isForeignKeyViolation } from '../../platform/database/postgres-errors.js';
import { AccountLimitsService } from '../auth/account-limits.service.js';
import type { Caller, OwnedNamespace } from '../auth/access.types.js';
import { ServersService } from '../servers/servers.service.js';
import type { SetConnectionDto, ToolsDto } from './core/connection.dto.js';
import { type TargetKind } from './core/connection.entity.js';
import { ConnectionsRepository, FIRST_CHECK } from './core/connection.repository.js';
import { type NewTarget } from './core/connection-target.js';
import { neverCalled, uplinkWaiting } from './core/connection-status.js';
import { ConnectionValues } from './core/connection-values.js';
import { ResourceNotFoundError } from './core/connections.errors.js';
import { TargetResolver } from './core/target-resolver.js';
import { MockCreation, type NewMock } from './mock/mock-creation.js';
import { SourceCompiler } from './source/source-compiler.service.js';

const RECHECKED: ReadonlySet<TargetKind> = new Set(['url', 'server']);

interface PreparedTarget {
  target: NewTarget;
  mock: NewMock | null;
}

@Injectable()
export class ConnectionCreation {
  constructor(
    private readonly database: DataSource,
    private readonly connectionsRepository: ConnectionsRepository,
    private readonly targetResolver: TargetResolver,
    private readonly connectionValues: ConnectionValues,
    private readonly serversService: ServersService,
    private readonly mockCreation: MockCreation,
    private readonly sourceCompiler: SourceCompiler,
    private readonly accountLimitsService: AccountLimitsService,
  ) {}

  /** @throws InvalidInputError, InvalidSourceError, KeyScopeError, GrantLevelError */
  async prepare(namespace: OwnedNamespace, body: SetConnectionDto, caller: Caller): Promise<PreparedTarget> {
    const target = await this.targetResolver.resolve(namespace, body, caller);
    if (target.source) Object.assign(target, await this.sourceCompiler.check(target.source, namespace.id));
    return { target, mock: await this.mockCreation.prepare(namespace, target, body.mock, caller) };
  }

  /** @returns the row's id; null if the connection id is taken */
  async insert(
    actor: Actor,
    namespace: OwnedNamespace,
    connectionId: string,
    { target: { query, ...target }, mock: newMock }: PreparedTarget,
    { name, metadata, headers, tools, callTimeoutMs, oauth: sentOauth, mock }: SetConnectionDto,
  ): Promise<string | null> {
    const id = randomUUID();
    const status = target.targetKind === 'uplink' ? uplinkWaiting : neverCalled;
    const { oauth, secret } = this.connectionValues.oauthOf(
      { id, oauth: null, sealedOauthSecret: null },
      sentOauth ?? null,
    );
    const row = {
      ...target,
      ...(target.targetKind === 'url' && this.connectionValues.sealUrl(id, target.mcpUrl)),
      source: target.source as object | null,
      id,
      namespaceId: namespace.id,
      connectionId,
      name: name ?? connectionId,
      metadata: (metadata ?? {}) as object,
      tools: toStoredTools(tools),
      callTimeoutMs: callTimeoutMs ?? null,
      mock: mock?.enabled ? (mock.scenario === undefined ? {} : { scenario: mock.scenario }) : null,
      sealedHeaders: this.connectionValues.sealHeaders(id, headers),
      sealedQuery: this.connectionValues.sealQuery(id, query),
      oauth,
      sealedOauthSecret: this.connectionValues.sealOauthSecret(id, secret),
      statusState: status.state,
      statusReason: status.reason,
      statusMessage: status.message,
      nextCheckAt: RECHECKED.has(target.targetKind) && !mock?.enabled ? () => FIRST_CHECK : null,
    };
    try {
      const quotas = { connections: 1, connectionsPerNamespace: 1 };
      const isNew = await this.accountLimitsService.createWithinQuota({ namespaceId: namespace.id }, quotas, () =>
        transactionOf(this.database, actor, async (tx) => {
          const isInserted = await this.connectionsRepository.insert(row, tx);
          if (isInserted && newMock) await this.mockCreation.insert(id, newMock, tx);
          return isInserted;
        }),
      );
      if (!isNew) return null;
      if (target.serverId !== null) this.serversService.countUse(target.serverId);
      return id;
    } catch (error) {
      if (isForeignKeyViolation(error)) throw new ResourceNotFoundError();
      throw error;
    }
  }
}

/** Returns null for `{}`, which offers all tools. */
export function toStoredTools(tools: ToolsDto | undefined): ToolChoice | null {
  return tools?.allow === undefined && tools?.deny === undefined ? null : { ...tools };
}
