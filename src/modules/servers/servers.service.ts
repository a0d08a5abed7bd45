import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { generateTail } from '../../platform/http/generated-name.js';
import { isForeignKeyViolation } from '../../platform/database/postgres-errors.js';
import type { OwnedNamespace } from '../auth/access.types.js';
import { NamespaceNotFoundError } from '../namespaces/namespaces.errors.js';
import { requireServerName, type QualifiedName } from './qualified-name.js';
import type { CreateServerDto, DeletedServerDto, ServerDetailDto, ServerDto } from './server.dto.js';
import { Server } from './server.entity.js';
import { toServerDetailDto, toServerDto } from './server.mapper.js';
import type { RunnableServer, ServerRef } from './server.types.js';
import { ServerNotFoundError } from './servers.errors.js';

/** Leaves room for a suffix in the 83 characters of the longest slug. */
const SLUG_BASE_MAX = 78;

/** The registry's records. */
@Injectable()
export class ServersService {
  constructor(@InjectRepository(Server) private readonly servers: Repository<Server>) {}

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
    let slug = name === '' ? namespace.name : `${namespace.name}--${name}`;
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
      slug = `${slug.slice(0, SLUG_BASE_MAX)}-${generateTail(4)}`;
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

  /** The server behind a run endpoint; null when there is none. */
  async findRunnable(slug: string): Promise<RunnableServer | null> {
    const server = await this.servers
      .createQueryBuilder('server')
      .innerJoinAndSelect('server.namespace', 'namespace')
      .addSelect('server.snapshot')
      .where('server.slug = :slug', { slug })
      .getOne();
    if (!server) return null;
    const { id, namespaceId, name, snapshot } = server;
    return { id, namespaceId, namespace: server.namespace.name, name, slug, current: snapshot };
  }

  /** @throws ServerNotFoundError */
  async get(qualified: QualifiedName): Promise<ServerDetailDto> {
    const { namespace, name } = qualified;
    const server = await this.servers
      .createQueryBuilder('server')
      .innerJoin('server.namespace', 'namespace')
      .where('namespace.name = :namespace AND server.name = :name', { namespace, name })
      .getOne();
    if (!server) throw new ServerNotFoundError();
    return toServerDetailDto(qualified, server);
  }

  /**
   * Deletes a server for good, with everything attached to it.
   *
   * @throws ServerNotFoundError
   */
  async remove(namespace: OwnedNamespace, name: string): Promise<DeletedServerDto> {
    const { affected } = await this.servers.delete({ namespaceId: namespace.id, name });
    if (!affected) throw new ServerNotFoundError();
    return { success: true, namespace: namespace.name, server: name };
  }
}
