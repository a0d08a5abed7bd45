import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Raw, Repository } from 'typeorm';
import { Env } from '../../config/env.js';
import { onViolation } from '../../platform/database/postgres-errors.js';
import { generateTail } from '../../platform/http/generated-name.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { AccountLimitsService } from '../auth/account-limits.service.js';
import type { Caller, OwnedNamespace } from '../auth/access.types.js';
import { NamespaceNotFoundError } from '../namespaces/namespaces.errors.js';
import { WriteBehind } from '../../platform/database/write-behind.js';
import type { CreateServerDto, DeletedServerDto, ServerDetailDto, ServerDto } from './server.dto.js';
import { Server } from './server.entity.js';
import { toServerDetailDto, toServerDto } from './server.mapper.js';
import type { QualifiedName, RunnableServer, ServerChange, ServerRef } from './server.types.js';
import { ServerNotFoundError } from './servers.errors.js';
import { ServersRepository } from './servers.repository.js';
import { ServerAccessService } from './server-access.service.js';
import { ServerCardsService } from './server-cards.service.js';
import { ServerUrlsService } from './server-urls.service.js';
import { requireServerName } from './server.validators.js';

/** Leaves room for a suffix in the 83 characters of the longest slug. */
const SLUG_BASE_MAX = 78;

const inAnyCase = (name: string) => Raw((column) => `lower(${column}) = lower(:name)`, { name });

function withTail(slug: string): string {
  return `${slug.slice(0, SLUG_BASE_MAX)}-${generateTail(4)}`;
}

/** Creates, finds and deletes the registry's servers. */
@Injectable()
export class ServersService implements OnApplicationShutdown {
  private readonly uses = new WriteBehind<string, number>('server uses', (counts) => this.rows.addUses(counts), {
    merge: (newer, older) => newer + older,
  });
  private readonly deletionSteps: ((server: ServerRef) => Promise<void>)[] = [];

  constructor(
    @InjectRepository(Server) private readonly servers: Repository<Server>,
    private readonly rows: ServersRepository,
    private readonly cards: ServerCardsService,
    private readonly urls: ServerUrlsService,
    private readonly pubSub: PubSub,
    private readonly limits: AccountLimitsService,
    private readonly access: ServerAccessService,
    private readonly env: Env,
  ) {}

  /**
   * Creates a server. An existing one of this name, in any case, stays as it is, whatever the body says: PUT is idempotent
   * (Spec 4.1).
   *
   * @param name empty for the namespace-only server
   * @throws InvalidInputError, QuotaExceededError, NamespaceNotFoundError when the namespace was deleted meanwhile
   */
  async create(namespace: OwnedNamespace, name: string, body: CreateServerDto): Promise<ServerDto> {
    requireServerName(name);
    const row = {
      namespaceId: namespace.id,
      name,
      displayName: body.displayName ?? (name || namespace.name),
      description: body.description ?? '',
      visibility: body.visibility ?? this.env.defaultVisibility,
    };
    const plain = name === '' ? namespace.name : `${namespace.name}--${name}`;
    // The slug of the namespace `acme--pay` would equal that of `acme/pay`, so such a namespace always gets a tail.
    let slug = namespace.name.includes('--') ? withTail(plain) : plain;
    const namespaceId = namespace.id;
    for (;;) {
      const server = await this.servers.findOneBy({ namespaceId, name: inAnyCase(name) });
      if (server) return toServerDto(namespace.name, server);
      const insert = () => this.rows.insertIfFree({ ...row, slug });
      await this.limits
        .within({ namespaceId }, { servers: 1, serversPerNamespace: 1 }, insert)
        .catch(onViolation({ foreignKey: () => new NamespaceNotFoundError() }));
      const created = await this.servers.findOneBy({ namespaceId, name: inAnyCase(name) });
      if (created) return toServerDto(namespace.name, created);
      // Another server has the slug, or this one was deleted in between.
      slug = withTail(plain);
    }
  }

  /**
   * Finds a server by its qualified name, in any case.
   *
   * @param caller null for a signed link, which opens also what is private
   * @throws ServerNotFoundError, also for a private server that the caller may not find; KeyScopeError
   */
  async find({ namespace, name }: QualifiedName, caller: Caller | null): Promise<ServerRef> {
    const row = await this.rows.find({ namespace, name }, caller && caller.accountId);
    if (caller === null) {
      if (!row) throw new ServerNotFoundError();
      return row;
    }
    if (row && (await this.access.may(caller, 'discover', row))) return row;
    throw await this.access.missing({ namespace, name }, caller);
  }

  /** Finds a server by its slug, in any case; null when there is none that the caller may call. */
  async findBySlug(slug: string, caller: Caller): Promise<ServerRef | null> {
    const row = await this.rows.find({ slug }, caller.accountId);
    return row && (await this.access.may(caller, 'call', row)) ? row : null;
  }

  /** Reads the public record of a server, listed or not. @throws ServerNotFoundError */
  async detail(name: QualifiedName, caller: Caller): Promise<ServerDetailDto> {
    const row = await this.rows.findDetail(name, caller.accountId);
    if (!row || !(await this.access.may(caller, 'discover', row))) throw await this.access.missing(name, caller);
    const detail = toServerDetailDto(row, this.urls);
    return this.cards.isEmpty ? detail : Object.assign(detail, (await this.cards.read([row.id]))(row.id));
  }

  /** Reads what calls to a server need, by the slug of its run endpoint or its id; null when there is none. */
  findRunnable(by: { slug: string } | { id: string }): Promise<RunnableServer | null> {
    return this.rows.findRunnable(by);
  }

  /** The title, description and icon that people know a server by; empty when there is none. The icon needs no key. */
  async presentation(id: string): Promise<{ title?: string; description?: string; iconUrl?: string }> {
    const row = await this.rows.findPresentation(id);
    if (!row) return {};
    const { displayName: title, description, hasIcon } = row;
    return { title, description, ...(hasIcon && { iconUrl: this.urls.uploadedIcon(row) }) };
  }

  /** Counts connections to a server and calls through it, in memory at first: cheap enough for every call. */
  countUse(serverId: string, uses = 1): void {
    this.uses.set(serverId, uses);
  }

  /** Publishes that a server's slug, secrets or runtime settings changed. New current releases have a topic of their own. */
  announceChange({ id, slug }: ServerChange): void {
    this.pubSub.publish('servers.changed', { id, slug });
  }

  /** Adds a step that every deletion awaits while the rows still exist, such as the revocation of tokens. */
  beforeDeletion(step: (server: ServerRef) => Promise<void>): void {
    this.deletionSteps.push(step);
  }

  /**
   * Deletes a server. Foreign keys delete its releases, icon and secrets; the topic `servers.deleted` ends work and
   * sessions for it.
   *
   * @throws ServerNotFoundError
   */
  async remove(server: ServerRef): Promise<DeletedServerDto> {
    for (const step of this.deletionSteps) await step(server);
    const { affected } = await this.servers.delete({ id: server.id, namespaceId: server.namespaceId });
    if (!affected) throw new ServerNotFoundError();
    this.pubSub.publish('servers.deleted', { id: server.id, slug: server.slug });
    return { success: true, namespace: server.namespace, server: server.name };
  }

  async onApplicationShutdown(): Promise<void> {
    await this.uses.onApplicationShutdown();
  }
}
