import { Injectable } from '@nestjs/common';
import { checkedBody } from '../../platform/http/input.pipe.js';
import type { SuccessDto } from '../../platform/http/success.dto.js';
import { ownServer, ownServerOrNone, toQualifiedName } from '../servers/server.decorator.js';
import { CreateServerDto, type DeletedServerDto, type ServerDetailDto, type ServerDto } from '../servers/server.dto.js';
import { ServerReleasesService } from '../servers/server-releases.service.js';
import { parseQualifiedName, type ServerOffers, type ServerRef, withinTools } from '../servers/server.types.js';
import { ServerSearchService } from '../servers/search/server-search.service.js';
import type { ServerListDto, ServerQueryDto } from '../servers/search/server-search.dto.js';
import { ServerAccessService } from '../servers/server-access.service.js';
import { AccessService } from '../auth/access.service.js';
import type { Caller } from '../auth/access.types.js';
import { ServersService } from '../servers/servers.service.js';
import { ServerSecretsService } from '../servers/settings/server-secrets.service.js';
import { type SecretDto, type ServerRuntimeDto, SetSecretDto } from '../servers/settings/server-settings.dto.js';
import {
  type UpdatedServerDto,
  UpdateServerDto,
  UpdateServerRuntimeDto,
} from '../servers/settings/server-settings.dto.js';
import { ServerSettingsService } from '../servers/settings/server-settings.service.js';
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
   * Returns the tools, resources and prompts of its current release; null without one. A grant of some tools of a private server shows only
   * these tools.
   *
   * @throws ServerNotFoundError for a server that is hidden from the caller
   */
  abstract contract(caller: FacadeCaller, name: string): Promise<ServerOffers | null>;

  /** Returns the server at the address `/ui/s/{slug}`; null for none, and for one that is hidden from the caller. */
  abstract findBySlug(caller: Caller, slug: string): Promise<ServerRef | null>;

  /** Returns a page of what `GET /servers` finds. */
  abstract search(caller: Caller, query: ServerQueryDto): Promise<ServerListDto>;

  /** Returns true if the account of the caller can call a server, even while it is suspended. @throws ServerNotFoundError as {@link find} */
  abstract mayCall(caller: Caller, name: string): Promise<boolean>;

  /** Returns what `GET /servers/{qualifiedName}` returns. @throws ServerNotFoundError as {@link find} */
  abstract detail(caller: FacadeCaller, name: string): Promise<ServerDetailDto>;

  /**
   * Creates a server, or changes an existing one.
   *
   * @throws NamespaceNotFoundError, NotServerOwnerError, InvalidInputError, QuotaExceededError, OpenedByOwnersError
   */
  abstract create(caller: FacadeCaller, name: string, body?: CreateServerDto): Promise<ServerDto>;

  /**
   * Changes descriptions, `visibility` and the other members of `PATCH /servers/{qualifiedName}`. With `asSystem`, here and in
   * each method that changes something, the change is recorded as one of the owner.
   *
   * @throws ServerNotFoundError, NotServerOwnerError, InvalidInputError; SecretsNotConfirmedError, OpenedByOwnersError for a more
   * open visibility
   */
  abstract update(caller: FacadeCaller, name: string, body: UpdateServerDto): Promise<UpdatedServerDto>;

  /** Deletes a server with its releases and secrets. @throws ServerNotFoundError; GrantLevelError for a grantee */
  abstract delete(caller: FacadeCaller, name: string): Promise<DeletedServerDto>;

  /** Returns the names of its secrets. @throws ServerNotFoundError for a server that the caller cannot manage or read as a member */
  abstract secrets(caller: FacadeCaller, name: string): Promise<SecretDto[]>;

  /**
   * Creates or replaces a secret. Returns a `warning` for a server whose secrets serve every account.
   *
   * @throws ServerNotFoundError; InvalidInputError, also beyond 100 secrets
   */
  abstract setSecret(caller: FacadeCaller, name: string, secret: SetSecretDto): Promise<{ warning: string | null }>;

  /** Deletes a secret. @throws ServerNotFoundError; NotFoundError for a missing secret */
  abstract deleteSecret(caller: FacadeCaller, name: string, secretName: string): Promise<SuccessDto>;

  /** Returns its runtime settings. @throws ServerNotFoundError as {@link secrets} */
  abstract runtime(caller: FacadeCaller, name: string): Promise<ServerRuntimeDto>;

  /** Changes the runtime settings of a server, and restarts its programs. @throws ServerNotFoundError, InvalidInputError */
  abstract updateRuntime(caller: FacadeCaller, name: string, body: UpdateServerRuntimeDto): Promise<ServerRuntimeDto>;
}

