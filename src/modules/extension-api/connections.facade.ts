import { Injectable } from '@nestjs/common';
import type { Channel } from '../../mcp/protocol/channel.js';
import { AccessService } from '../auth/access.service.js';
import type { Caller } from '../auth/access.types.js';
import type {
  ConnectionDto,
  ConnectionListDto,
  ConnectionQueryDto,
  ConnectionStatusDto,
  SetConnectionDto,
} from '../connections/core/connection.dto.js';
import { ConnectionsService } from '../connections/connections.service.js';
import {
  callableConnections,
  listedTools,
  ownConnections,
  ownConnectionsOnly,
} from '../connections/core/connections.access.js';
import type { DiagnosisDto } from '../connections/diagnosis/diagnosis.dto.js';
import { DiagnosisService } from '../connections/diagnosis/diagnosis.service.js';
import type { ConnectionLogDto, ConnectionLogQueryDto } from '../connections/log/connection-log.dto.js';
import { ConnectionLogService } from '../connections/log/connection-log.service.js';
import type { ProbeDto } from '../connections/probe/probe.dto.js';
import { ProbeService } from '../connections/probe/probe.service.js';
import { ConnectionToolsService } from '../connections/tools/connection-tools.service.js';
import type { FacadeCaller } from './facade.types.js';
import { FacadeTargets } from './facade-targets.js';

/**
 * Connections, by `namespace/connection`.
 *
 * @stability preview
 * @example
 * // Tells a user what to do before a job can use the connection.
 * export class JobsService {
 *   constructor(private readonly connections: Connections) {}
 *
 *   async nextStep(caller: Caller): Promise<string | null> {
 *     const { state, nextStep } = await this.connections.status(caller, 'acme/github');
 *     return state === 'connected' ? null : (nextStep ?? state);
 *   }
 * }
 */
export abstract class Connections {
  /**
   * Returns a connection as `GET /connect/{namespace}/{connectionId}`: with level `call`, only what that level can read.
   *
   * @throws ResourceNotFoundError for a connection that is hidden from the caller
   */
  abstract find(caller: FacadeCaller, name: string): Promise<ConnectionDto>;

  /**
   * Returns a page of the connections of a namespace, as `GET /connect/{namespace}`.
   *
   * @param metadata every filter must match
   * @throws ResourceNotFoundError, GrantLevelError; InvalidInputError for an invalid cursor
   */
  abstract list(
    caller: FacadeCaller,
    namespace: string,
    query?: ConnectionQueryDto,
    metadata?: { key: string; value: string }[],
  ): Promise<ConnectionListDto>;

  /** Returns its last known status. @throws ResourceNotFoundError */
  abstract status(caller: FacadeCaller, name: string): Promise<ConnectionStatusDto>;

  /**
   * Creates a connection in a namespace; its first request tests it.
   *
   * @param options `command`: starts the local server of an uplink
   * @throws InvalidInputError, QuotaExceededError; ConflictError for an id in use
   */
  abstract create(
    caller: Caller,
    namespace: string,
    body: SetConnectionDto,
    options?: { id?: string; command?: string },
  ): Promise<ConnectionDto>;

  /** Creates or changes a connection as `PUT /connect/{namespace}/{connectionId}`. @throws InvalidInputError, ConflictError, GrantLevelError */
  abstract set(caller: Caller, name: string, body: object): Promise<{ created: boolean; connection: ConnectionDto }>;

  /** Deletes a connection. @throws ResourceNotFoundError; GrantLevelError for a grantee */
  abstract delete(caller: Caller, name: string): Promise<void>;

  /** Tests a server, by its URL or name, without storing anything. @throws InvalidInputError, TooManyError, ServerNotFoundError */
  abstract probe(caller: Caller, target: object): Promise<ProbeDto>;

  /** Checks a connection step by step, within 20 s. @throws ResourceNotFoundError, NoSlotError */
  abstract diagnose(caller: Caller, name: string): Promise<DiagnosisDto>;

  /** Returns the newest calls of a connection; with level `call`, those of the caller. @throws ResourceNotFoundError */
  abstract calls(caller: Caller, name: string, query?: ConnectionLogQueryDto): Promise<ConnectionLogDto>;

