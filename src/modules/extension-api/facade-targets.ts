import { Injectable } from '@nestjs/common';
import { AccessService } from '../auth/access.service.js';
import type { AccessRule } from '../auth/access.types.js';
import { toQualifiedName } from '../servers/server.decorator.js';
import type { ServerRef } from '../servers/server.types.js';
import { ServerNotFoundError } from '../servers/servers.errors.js';
import { ServersService } from '../servers/servers.service.js';
import { asSystem, type FacadeCaller } from './facade.types.js';

/** Finds the targets that modules name, by the rules of the REST routes. */
@Injectable()
export class FacadeTargets {
  constructor(
    private readonly accessService: AccessService,
    private readonly serversService: ServersService,
  ) {}

  /** Finds a server as a route with this rule does. @throws ServerNotFoundError, KeyScopeError, GrantLevelError */
  async server(caller: FacadeCaller, name: string, rule: AccessRule): Promise<ServerRef> {
    if (caller === asSystem) return this.serversService.find(toQualifiedName(name), null);
    const { caller: allowed, namespace } = await this.accessService.authorize(caller, rule, { owner: name });
    const server = await this.serversService.find(toQualifiedName(name), allowed);
    // Owners are cached: meanwhile another account may have claimed the name.
    if (namespace && namespace.id !== server.namespaceId) throw new ServerNotFoundError();
    return server;
  }
}