const writableServer = { scope: 'servers:write', ...ownServerOrNone } as const;

@Injectable()
export class ServiceServers implements Servers {
  constructor(
    private readonly facadeTargets: FacadeTargets,
    private readonly accessService: AccessService,
    private readonly serverAccessService: ServerAccessService,
    private readonly serverSearchService: ServerSearchService,
    private readonly serversService: ServersService,
    private readonly serverReleasesService: ServerReleasesService,
    private readonly serverSecretsService: ServerSecretsService,
    private readonly serverSettingsService: ServerSettingsService,
  ) {}

  async find(caller: FacadeCaller, name: string): Promise<ServerRef> {
    return (await this.facadeTargets.server(caller, name, { scope: 'servers:read' })).server;
  }

  readonly findBySlug: Servers['findBySlug'] = async (caller, slug) => {
    await this.accessService.authorize(caller, { scope: 'servers:read' }, {});
    return this.serversService.findBySlug(slug, caller);
  };

  readonly search: Servers['search'] = async (caller, query) => {
    await this.accessService.authorize(caller, { scope: 'servers:read' }, {});
    return this.serverSearchService.list(query, caller);
  };

  readonly mayCall: Servers['mayCall'] = async (caller, name) =>
    this.serverAccessService.mayCallByAccount(caller, await this.find(caller, name));

  async contract(requester: FacadeCaller, name: string): Promise<ServerOffers | null> {
    const { server, caller } = await this.facadeTargets.server(requester, name, { scope: 'servers:read' });
    const offers = await this.serverReleasesService.offersOf(server.id);
    if (!offers || !caller || server.visibility !== 'private') return offers;
    await this.serversService.requireCall(caller, server);
    return withinTools(offers, this.serversService.grantedToolsOf(caller, server));
  }

  async detail(requester: FacadeCaller, name: string): Promise<ServerDetailDto> {
    const { actor } = await this.facadeTargets.server(requester, name, { scope: 'servers:read' });
    return this.serversService.detail(toQualifiedName(name), actor);
  }

  async create(requester: FacadeCaller, name: string, body: CreateServerDto = {}): Promise<ServerDto> {
    const { namespace, actor } = await this.facadeTargets.namespaceOf(requester, name);
    const checked = await checkedBody(CreateServerDto, body);
    return this.serversService.put(namespace, parseQualifiedName(name).name, checked, actor);
  }

  readonly update: Servers['update'] = async (caller, name, body) => {
    const { server, actor } = await this.facadeTargets.server(caller, name, { scope: 'servers:write', ...ownServer });
    return this.serverSettingsService.update(server, await checkedBody(UpdateServerDto, body), actor);
  };

  readonly delete: Servers['delete'] = async (caller, name) => {
    const { server, actor } = await this.facadeTargets.server(caller, name, { ...writableServer, may: 'administer' });
    return this.serversService.remove(actor, server);
  };

  readonly secrets: Servers['secrets'] = async (caller, name) =>
    this.serverSecretsService.list((await this.facadeTargets.server(caller, name, managedServer)).server);

  readonly setSecret: Servers['setSecret'] = async (caller, name, secret) => {
    const { server, actor } = await this.facadeTargets.server(caller, name, writableServer);
    await this.serverSecretsService.set(actor, server, await checkedBody(SetSecretDto, secret));
    return { warning: await this.serverSecretsService.publicNote(server) };
  };

  readonly deleteSecret: Servers['deleteSecret'] = async (caller, name, secretName) => {
    const { server, actor } = await this.facadeTargets.server(caller, name, writableServer);
    return this.serverSecretsService.remove(actor, server, secretName);
  };

  readonly runtime: Servers['runtime'] = async (caller, name) =>
    this.serverSettingsService.runtime((await this.facadeTargets.server(caller, name, managedServer)).server);

  readonly updateRuntime: Servers['updateRuntime'] = async (caller, name, body) => {
    const { server, actor } = await this.facadeTargets.server(caller, name, writableServer);
    return this.serverSettingsService.updateRuntime(actor, server, await checkedBody(UpdateServerRuntimeDto, body));
  };
}