  /** Returns the command of {@link create}; null without one. @throws ResourceNotFoundError */
  abstract command(caller: Caller, name: string): Promise<string | null>;

  /**
   * Returns the channel to its MCP server. The caller needs `connections:execute`, or `connections:read` for requests that are `readOnly`.
   *
   * @throws ResourceNotFoundError, SuspendedError; UpstreamFailure from requests
   */
  abstract channel(
    caller: FacadeCaller,
    name: string,
    options?: { readOnly?: boolean },
  ): Promise<Pick<Channel, 'request'>>;
}

const written = { scope: 'connections:write', ...ownConnections } as const;

@Injectable()
export class ServiceConnections implements Connections {
  constructor(
    private readonly accessService: AccessService,
    private readonly facadeTargets: FacadeTargets,
    private readonly connectionsService: ConnectionsService,
    private readonly connectionToolsService: ConnectionToolsService,
    private readonly connectionLogService: ConnectionLogService,
    private readonly diagnosisService: DiagnosisService,
    private readonly probeService: ProbeService,
  ) {}

  async find(requester: FacadeCaller, name: string): Promise<ConnectionDto> {
    const rule = { scope: 'connections:read', ...listedTools } as const;
    const { namespace, connectionId, caller } = await this.facadeTargets.connection(requester, name, rule);
    return this.connectionsService.get(namespace, connectionId, caller);
  }

  readonly list: Connections['list'] = async (requester, name, query = {}, metadata = []) => {
    const rule = { scope: 'connections:read', ...ownConnections } as const;
    const { namespace, caller } = await this.facadeTargets.connection(requester, name, rule);
    return this.connectionsService.list(namespace, caller, query, metadata);
  };

  readonly create: Connections['create'] = async (requester, name, body, { id, command } = {}) => {
    const { namespace, caller } = await this.facadeTargets.connection(requester, name, written);
    return this.connectionsService.create(namespace, body, caller ?? requester, id, command);
  };

  readonly set: Connections['set'] = async (requester, name, body) => {
    const { namespace, connectionId, caller } = await this.facadeTargets.connection(requester, name, written);
    const checked = await this.connectionsService.checkBody(body);
    return this.connectionsService.set(namespace, connectionId, checked, caller ?? requester);
  };

  readonly delete: Connections['delete'] = async (requester, name) => {
    const rule = { scope: 'connections:write', ...ownConnectionsOnly } as const;
    const { namespace, connectionId, caller } = await this.facadeTargets.connection(requester, name, rule);
    await this.connectionsService.remove(caller ?? requester, namespace, connectionId);
  };

  readonly probe: Connections['probe'] = async (requester, target) => {
    const { caller } = await this.accessService.authorize(requester, { scope: 'connections:write' }, {});
    return this.probeService.probe(caller, await this.probeService.checkBody(target));
  };

  readonly diagnose: Connections['diagnose'] = async (requester, name) => {
    const rule = { scope: 'connections:read', ...ownConnections } as const;
    const { namespace, connectionId, caller } = await this.facadeTargets.connection(requester, name, rule);
    return this.diagnosisService.diagnose(namespace, connectionId, caller ?? requester);
  };

  readonly calls: Connections['calls'] = async (requester, name, query = {}) => {
    const rule = { scope: 'connections:read', ...listedTools } as const;
    const { namespace, connectionId, caller } = await this.facadeTargets.connection(requester, name, rule);
    return this.connectionLogService.list(namespace, connectionId, query, caller ?? requester);
  };

  readonly command: Connections['command'] = async (requester, name) => {
    const { namespace, connectionId } = await this.facadeTargets.connection(requester, name, written);
    return this.connectionsService.commandOf(namespace, connectionId);
  };

  readonly channel: Connections['channel'] = async (caller, name, { readOnly } = {}) => {
    const rule = readOnly
      ? ({ scope: 'connections:read', ...callableConnections } as const)
      : ({ scope: 'connections:execute', ...ownConnections } as const);
    const { namespace, connectionId } = await this.facadeTargets.connection(caller, name, rule);
    return this.connectionToolsService.channel(namespace, connectionId);
  };

  async status(caller: FacadeCaller, name: string): Promise<ConnectionStatusDto> {
    return (await this.find(caller, name)).status;
  }
}
