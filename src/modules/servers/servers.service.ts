import { EventEmitter } from 'node:events';
import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { InjectRepository } from '@nestjs/typeorm';
import { Raw, Repository } from 'typeorm';
import { transactionOf, type Actor } from '../../platform/database/actor.js';
import { Env } from '../../config/env.js';
import { onViolation } from '../../platform/database/postgres-errors.js';
import { generateTail } from '../../platform/http/generated-name.js';
import { partOf } from '../../platform/parts.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { AccountLimitsService } from '../auth/account-limits.service.js';
import type { Caller, OwnedNamespace } from '../auth/access.types.js';
import type { Visibility } from '../targets/target.types.js';
import { ToolsOnlyError } from '../auth/auth.errors.js';
import { toSuspension } from '../auth/suspension.types.js';
import type { SuccessDto } from '../../platform/http/success.dto.js';
import { NamespaceNotFoundError } from '../namespaces/namespaces.errors.js';
import { WriteBehind } from '../../platform/database/write-behind.js';
import type { CreateServerDto, DeletedServerDto, ServerDetailDto, ServerDto } from './server.dto.js';
import { Server } from './server.entity.js';
import { toServerDetailDto, toServerDto } from './server.mapper.js';
import {
  formatQualifiedName,
  type QualifiedName,
  type RunnableServer,
  type ServerChange,
  type ServerRef,
} from './server.types.js';
import { AccessRequiredError, NotGrantableError, ServerNotFoundError } from './servers.errors.js';
import { ServersRepository } from './servers.repository.js';
import { ServerAccessService } from './server-access.service.js';
import { ServerCardsService } from './server-cards.service.js';
import { ServerUrlsService } from './server-urls.service.js';
import { requireServerName } from './server.validators.js';

/** Maximum length of a slug without its suffix; the longest slug has 83 characters. */
const SLUG_BASE_MAX = 78;

const inAnyCase = (name: string) => Raw((column) => `lower(${column}) = lower(:name)`, { name });

function withTail(slug: string): string {
  return `${slug.slice(0, SLUG_BASE_MAX)}-${generateTail(4)}`;
}

export abstract class ServerDeletion {
  /** Runs while the rows of the server exist. */
  abstract prepareDeletion(server: ServerRef): Promise<void>;
}

@Injectable()
export class ServersService implements OnModuleInit, OnApplicationShutdown {
  private readonly uses = new WriteBehind<string, number>(
    'server uses',
    (counts) => this.serversRepository.addUses(counts),
    { merge: (newer, older) => newer + older },
  );
  /** Servers that this process deleted, by id: emitted before the response, and so before the topic arrives. */
  readonly events = new EventEmitter<{ deleted: [id: string] }>();
  private deletion!: ServerDeletion;

  constructor(
    @InjectRepository(Server) private readonly serverRepository: Repository<Server>,
    private readonly serversRepository: ServersRepository,
    private readonly serverCardsService: ServerCardsService,
    private readonly serverUrlsService: ServerUrlsService,
    private readonly pubSub: PubSub,
    private readonly accountLimitsService: AccountLimitsService,
    private readonly serverAccessService: ServerAccessService,
    private readonly env: Env,
    private readonly moduleRef: ModuleRef,
  ) {}

  onModuleInit(): void {
    this.deletion = partOf(this.moduleRef, ServerDeletion);
  }

