import { Injectable } from '@nestjs/common';
import { isUUID } from 'class-validator';
import { NotFoundError } from '../../platform/errors/domain-error.js';
import { AccessService } from '../auth/access.service.js';
import { type AccessRule, type Caller, callerFor, type OwnedNamespace } from '../auth/access.types.js';
import { ResourceNotFoundError } from '../connections/core/connections.errors.js';
import { NamespaceNotFoundError } from '../namespaces/namespaces.errors.js';
import { inOwnNamespace, ownServerOrNone, toQualifiedName } from '../servers/server.decorator.js';
import { parseQualifiedName, type ServerRef } from '../servers/server.types.js';
import { ServerNotFoundError } from '../servers/servers.errors.js';
import { ServersService } from '../servers/servers.service.js';
import { TargetsService } from '../targets/targets.service.js';
import { asSystem, type FacadeCaller } from './facade.types.js';

export const managedServer = { scope: 'servers:read', ...ownServerOrNone } as const;

/** Null for {@link asSystem}, where the `actor` of a change is the owner. */
type Found<Target> = Target & { caller: Caller | null };
type FoundServer = Found<{ server: ServerRef; actor: Caller }>;
type ConnectionPlace = { namespace: OwnedNamespace; connectionId: string };

@Injectable()
export class FacadeTargets {
  constructor(
    private readonly accessService: AccessService,
    private readonly serversService: ServersService,
    private readonly targetsService: TargetsService,
  ) {}

  /** Returns the id of an account, as a route with this rule does. @throws NotFoundError, RoleError, KeyScopeError */
  async account(caller: FacadeCaller, id: string, rule: AccessRule): Promise<string> {
    const grant = caller === asSystem ? null : await this.accessService.authorize(caller, rule, { account: id });
    const accountId = grant?.accountId ?? id;
    if (!isUUID(accountId)) throw new NotFoundError('Account not found');
    return accountId;
  }

  /** Finds a server as a route with this rule does. @throws ServerNotFoundError, KeyScopeError, GrantLevelError */
  async server(requester: FacadeCaller, name: string, rule: AccessRule): Promise<FoundServer> {
    const grant = requester === asSystem ? null : await this.accessService.authorize(requester, rule, { owner: name });
    const caller = grant && grant.caller;
    const server = await this.serversService.find(toQualifiedName(name), caller);
    // Owners are cached: another account might have claimed the name meanwhile.
    if (grant?.namespace && grant.namespace.id !== server.namespaceId) throw new ServerNotFoundError();
    return { server, caller, actor: caller ?? callerFor(server.ownerId) };
  }

  /** Finds the namespace of a server to create as a route does. @throws NamespaceNotFoundError, NotServerOwnerError, KeyScopeError */
  async namespaceOf(requester: FacadeCaller, owner: string): Promise<{ namespace: OwnedNamespace; actor: Caller }> {
    const rule = { scope: 'servers:write', owner: 'qualifiedName', ...inOwnNamespace } as const;
    const target = await this.targetsService.findNamespace(parseQualifiedName(owner).namespace);
    if (!target) throw new NamespaceNotFoundError();
    const caller = requester === asSystem ? callerFor(target.ownerId) : requester;
    const { namespace, caller: actor } = await this.accessService.authorize(caller, rule, { owner });
    return { namespace: namespace ?? { id: target.id, name: target.namespace }, actor };
  }

  /** Finds the namespace of a connection as a route does. @throws ResourceNotFoundError, KeyScopeError, GrantLevelError */
  async connection(caller: FacadeCaller, name: string, rule: AccessRule): Promise<Found<ConnectionPlace>> {
    const { namespace: owner, name: connectionId } = parseQualifiedName(name);
    const grant =
      caller === asSystem ? null : await this.accessService.authorize(caller, rule, { owner, connectionId });
    const namespace = grant?.namespace ?? (await this.targetsService.findNamespace(owner));
    if (!namespace) throw new ResourceNotFoundError();
    return { namespace: { id: namespace.id, name: owner }, connectionId, caller: grant && grant.caller };
  }
}
