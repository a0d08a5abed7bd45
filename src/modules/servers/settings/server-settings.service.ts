/**
 * Changes of a server by its owner and by the operator (`verified`).
 *
 * Changes that affect calls are announced (`servers.changed`), so that caches drop the server and programs restart with
 * new egress rules. A transfer keeps releases, secrets, icon and the run endpoint, because connections refer to the id.
 * A rename gives the run endpoint another subdomain; the old one stops working and can be taken by others. A subdomain
 * that begins with another account's namespace (`acme--…`) is rejected as taken.
 */
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { transactionOf, type Actor } from '../../../platform/database/actor.js';
import { onViolation } from '../../../platform/database/postgres-errors.js';
import { AccessService } from '../../auth/access.service.js';
import type { Caller } from '../../auth/access.types.js';
import { NamespaceNotFoundError } from '../../namespaces/namespaces.errors.js';
import { TargetsService } from '../../targets/targets.service.js';
import { ServerIconsService } from '../icons/server-icons.service.js';
import { Server } from '../server.entity.js';
import { ServerUrlsService } from '../server-urls.service.js';
import { ServersService } from '../servers.service.js';
import { OpenedByOwnersError, ServerNotFoundError } from '../servers.errors.js';
import { parseUrl } from '../../../config/parse-url.js';
import { ForbiddenError, ConflictError, NotFoundError } from '../../../platform/errors/domain-error.js';
import { type ServerRef, formatQualifiedName } from '../server.types.js';
import { requireServerName } from '../server.validators.js';
import type {
  ServerDomainDto,
  ServerDomainListDto,
  ServerRuntimeDto,
  TransferredServerDto,
  TransferServerDto,
  UpdatedServerDto,
  UpdateServerDto,
  UpdateServerRuntimeDto,
} from './server-settings.dto.js';
import { ServerRuntime } from './server-settings.entity.js';

/** The one domain of every server; published clients look it up by this id. */
const MANAGED = 'managed';

@Injectable()
export class ServerSettingsService {
  constructor(
    @InjectRepository(Server) private readonly serverRepository: Repository<Server>,
    @InjectRepository(ServerRuntime) private readonly serverRuntimeRepository: Repository<ServerRuntime>,
    private readonly serversService: ServersService,
    private readonly targetsService: TargetsService,
    private readonly serverUrlsService: ServerUrlsService,
    private readonly serverIconsService: ServerIconsService,
    private readonly accessService: AccessService,
  ) {}

  /**
   * Changes a server; null clears a field. @throws ServerNotFoundError, SecretsNotConfirmedError, OpenedByOwnersError, and those of
   * `ServerIconsService.setUrl`
   */
  async update(server: ServerRef, body: UpdateServerDto, caller: Caller): Promise<UpdatedServerDto> {
    const { id, namespace, name } = server;
    const { visibility, confirmSecrets, ...rest } = body;
    const changed: Partial<Server> = rest;
    if (visibility !== undefined) await this.serversService.setVisibility(server, visibility, caller, confirmSecrets);
    if (body.repositoryUrl !== undefined) {
      // The first two segments of the path, in lower case, as hosts of repositories compare them; both null if it has fewer.
      const [, repoOwner, segment, ...further] =
        parseUrl(body.repositoryUrl ?? '')
          ?.pathname.toLowerCase()
          .split('/') ?? [];
      const repoName = segment?.replace(/\.git$/, '');
      const isNamed = Boolean(repoOwner && repoName) && further.length <= 20;
      Object.assign(changed, isNamed ? { repoOwner, repoName } : { repoOwner: null, repoName: null });
    }
    const changes = Object.entries(changed).filter(([, value]) => value !== undefined);
    if (body.iconUrl !== undefined) await this.serverIconsService.setUrl(id, body.iconUrl);
    if (changes.length > 0) {
      const { affected } = await transactionOf(this.serverRepository, caller, (tx) =>
        tx.update(Server, { id }, Object.fromEntries(changes)),
      );
      if (!affected) throw new ServerNotFoundError();
    }
    return { success: true, namespace, server: name };
  }

  async verify(actor: Actor, { id, namespace, name }: ServerRef, verified: boolean): Promise<UpdatedServerDto> {
    await transactionOf(this.serverRepository, actor, (tx) => tx.update(Server, { id }, { verified }));
    return { success: true, namespace, server: name };
  }

  async runtime({ id: serverId }: ServerRef): Promise<ServerRuntimeDto> {
    const row = await this.serverRuntimeRepository.findOneBy({ serverId });
    return { egressAllow: row?.egressAllow ?? null, logPayloads: row?.logPayloads ?? false };
  }