  /**
   * Creates or changes a server. Absent and null fields of the body stay unchanged (Spec 4.1). A new server is `restricted` where the
   * default is public and the caller cannot open it.
   *
   * @param name empty for the namespace-only server; found in any case
   * @throws InvalidInputError, QuotaExceededError, OpenedByOwnersError, NamespaceNotFoundError when the namespace was
   * deleted meanwhile
   */
  async put(namespace: OwnedNamespace, name: string, body: CreateServerDto, caller: Caller): Promise<ServerDto> {
    requireServerName(name);
    const namespaceId = namespace.id;
    const { displayName, description, visibility } = body;
    const fields = Object.fromEntries(
      Object.entries({ displayName, description }).filter(([, value]) => value != null),
    ) as Pick<CreateServerDto, 'displayName' | 'description'>;
    const row = { namespaceId, name, displayName: name || namespace.name, description: '', ...fields };
    const plain = name === '' ? namespace.name : `${namespace.name}--${name}`;
    // The slug of the namespace `acme--pay` would equal that of `acme/pay`, so such a namespace always gets a suffix.
    let slug = namespace.name.includes('--') ? withTail(plain) : plain;
    let isNew = false;
    for (;;) {
      const server = await this.serverRepository.findOneBy({ namespaceId, name: inAnyCase(name) });
      if (server && !isNew && visibility) await this.setVisibility(server, visibility, caller);
      if (server && !isNew && Object.keys(fields).length > 0) {
        await transactionOf(this.serverRepository, caller, (tx) => tx.update(Server, { id: server.id }, fields));
      }
      if (server) return toServerDto(namespace.name, { ...server, ...fields });
      const firstVisibility = await this.firstVisibility(namespace, visibility, caller);
      const insert = () => this.serversRepository.insertIfFree(caller, { ...row, slug, visibility: firstVisibility });
      isNew = await this.accountLimitsService
        .createWithinQuota({ namespaceId }, { servers: 1, serversPerNamespace: 1 }, insert)
        .catch(onViolation({ foreignKey: () => new NamespaceNotFoundError() }));
      // Another server has the slug, unless this one was created, by this request or by another.
      slug = withTail(plain);
    }
  }

  /**
   * Finds a server by its name in any case.
   *
   * @param caller null for a signed link, which opens private servers as well
   * @throws ServerNotFoundError, including for a private server that the caller cannot find; KeyScopeError
   */
  async find({ namespace, name }: QualifiedName, caller: Caller | null): Promise<ServerRef> {
    const row = await this.serversRepository.find({ namespace, name }, caller && caller.accountId);
    if (caller === null) {
      if (!row) throw new ServerNotFoundError();
      return row;
    }
    if (row && (await this.serverAccessService.isAllowed(caller, 'discover', row))) return row;
    throw await this.serverAccessService.missing({ namespace, name }, caller);
  }

  /** Finds a server by its slug in any case; null if the caller cannot find it. */
  async findBySlug(slug: string, caller: Caller): Promise<ServerRef | null> {
    const row = await this.serversRepository.find({ slug }, caller.accountId);
    if (!row) await this.serverAccessService.spendLookUp(caller);
    return row && (await this.serverAccessService.isAllowed(caller, 'discover', row)) ? row : null;
  }

  /** @throws AccessRequiredError when the caller's account cannot call a server that it can find */
  async requireCall(caller: Caller, server: ServerRef): Promise<void> {
    if (!(await this.serverAccessService.mayCallByAccount(caller, server)))
      throw new AccessRequiredError(formatQualifiedName(server));
  }

  /** Requires a caller that can call all tools. @throws AccessRequiredError; ToolsOnlyError for a grant of tools */
  async requireWhole(caller: Caller, server: ServerRef): Promise<void> {
    await this.requireCall(caller, server);
    const tools = this.serverAccessService.grantedToolsOf(caller, server);
    if (tools) throw new ToolsOnlyError(tools);
  }

  /**
   * Returns the only tools of a server that a connection of this account can call; null for all. Valid after {@link
   * requireCall}.
   */
  grantedToolsOf(caller: Caller, server: ServerRef): readonly string[] | null {
    return this.serverAccessService.grantedToolsOf(caller, server);
  }

  /**
   * Requires a caller that can call everything that a connection of `owner` can.
   *
   * @throws AccessRequiredError if one of them cannot call the server, or the caller can call fewer tools
   */
  async requireCallFor(owner: Caller, caller: Caller, server: ServerRef): Promise<void> {
    await this.requireCall(owner, server);
    await this.requireCall(caller, server);
    const tools = this.serverAccessService.grantedToolsOf(caller, server);
    if (!tools) return;
    const ofOwner = this.serverAccessService.grantedToolsOf(owner, server);
    if (!ofOwner?.every((tool) => tools.includes(tool))) throw new AccessRequiredError(formatQualifiedName(server));
  }

  /**
   * Rejects a connection in this namespace that would open the server to grantees of the namespace, unless the caller can grant
   * the server.
   *
   * @throws ForbiddenError
   */
  async requireUnshared(server: ServerRef, namespaceId: string, caller: Caller): Promise<void> {
    if (server.visibility === 'public' || !(await this.serversRepository.isSharedBy(server.id, namespaceId))) return;
    if (!this.serverAccessService.mayGrant(caller, server)) throw new NotGrantableError(formatQualifiedName(server));
  }

