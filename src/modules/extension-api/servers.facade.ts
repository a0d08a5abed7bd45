import { Injectable } from '@nestjs/common';
import type { PageQueryDto } from '../../platform/http/pagination.dto.js';
import type { ReleaseListDto } from '../releases/release.dto.js';
import { ReleasesService } from '../releases/releases.service.js';
import { ServerReleasesService } from '../servers/server-releases.service.js';
import { type ServerOffers, type ServerRef, withinTools } from '../servers/server.types.js';
import { ServersService } from '../servers/servers.service.js';
import type { FacadeCaller } from './facade.types.js';
import { FacadeTargets, managedServer } from './facade-targets.js';

/**
 * Servers of the registry, by their qualified names.
 *
 * @stability preview
 * @example
 * // Lists the tools of a server that have no description.
 * export class LintService {
 *   constructor(private readonly servers: Servers) {}
 *
 *   async undescribed(caller: Caller, server: string): Promise<unknown[]> {
 *     const contract = await this.servers.contract(caller, server);
 *     return (contract?.tools ?? []).filter((tool) => !tool.description).map((tool) => tool.name);
 *   }
 * }
 */
export abstract class Servers {
  /**
   * Returns a reference to a server. For a module that names a server in a body, where `@TargetServer()` has no path to read.
   *
   * @throws ServerNotFoundError for a server that is hidden from the caller
   */
  abstract find(caller: FacadeCaller, name: string): Promise<ServerRef>;

  /**
   * Returns a page of its releases, newest first. For a module that reports what was published.
   *
   * @throws ServerNotFoundError for a server that the caller cannot manage or read as a member
   */
  abstract releases(caller: FacadeCaller, name: string, query?: PageQueryDto): Promise<ReleaseListDto>;

  /**
   * Returns the tools, resources and prompts of its current release; null without one. A grant of some tools of a private server
   * shows only these tools. For a module that checks or documents tools.
   *
   * @throws ServerNotFoundError for a server that is hidden from the caller
   */
  abstract contract(caller: FacadeCaller, name: string): Promise<ServerOffers | null>;
}

/** {@link Servers} by the services of REST. */
@Injectable()
export class ServiceServers implements Servers {
  constructor(
    private readonly facadeTargets: FacadeTargets,
    private readonly serversService: ServersService,
    private readonly releasesService: ReleasesService,
    private readonly serverReleasesService: ServerReleasesService,
  ) {}

  async find(caller: FacadeCaller, name: string): Promise<ServerRef> {
    return (await this.facadeTargets.server(caller, name, { scope: 'servers:read' })).server;
  }

  async releases(requester: FacadeCaller, name: string, query: PageQueryDto = {}): Promise<ReleaseListDto> {
    const { server, caller } = await this.facadeTargets.server(requester, name, managedServer);
    return this.releasesService.list(server, caller, query);
  }

  async contract(requester: FacadeCaller, name: string): Promise<ServerOffers | null> {
    const { server, caller } = await this.facadeTargets.server(requester, name, { scope: 'servers:read' });
    const offers = await this.serverReleasesService.offersOf(server.id);
    if (!offers || !caller || server.visibility !== 'private') return offers;
    await this.serversService.requireCall(caller, server);
    return withinTools(offers, this.serversService.grantedToolsOf(caller, server));
  }
}
