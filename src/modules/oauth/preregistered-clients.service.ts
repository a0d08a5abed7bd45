import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Vault } from '../../platform/vault/vault.js';
import { CredentialRepository } from './credential.repository.js';
import { SetupPageError } from './credentials.errors.js';
import type { CredentialOwner, PreregisteredClient } from './credentials.types.js';
import { OAuthClient } from './oauth-client.entity.js';

/** Pre-registered OAuth clients, for authorization servers without dynamic registration. Each belongs to one owner. */
@Injectable()
export class PreregisteredClientsService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly repository: CredentialRepository,
    private readonly vault: Vault,
  ) {}

  /** The owner's client at an issuer, also a refused one; null without one. */
  find({ kind, id }: CredentialOwner, issuer: string, redirectUri: string): Promise<OAuthClient | null> {
    const where = { ownerKind: kind, ownerId: id, issuer, redirectUri };
    return this.dataSource.manager.findOne(OAuthClient, { where });
  }

  /**
   * Replaces the owner's client at an issuer, whose tokens are then no longer refreshed. Of other issuers only the client
   * in use stays, so that an owner has two at most.
   *
   * @throws SetupPageError if the owner was deleted
   */
  async store(owner: CredentialOwner, client: PreregisteredClient, redirectUri: string): Promise<void> {
    const { issuer, clientId, clientSecret } = client;
    const id = randomUUID();
    await this.dataSource.transaction(async (tx) => {
      if (!(await this.repository.lockOwner(owner, tx))) throw SetupPageError.unknownLink();
      await this.repository.deleteClientsOf(owner, issuer, tx);
      await tx.insert(OAuthClient, {
        id,
        issuer,
        redirectUri,
        kind: 'given',
        ownerKind: owner.kind,
        ownerId: owner.id,
        clientId,
        sealedSecret: clientSecret === null ? null : this.vault.seal(clientSecret, id),
      });
    });
  }

  /** Marks a client that its server refused; the setup page of its owner then asks for another one. */
  async refused(id: string): Promise<void> {
    const { manager } = this.dataSource;
    await manager.update(OAuthClient, { id, kind: 'given' }, { refusedAt: new Date() });
  }
}
