import { Injectable } from '@nestjs/common';
import type { Channel } from '../../mcp/protocol/channel.js';
import type { ConnectionDto, ConnectionStatusDto } from '../connections/core/connection.dto.js';
import { ConnectionsService } from '../connections/connections.service.js';
import { callableConnections, listedTools, ownConnections } from '../connections/core/connections.access.js';
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
   * Returns a connection as `GET /connect/{namespace}/{connectionId}`: with level `call`, only what that level can read. For a
   * module that lists what its jobs use.
   *
   * @throws ResourceNotFoundError for a connection that is hidden from the caller
   */
  abstract find(caller: FacadeCaller, name: string): Promise<ConnectionDto>;

  /** Returns its last known status. For a module that waits until a user has authorized it. @throws ResourceNotFoundError */
  abstract status(caller: FacadeCaller, name: string): Promise<ConnectionStatusDto>;

  /**
   * Returns the channel to its MCP server. For a module that forwards requests of an extension of MCP. The caller needs
   * `connections:execute`, or `connections:read` for requests that are `readOnly`.
   *
   * @throws ResourceNotFoundError, SuspendedError; UpstreamFailure from requests
   */
  abstract channel(
    caller: FacadeCaller,
    name: string,
    options?: { readOnly?: boolean },
  ): Promise<Pick<Channel, 'request'>>;
}

/** {@link Connections} by the service of REST. */
@Injectable()
export class ServiceConnections implements Connections {
  constructor(
    private readonly facadeTargets: FacadeTargets,
    private readonly connectionsService: ConnectionsService,
    private readonly connectionToolsService: ConnectionToolsService,
  ) {}

  async find(requester: FacadeCaller, name: string): Promise<ConnectionDto> {
    const rule = { scope: 'connections:read', ...listedTools } as const;
    const { namespace, connectionId, caller } = await this.facadeTargets.connection(requester, name, rule);
    return this.connectionsService.get(namespace, connectionId, caller);
  }

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
