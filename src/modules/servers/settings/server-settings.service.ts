import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { isForeignKeyViolation, isUniqueViolation } from '../../../platform/database/postgres-errors.js';
import type { Caller, OwnedNamespace } from '../../auth/access.types.js';
import { NamespaceNotFoundError } from '../../namespaces/namespaces.errors.js';
import { NamespacesService } from '../../namespaces/namespaces.service.js';
import { formatQualifiedName, requireServerName, type QualifiedName } from '../qualified-name.js';
import { Server } from '../server.entity.js';
import { ServerUrlsService } from '../server-urls.service.js';
import { toDomainDto } from '../server.mapper.js';
import type {
  ServerDomainDto,
  ServerDomainListDto,
  TransferredServerDto,
  TransferServerDto,
  UpdatedServerDto,
  UpdateServerDto,
} from './server-settings.dto.js';
import { ServersService } from '../servers.service.js';
import {
  DomainNotFoundError,
  ServerNotFoundError,
  ServerTakenError,
  SubdomainTakenError,
  TransferTargetError,
} from '../servers.errors.js';
import { parseUrl } from '../../../config/parse-url.js';

/** The one domain every server has; published clients ask for it under this id. */
const MANAGED = 'managed';

/** Owner and name of a repository, in lower case, as its hosts compare them. */
interface RepositoryName {
  repoOwner: string | null;
  repoName: string | null;
}

/** Changes of servers by their owners and the operator. */
@Injectable()
export class ServerSettingsService {
  constructor(
    @InjectRepository(Server) private readonly rows: Repository<Server>,
    private readonly servers: ServersService,
    private readonly namespaces: NamespacesService,
    private readonly urls: ServerUrlsService,
  ) {}

  /** Changes the members in the body; null clears. @throws ServerNotFoundError */
  async update(namespace: OwnedNamespace, name: string, body: UpdateServerDto): Promise<UpdatedServerDto> {
    const { id } = await this.servers.findOwn(namespace, name);
    const { repositoryUrl } = body;
    const repository = repositoryUrl === undefined ? {} : repositoryNameOf(repositoryUrl);
    const changes = Object.entries({ ...body, ...repository }).filter(([, value]) => value !== undefined);
    if (changes.length > 0) {
      const { affected } = await this.rows.update({ id }, Object.fromEntries(changes));
      if (!affected) throw new ServerNotFoundError();
    }
    return { success: true, namespace: namespace.name, server: name };
  }

  /** Sets the operator's `verified` mark. @throws ServerNotFoundError */
  async verify(name: QualifiedName, verified: boolean): Promise<UpdatedServerDto> {
    const { id } = await this.servers.find(name);
    await this.rows.update({ id }, { verified });
    return { success: true, namespace: name.namespace, server: name.name };
  }

  /**
   * Moves a server to another namespace of the caller, with its releases, secrets and icon. Its run endpoint stays where
   * it is, and connections stay bound to it: they go by its id.
   *
   * @throws ServerNotFoundError, InvalidInputError, NamespaceNotFoundError, TransferTargetError, ServerTakenError
   */
  async transfer(
    from: OwnedNamespace,
    name: string,
    caller: Caller,
    { targetNamespace: namespace, targetOrganizationId, targetSlug = name }: TransferServerDto,
  ): Promise<TransferredServerDto> {
    const server = await this.servers.findOwn(from, name);
    requireServerName(targetSlug);
    const target = await this.namespaces.find(namespace);
    if (!target) throw new NamespaceNotFoundError();
    const isOwnAccount = targetOrganizationId === 'me' || targetOrganizationId === caller.accountId;
    if (!isOwnAccount || target.accountId !== caller.accountId) throw new TransferTargetError();
    const qualifiedName = formatQualifiedName({ namespace, name: targetSlug });
    try {
      const where = { id: server.id, namespaceId: server.namespaceId };
      const { affected } = await this.rows.update(where, { namespaceId: target.id, name: targetSlug });
      if (!affected) throw new ServerNotFoundError();
    } catch (error) {
      if (isUniqueViolation(error)) throw new ServerTakenError(qualifiedName);
      if (isForeignKeyViolation(error)) throw new NamespaceNotFoundError();
      throw error;
    }
    this.servers.announceChange(server);
    return { success: true, namespace, server: targetSlug, qualifiedName };
  }

  /** @throws ServerNotFoundError */
  async domains(namespace: OwnedNamespace, name: string): Promise<ServerDomainListDto> {
    const { id } = await this.servers.findOwn(namespace, name);
    return { domains: [await this.domain(id)] };
  }

  /**
   * Renames the run endpoint. The old address answers no more, and may be taken by others.
   *
   * @throws DomainNotFoundError, SubdomainTakenError, ServerNotFoundError when the server was deleted meanwhile
   */
  async rename(
    namespace: OwnedNamespace,
    name: string,
    caller: Caller,
    { domainId, subdomain }: { domainId: string; subdomain: string },
  ): Promise<ServerDomainDto> {
    const server = await this.servers.findOwn(namespace, name);
    if (domainId !== MANAGED) throw new DomainNotFoundError();
    if (server.slug === subdomain) return this.domain(server.id);
    if (await this.isForeignPrefix(subdomain, caller)) throw new SubdomainTakenError(subdomain);
    try {
      await this.rows.update({ id: server.id }, { slug: subdomain, slugChangedAt: new Date() });
    } catch (error) {
      if (isUniqueViolation(error)) throw new SubdomainTakenError(subdomain);
      throw error;
    }
    this.servers.announceChange(server);
    this.servers.announceChange({ id: server.id, slug: subdomain });
    return this.domain(server.id);
  }

  /** True if the subdomain is `acme` or begins with `acme--` for a namespace `acme` of another account. */
  private async isForeignPrefix(subdomain: string, { accountId }: Caller): Promise<boolean> {
    const parts = subdomain.split('--');
    const prefixes = parts.map((_, index) => parts.slice(0, index + 1).join('--'));
    const owners = await Promise.all(prefixes.map((namespace) => this.namespaces.find(namespace)));
    return owners.some((owner) => owner !== null && owner.accountId !== accountId);
  }

  private async domain(id: string): Promise<ServerDomainDto> {
    const server = await this.rows.findOneBy({ id });
    if (!server) throw new ServerNotFoundError();
    return toDomainDto(server, this.urls);
  }
}

/** Owner and name of a repository: the first two segments of its URL's path. Both null if it has fewer. */
function repositoryNameOf(url: string | null): RepositoryName {
  const [, owner, name, ...rest] = parseUrl(url ?? '')?.pathname.split('/') ?? [];
  const bare = name?.replace(/\.git$/, '');
  if (!owner || !bare || rest.length > 20) return { repoOwner: null, repoName: null };
  return { repoOwner: owner.toLowerCase(), repoName: bare.toLowerCase() };
}
