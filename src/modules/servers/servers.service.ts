import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { isForeignKeyViolation } from '../../platform/database/postgres-errors.js';
import { generateTail } from '../../platform/http/generated-name.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import type { OwnedNamespace } from '../auth/access.types.js';
import { NamespaceNotFoundError } from '../namespaces/namespaces.errors.js';
import { requireServerName, type QualifiedName } from './qualified-name.js';
import type { CreateServerDto, DeletedServerDto, ServerDto } from './server.dto.js';
import { Server } from './server.entity.js';
import { toServerDto } from './server.mapper.js';
import { UsageCounter } from './usage-counter.js';
import type { RunnableServer, ServerChange, ServerRef } from './server.types.js';
import { ServerNotFoundError } from './servers.errors.js';
import { ServersRepository } from './servers.repository.js';

/** Leaves room for a suffix in the 83 characters of the longest slug. */
const SLUG_BASE_MAX = 78;

function withTail(slug: string): string {
  return `${slug.slice(0, SLUG_BASE_MAX)}-${generateTail(4)}`;
}

/** Creates, finds and deletes the registry's servers. */
@Injectable()
export class ServersService {
  private readonly deletionSteps: ((server: ServerRef) => Promise<void>)[] = [];

  constructor(
    @InjectRepository(Server) private readonly servers: Repository<Server>,
    private readonly rows: ServersRepository,
    private readonly uses: UsageCounter,
    private readonly pubSub: PubSub,
  ) {}

  /**
   * Creates a server. An existing one stays as it is, whatever the body says: PUT is idempotent (Spec 4.1).
   *
   * @param name empty for the namespace-only server
   * @throws InvalidInputError, NamespaceNotFoundError when the namespace was deleted meanwhile
   */
  async create(namespace: OwnedNamespace, name: string, body: CreateServerDto): Promise<ServerDto> {
    requireServerName(name);
    const row = {
      namespaceId: namespace.id,
      name,
      displayName: body.displayName ?? (name || namespace.name),
      description: body.description ?? '',
    };
    const plain = name === '' ? namespace.name : `${namespace.name}--${name}`;
    // The slug of the namespace `acme--pay` would equal that of `acme/pay`, so such a namespace always gets a tail.
    let slug = namespace.name.includes('--') ? withTail(plain) : plain;
    for (;;) {
      try {
        await this.rows.insertIfFree({ ...row, slug });
      } catch (error) {
        if (isForeignKeyViolation(error)) throw new NamespaceNotFoundError();
        throw error;
      }
      const server = await this.servers.findOneBy({ namespaceId: namespace.id, name });
      if (server) return toServerDto(namespace.name, server);
      // Another server has the slug, or this one was deleted in between.
      slug = withTail(plain);
    }
  }

  /** Finds a server by its qualified name. @throws ServerNotFoundError */
  async find({ namespace, name }: QualifiedName): Promise<ServerRef> {
    const server = await this.rows.find({ namespace, name });
    if (!server) throw new ServerNotFoundError();
    return { id: server.id, namespaceId: server.namespaceId, namespace, name, slug: server.slug };
  }

  /** Finds a server in a namespace of the caller. @throws ServerNotFoundError */
  async findOwn(namespace: OwnedNamespace, name: string): Promise<ServerRef> {
    const where = { namespaceId: namespace.id, name };
    const server = await this.servers.findOne({ where, select: { id: true, slug: true } });
    if (!server) throw new ServerNotFoundError();
    return { id: server.id, namespaceId: namespace.id, namespace: namespace.name, name, slug: server.slug };
  }

  /** Reads what calls to a server need, by the slug of its run endpoint or its id; null when there is none. */
  findRunnable(by: { slug: string } | { id: string }): Promise<RunnableServer | null> {
    return this.rows.findRunnable(by);
  }

  /** Counts connections to a server and calls through it, in memory at first: cheap enough for every call. */
  countUse(serverId: string, uses = 1): void {
    this.uses.count(serverId, uses);
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
  async remove(namespace: OwnedNamespace, name: string): Promise<DeletedServerDto> {
    const server = await this.findOwn(namespace, name);
    for (const step of this.deletionSteps) await step(server);
    const row = await this.rows.remove(namespace.id, name);
    if (!row) throw new ServerNotFoundError();
    this.pubSub.publish('servers.deleted', row);
    return { success: true, namespace: namespace.name, server: name };
  }
}