  /** Changes runtime settings, and restarts running programs. @throws ServerNotFoundError */
  async updateRuntime(actor: Actor, server: ServerRef, body: UpdateServerRuntimeDto): Promise<ServerRuntimeDto> {
    const { egressAllow, logPayloads } = body;
    if (egressAllow !== undefined || logPayloads !== undefined) {
      const row = { serverId: server.id, egressAllow, logPayloads };
      await transactionOf(this.serverRepository, actor, (tx) => tx.upsert(ServerRuntime, row, ['serverId'])).catch(
        onViolation({ foreignKey: () => new ServerNotFoundError() }),
      );
      this.serversService.announceChange(server);
    }
    return this.runtime(server);
  }

  /**
   * Keeps releases, secrets and icon. The run endpoint and connections stay valid, since they refer to the slug and the
   * id.
   *
   * @throws ServerNotFoundError, InvalidInputError, NamespaceNotFoundError; ForbiddenError for a target of another
   * account; OpenedByOwnersError if the server is not public, goes to another account, and the caller does not own it;
   * ConflictError when the name is taken
   */
  async transfer(
    server: ServerRef,
    caller: Caller,
    { targetNamespace: namespace, targetOrganizationId, targetSlug = server.name }: TransferServerDto,
  ): Promise<TransferredServerDto> {
    requireServerName(targetSlug);
    const target = await this.targetsService.findNamespace(namespace);
    if (!target) throw new NamespaceNotFoundError();
    const isOwn = this.accessService.isAllowed(caller, 'manage', { ownerId: target.ownerId, namespace });
    if (
      !isOwn ||
      !(targetOrganizationId === 'me' || this.accessService.owns(caller, 'administer', targetOrganizationId))
    ) {
      throw new ForbiddenError(
        'Forbidden: targetNamespace must belong to you, and targetOrganizationId must be your account',
      );
    }
    // eslint-disable-next-line no-restricted-syntax -- Another account, where other people can call the server.
    const isOpened = target.ownerId !== server.ownerId && server.visibility !== 'public';
    if (isOpened && !this.accessService.isAllowed(caller, 'own', server)) {
      throw new OpenedByOwnersError();
    }
    const qualifiedName = formatQualifiedName({ namespace, name: targetSlug });
    const message = `The server "${qualifiedName}" exists: choose another targetSlug or delete that one first`;
    const { id, namespaceId } = server;
    const { affected } = await transactionOf(this.serverRepository, caller, (tx) =>
      tx.update(Server, { id, namespaceId }, { namespaceId: target.id, name: targetSlug }),
    ).catch(onViolation({ unique: () => new ConflictError(message), foreignKey: () => new NamespaceNotFoundError() }));
    if (!affected) throw new ServerNotFoundError();
    this.serversService.announceChange(server);
    return { success: true, namespace, server: targetSlug, qualifiedName };
  }

  /** @throws ServerNotFoundError */
  async domains({ id }: ServerRef): Promise<ServerDomainListDto> {
    return { domains: [await this.domain(id)] };
  }

  /**
   * Renames a server. The old address stops working, and can be taken by others.
   *
   * @throws NotFoundError for an unknown domain; ConflictError when the subdomain is taken; ServerNotFoundError when
   * the server was deleted meanwhile
   */
  async rename(server: ServerRef, caller: Caller, domainId: string, subdomain: string): Promise<ServerDomainDto> {
    if (domainId !== MANAGED) throw new NotFoundError('Domain not found');
    if (server.slug === subdomain) return this.domain(server.id);
    const toConflict = () => new ConflictError(`The subdomain "${subdomain}" is taken: choose another one`);
    // A subdomain is not `acme` and does not begin with `acme--` for a namespace `acme` of another account.
    const parts = subdomain.split('--');
    const prefixes = parts.map((_, index) => parts.slice(0, index + 1).join('--'));
    const owners = await Promise.all(prefixes.map((namespace) => this.targetsService.findNamespace(namespace)));
    if (owners.some((owner) => owner !== null && !this.accessService.owns(caller, 'administer', owner.ownerId)))
      throw toConflict();
    const renamed = { slug: subdomain, slugChangedAt: new Date() };
    await transactionOf(this.serverRepository, caller, (tx) => tx.update(Server, { id: server.id }, renamed)).catch(
      onViolation({ unique: toConflict }),
    );
    this.serversService.announceChange(server);
    this.serversService.announceChange({ id: server.id, slug: subdomain });
    return this.domain(server.id);
  }

  private async domain(id: string): Promise<ServerDomainDto> {
    const server = await this.serverRepository.findOneBy({ id });
    if (!server) throw new ServerNotFoundError();
    return {
      id: MANAGED,
      type: MANAGED,
      hostname: this.serverUrlsService.runHost,
      subdomain: server.slug,
      url: this.serverUrlsService.run(server.slug),
      createdAt: server.createdAt.toISOString(),
      updatedAt: (server.slugChangedAt ?? server.createdAt).toISOString(),
    };
  }
}