  /**
   * @param confirmsSecrets that every caller uses the server's secrets
   * @throws SecretsNotConfirmedError, ServerNotFoundError; OpenedByOwnersError and KeyScopeError for a higher
   * visibility
   */
  async setVisibility(
    server: ServerChange,
    visibility: Visibility,
    caller: Caller,
    confirmsSecrets?: boolean,
  ): Promise<void> {
    const requireOpener = this.serverAccessService.requireOpener.bind(this.serverAccessService, caller);
    await transactionOf(this.serverRepository, caller, (tx) =>
      this.serversRepository.setVisibility(tx, server.id, visibility, requireOpener, confirmsSecrets),
    );
    this.announceChange(server);
  }

  /** Returns a server, even if it is not listed. @throws ServerNotFoundError */
  async detail(name: QualifiedName, caller: Caller): Promise<ServerDetailDto> {
    const row = await this.serversRepository.findDetail(name, caller.accountId);
    if (!row || !(await this.serverAccessService.isAllowed(caller, 'discover', row)))
      throw await this.serverAccessService.missing(name, caller);
    const mayCall = await this.serverAccessService.mayCallByAccount(caller, row);
    const detail = toServerDetailDto(
      row,
      this.serverUrlsService,
      mayCall,
      mayCall ? this.serverAccessService.grantedToolsOf(caller, row) : null,
    );
    return this.serverCardsService.isEmpty
      ? detail
      : Object.assign(detail, (await this.serverCardsService.read([row.id]))(row.id));
  }

  /** Finds a server by the slug of its run endpoint, or by id. */
  findRunnable(by: { slug: string } | { id: string }): Promise<RunnableServer | null> {
    return this.serversRepository.findRunnable(by);
  }

  /** Returns names of a server and an icon that needs no key; an empty object if the server does not exist. */
  async presentation(id: string): Promise<{ title?: string; description?: string; iconUrl?: string }> {
    const row = await this.serversRepository.findPresentation(id);
    if (!row) return {};
    const { displayName: title, description, hasIcon } = row;
    return { title, description, ...(hasIcon && { iconUrl: this.serverUrlsService.uploadedIcon(row) }) };
  }

  /** Counts in memory first, which is cheap enough for every call. */
  countUse(serverId: string, uses = 1): void {
    this.uses.set(serverId, uses);
  }

  /** Announces that the slug, secrets or runtime settings changed. New current releases have a separate topic. */
  announceChange({ id, slug }: ServerChange): void {
    this.pubSub.announce('servers.changed', { id, slug });
  }

  /** Suspends a server, or reinstates it if the reason is null. Takes effect within 5 s in every process. @throws ServerNotFoundError */
  async suspend(name: QualifiedName, caller: Caller, reason: string | null): Promise<SuccessDto> {
    const changed = await this.serversRepository.suspend(caller, name, toSuspension(reason, caller));
    if (!changed) throw new ServerNotFoundError();
    this.announceChange(changed);
    return { success: true };
  }

  /**
   * Deletes a server. Foreign keys delete its releases, icon and secrets; the topic `servers.deleted` stops its programs and closes its
   * sessions.
   *
   * @throws ServerNotFoundError
   */
  async remove(actor: Actor, server: ServerRef): Promise<DeletedServerDto> {
    await this.deletion.prepareDeletion(server);
    const { affected } = await transactionOf(this.serverRepository, actor, (tx) =>
      tx.delete(Server, { id: server.id, namespaceId: server.namespaceId }),
    );
    if (!affected) throw new ServerNotFoundError();
    this.events.emit('deleted', server.id);
    this.pubSub.announce('servers.deleted', { id: server.id, slug: server.slug });
    return { success: true, namespace: server.namespace, server: server.name };
  }

  /** @throws OpenedByOwnersError, NamespaceNotFoundError */
  private async firstVisibility(
    { id, name: namespace }: OwnedNamespace,
    requested: Visibility | undefined,
    caller: Caller,
  ): Promise<Visibility> {
    const visibility = requested ?? this.env.defaultVisibility;
    if (visibility !== 'public') return visibility;
    const target = { ownerId: await this.serversRepository.ownerOf(id), namespace };
    if (requested) this.serverAccessService.requireOpener(caller, target);
    return this.serverAccessService.mayGrant(caller, target) ? 'public' : 'restricted';
  }

  async onApplicationShutdown(): Promise<void> {
    await this.uses.onApplicationShutdown();
  }
}
