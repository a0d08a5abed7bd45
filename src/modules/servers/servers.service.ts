import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { isForeignKeyViolation } from '../../platform/database/postgres-errors.js';
import type { OwnedNamespace } from '../auth/access.types.js';
import { NamespaceNotFoundError } from '../namespaces/namespaces.errors.js';
import { requireServerName, type QualifiedName } from './qualified-name.js';
import type { CreateServerDto, DeletedServerDto, ServerDetailDto, ServerDto } from './server.dto.js';
import { Server } from './server.entity.js';
import { toServerDetailDto, toServerDto } from './server.mapper.js';
import { ServerNotFoundError } from './servers.errors.js';

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
    for (;;) {
      try {
        await this.servers.createQueryBuilder().insert().values(row).orIgnore().execute();
      } catch (error) {
        if (isForeignKeyViolation(error)) throw new NamespaceNotFoundError();
        throw error;
      }
      // None when it was deleted in between: then the name is free again.
      const server = await this.servers.findOneBy({ namespaceId: namespace.id, name });
      if (server) return toServerDto(namespace.name, server);
    }
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
