import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository, type EntityManager } from 'typeorm';
import type { Actor } from '../../platform/database/actor.js';
import { Hosting } from '../../hosting/hosting.js';
import type { SuccessDto } from '../../platform/http/success.dto.js';
import type { OwnedNamespace } from '../auth/access.types.js';
import type { NamespaceDeletion } from '../namespaces/namespaces.service.js';
import { CredentialsService } from '../oauth/credentials.service.js';
import { ConnectionHandles } from './core/connection-handles.js';
import { ConnectionReader } from './core/connection-reader.js';
import { Connection } from './core/connection.entity.js';
import { ConnectionsRepository } from './core/connection.repository.js';
import { ResourceNotFoundError } from './core/connections.errors.js';

@Injectable()
export class ConnectionDeletion implements NamespaceDeletion {
  constructor(
    @InjectRepository(Connection) private readonly connectionRepository: Repository<Connection>,
    private readonly connectionsRepository: ConnectionsRepository,
    private readonly connectionReader: ConnectionReader,
    private readonly connectionHandles: ConnectionHandles,
    private readonly credentialsService: CredentialsService,
    private readonly hosting: Hosting,
  ) {}

  /**
   * Deletes a connection, closes its upstream session (Spec 4.4) and revokes its tokens.
   *
   * @throws ResourceNotFoundError
   */
  async remove(actor: Actor, namespace: OwnedNamespace, connectionId: string): Promise<SuccessDto> {
    const { id } = await this.connectionReader.find(namespace, connectionId);
    // Before the row is deleted: its tokens are deleted with it, and could not be revoked afterwards.
    await this.connectionHandles.prepareEnd(id);
    await this.credentialsService.remove({ kind: 'connection', id });
    if (!(await this.delete(actor, id))) throw new ResourceNotFoundError();
    return { success: true };
  }

  /** @returns false if the connection does not exist */
  async delete(actor: Actor, id: string): Promise<boolean> {
    const deleted = await this.connectionsRepository.delete(actor, id);
    if (!deleted) return false;
    await this.connectionHandles.deleted(deleted);
    if (deleted.targetKind === 'source') await this.hosting.forget(id);
    return true;
  }

  endLogins(namespaceIds: string[], tx: EntityManager): Promise<void> {
    return this.connectionsRepository.endLogins(namespaceIds, tx);
  }

  async revokeTokens(namespaceIds: string[]): Promise<void> {
    for (const namespaceId of namespaceIds) {
      for (;;) {
        const ids = await this.connectionsRepository.idsWithTokens(namespaceId);
        for (const id of ids) await this.credentialsService.remove({ kind: 'connection', id });
        if (ids.length === 0) break;
      }
    }
  }

  /** @returns a function that revokes the tokens and stops the modules of the deleted connections */
  async prepareDeletion({ id: namespaceId }: OwnedNamespace): Promise<() => void> {
    const revoke = await this.credentialsService.prepareRevocation(
      'connection',
      await this.connectionsRepository.idsWithTokens(namespaceId),
    );
    const where = { namespaceId, targetKind: 'source' } as const;
    const modules = await this.connectionRepository.find({ where, select: { id: true } });
    return () => {
      revoke();
      for (const { id } of modules) void this.hosting.forget(id);
    };
  }
}
