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

/** Leaves room for a suffix in the 83 characters of the longest slug. */
const SLUG_BASE_MAX = 78;

function withTail(slug: string): string {
  return `${slug.slice(0, SLUG_BASE_MAX)}-${generateTail(4)}`;
}

/** The registry's records, and what other modules do with them. */
@Injectable()
export class ServersService {
  private readonly deletionSteps: ((server: ServerRef) => Promise<void>)[] = [];

  constructor(
    @InjectRepository(Server) private readonly servers: Repository<Server>,
    private readonly uses: UsageCounter,
    private readonly pubSub: PubSub,
  ) {}

  /**
   * Creates a server. An existing one stays as it is, whatever the body says: PUT is idempotent (Spec 4.1).
   *
   * @param name empty for the namespace-only server
   * @throws InvalidInputError, NamespaceNotFoundError when the namespace went away meanwhile
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
    // `acme--pay` alone would be reached where "pay" of `acme` is: such a namespace never gets a slug without a tail.
    let slug = namespace.name.includes('--') ? withTail(plain) : plain;
    for (;;) {
      try {
        await this.servers
          .createQueryBuilder()
          .insert()
          .values({ ...row, slug })
          .orIgnore()
          .execute();
      } catch (error) {
        if (isForeignKeyViolation(error)) throw new NamespaceNotFoundError();
        throw error;
      }
      const server = await this.servers.findOneBy({ namespaceId: namespace.id, name });
      if (server) return toServerDto(namespace.name, server);
      // It was deleted in between, and its name is free again; or its slug is another server's.
      slug = withTail(plain);
    }
  }

  /** Which server is meant. @throws ServerNotFoundError */
  async find({ namespace, name }: QualifiedName): Promise<ServerRef> {
    const server = await this.servers
      .createQueryBuilder('server')
      .innerJoin('server.namespace', 'namespace')
      .select(['server.id', 'server.namespaceId', 'server.slug'])
      .where('namespace.name = :namespace AND server.name = :name', { namespace, name })
      .getOne();
    if (!server) throw new ServerNotFoundError();
    return { id: server.id, namespaceId: server.namespaceId, namespace, name, slug: server.slug };
  }

  /** A server of the caller's, by the namespace the guard let in. @throws ServerNotFoundError */
  async findOwn(namespace: OwnedNamespace, name: string): Promise<ServerRef> {
    const where = { namespaceId: namespace.id, name };
    const server = await this.servers.findOne({ where, select: { id: true, slug: true } });
    if (!server) throw new ServerNotFoundError();
    return { id: server.id, namespaceId: namespace.id, namespace: namespace.name, name, slug: server.slug };
  }

  /** What running a server takes, by the slug of its run endpoint or by its id; null when there is none. */
  async findRunnable(by: { slug: string } | { id: string }): Promise<RunnableServer | null> {
    // Only these members: the whole snapshot of a large server has megabytes.
    const [server] = await this.servers.query<RunnableServer[]>(
      `SELECT s.id, s.namespace_id AS "namespaceId", n.name AS namespace, s.name, s.slug,
              coalesce(r.log_payloads, false) AS "logPayloads",
              CASE WHEN s.snapshot IS NULL THEN NULL ELSE jsonb_build_object(
                'releaseId', s.snapshot -> 'releaseId', 'type', s.snapshot -> 'type',
                'upstreamUrl', s.snapshot -> 'upstreamUrl', 'hosted', s.snapshot -> 'hosted',
                'configSchema', s.snapshot -> 'configSchema') END AS current
         FROM servers s JOIN namespaces n ON n.id = s.namespace_id
         LEFT JOIN server_runtime r ON r.server_id = s.id WHERE ${'slug' in by ? 's.slug' : 's.id'} = $1`,
      ['slug' in by ? by.slug : by.id],
    );
    return server ?? null;
  }

  /** Counts connections made to a server and calls through it. Never waits: safe on the path of a call. */
  countUse(serverId: string, uses = 1): void {
    this.uses.count(serverId, uses);
  }

  /** Tells every process that a server's slug, secrets or runtime settings are others now; a new current release is told by who publishes. */
  announceChange({ id, slug }: ServerChange): void {
    this.pubSub.publish('servers.changed', { id, slug });
  }

  /** Adds a step that every deletion awaits while the rows still exist, such as the revocation of tokens. */
  beforeDeletion(step: (server: ServerRef) => Promise<void>): void {
    this.deletionSteps.push(step);
  }

  /**
   * Deletes a server for good. Releases, icon and secrets go with it by their foreign keys; work and sessions for it end
   * when its deletion is told.
   *
   * @throws ServerNotFoundError
   */
  async remove(namespace: OwnedNamespace, name: string): Promise<DeletedServerDto> {
    const server = await this.findOwn(namespace, name);
    for (const step of this.deletionSteps) await step(server);
    const { raw } = (await this.servers
      .createQueryBuilder()
      .delete()
      .where({ namespaceId: namespace.id, name })
      .returning(['id', 'slug'])
      .execute()) as { raw: ServerChange[] };
    const [row] = raw;
    if (!row) throw new ServerNotFoundError();
    this.pubSub.publish('servers.deleted', row);
    return { success: true, namespace: namespace.name, server: name };
  }
}
