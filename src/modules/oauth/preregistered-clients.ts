import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Vault } from '../../platform/vault/vault.js';
import { SetupPageError } from './credentials.errors.js';
import type { CredentialOwner, PreregisteredClient } from './credentials.types.js';
import { OAuthClient } from './oauth-client.entity.js';

const tableOf = { server: 'servers', connection: 'connections' } as const satisfies Record<
  CredentialOwner['kind'],
  string
>;

/** Clients that people got by hand at authorization servers that register nobody. Each is its owner's alone. */
@Injectable()
export class PreregisteredClients {
  constructor(
    private readonly dataSource: DataSource,
    private readonly vault: Vault,
  ) {}

  /** The owner's client at an issuer, also when it was refused; null when none was given. */
  find({ kind, id }: CredentialOwner, issuer: string, redirectUri: string): Promise<OAuthClient | null> {
    const where = { ownerKind: kind, ownerId: id, issuer, redirectUri };
    return this.dataSource.manager.findOne(OAuthClient, { where });
  }

  /**
   * Stores a client in place of the one the owner had at that issuer, whose tokens are then no longer renewed. Of others
   * only the one that is in use stays, so that an owner has two at most.
   *
   * @throws SetupPageError when the owner is gone
   */
  async give(owner: CredentialOwner, client: PreregisteredClient, redirectUri: string): Promise<void> {
    const { issuer, clientId, clientSecret } = client;
    const id = randomUUID();
    await this.dataSource.transaction(async (tx) => {
      // Held until the client is stored, so that the trigger that takes it along sees it, and no second one comes between.
      // Rows of other modules, by name.
      const held = `SELECT 1 FROM ${tableOf[owner.kind]} WHERE id = $1 FOR NO KEY UPDATE`;
      const [still] = await tx.query<object[]>(held, [owner.id]);
      if (!still) throw SetupPageError.unknownLink();
      await tx.query(
        `DELETE FROM oauth_clients c WHERE owner_kind = $1 AND owner_id = $2
            AND (issuer = $3 OR NOT EXISTS (SELECT 1 FROM upstream_credentials u WHERE u.client_row_id = c.id))`,
        [owner.kind, owner.id, issuer],
      );
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

  /** Its server refused it: it is kept, and the page of its owner asks for another one. */
  async refused(id: string): Promise<void> {
    const { manager } = this.dataSource;
    await manager.update(OAuthClient, { id, kind: 'given' }, { refusedAt: new Date() });
  }
}
