import { randomUUID } from 'node:crypto';
import type { FetchLike } from '@modelcontextprotocol/client';
import { Injectable } from '@nestjs/common';
import { DataSource, In, IsNull, MoreThan, type EntityManager } from 'typeorm';
import { Env } from '../../config/env.js';
import { OAuthClientNeededError } from '../../mcp/oauth/oauth-errors.js';
import { clientMetadata, registerAt, type OAuthClientIdentity } from '../../mcp/oauth/client.js';
import type { AuthorizationServer } from '../../mcp/oauth/discovery.js';
import { Vault } from '../../platform/vault/vault.js';
import type { CredentialOwner } from './credentials.types.js';
import { PreregisteredClients } from './preregistered-clients.js';
import { OAuthClient } from './oauth-client.entity.js';

/** A client whose secret ends this soon is not used for a new authorization. */
const SECRET_LEFT_MS_MIN = 60 * 60_000;

/**
 * Us at each authorization server: as the client that was given for this server or connection, as the URL of our metadata
 * document where it reads such, registered otherwise.
 */
@Injectable()
export class OAuthClients {
  constructor(
    private readonly dataSource: DataSource,
    private readonly vault: Vault,
    private readonly given: PreregisteredClients,
    private readonly env: Env,
  ) {}

  /** Where authorization servers send people back to. */
  get redirectUri(): string {
    return `${this.env.baseUrl}/oauth/callback`;
  }

  /** The URL of our client id metadata document; null while we are not reached by https, which it requires. */
  get documentUrl(): string | null {
    const { baseUrl } = this.env;
    return baseUrl.startsWith('https:') ? `${baseUrl}/oauth/client.json` : null;
  }

  /** Our client id metadata document; null while there is none. */
  document(): object | null {
    if (this.documentUrl === null) return null;
    const metadata = clientMetadata(this.redirectUri, 'none');
    return { client_id: this.documentUrl, client_uri: this.env.baseUrl, ...metadata };
  }

  /** Those of some issuers that know us, as all owners' client or as this one's. */
  async knownAmong(issuers: readonly string[], { kind, id }: CredentialOwner): Promise<Set<string>> {
    const known = { issuer: In([...issuers]), redirectUri: this.redirectUri };
    const where = [
      { ...known, ownerId: IsNull() },
      { ...known, ownerKind: kind, ownerId: id },
    ];
    const rows = await this.dataSource.manager.find(OAuthClient, { where, select: { issuer: true } });
    return new Set(rows.map(({ issuer }) => issuer));
  }

  /**
   * The client for a new authorization, registered if there is none. Two processes that need one at once register two, and
   * both use the one that is stored first.
   *
   * @throws OAuthClientNeededError when somebody must give one, OAuthSetupError when we cannot be registered now
   */
  async obtain(fetch: FetchLike, server: AuthorizationServer, owner: CredentialOwner): Promise<OAuthClient> {
    const given = await this.given.find(owner, server.issuer, this.redirectUri);
    if (given?.refusedAt) {
      throw new OAuthClientNeededError(server.issuer, `${server.issuer} does not accept the client that was given.`);
    }
    if (given) return given;
    const known = await this.find(server.issuer);
    if (known) return known;
    if (server.readsClientDocuments && this.documentUrl !== null) {
      const document = { clientId: this.documentUrl, clientSecret: null, authMethod: 'none', secretExpiresAt: null };
      return this.store(server.issuer, 'document', document);
    }
    return this.store(server.issuer, 'registered', await registerAt(fetch, server, this.redirectUri));
  }

  /** False when it is certain, without asking, that somebody must give a client. */
  async isObtainable(server: AuthorizationServer): Promise<boolean> {
    if (server.adapter !== undefined || server.registrationEndpoint !== null) return true;
    if (server.readsClientDocuments && this.documentUrl !== null) return true;
    return (await this.find(server.issuer)) !== null;
  }

  /** The client with its secret. */
  toClient(row: OAuthClient): OAuthClientIdentity {
    const { id, clientId, sealedSecret, authMethod, secretExpiresAt } = row;
    const clientSecret = sealedSecret === null ? null : this.vault.open(sealedSecret, id);
    return { clientId, clientSecret, authMethod, secretExpiresAt };
  }

  /**
   * Its server does not know a client: a registered one is forgotten, so that the next authorization registers anew. One that
   * was given is kept and marked, since only a person can give another.
   */
  async refused(id: string): Promise<void> {
    await this.dataSource.getRepository(OAuthClient).delete({ id, kind: 'registered' });
    await this.given.refused(id);
  }

  private find(issuer: string, tx: EntityManager = this.dataSource.manager): Promise<OAuthClient | null> {
    const where = { issuer, redirectUri: this.redirectUri, ownerId: IsNull() };
    const from = new Date(Date.now() + SECRET_LEFT_MS_MIN);
    return tx.findOne(OAuthClient, {
      where: [
        { ...where, secretExpiresAt: IsNull() },
        { ...where, secretExpiresAt: MoreThan(from) },
      ],
    });
  }

  private async store(
    issuer: string,
    kind: 'document' | 'registered',
    client: OAuthClientIdentity,
  ): Promise<OAuthClient> {
    const id = randomUUID();
    return this.dataSource.transaction(async (tx) => {
      await tx.query(
        `DELETE FROM oauth_clients
          WHERE issuer = $1 AND redirect_uri = $2 AND owner_id IS NULL AND secret_expires_at <= $3`,
        [issuer, this.redirectUri, new Date(Date.now() + SECRET_LEFT_MS_MIN)],
      );
      await tx
        .createQueryBuilder()
        .insert()
        .into(OAuthClient)
        .values({
          id,
          issuer,
          redirectUri: this.redirectUri,
          kind,
          clientId: client.clientId,
          sealedSecret: client.clientSecret === null ? null : this.vault.seal(client.clientSecret, id),
          authMethod: client.authMethod,
          secretExpiresAt: client.secretExpiresAt,
        })
        .orIgnore()
        .execute();
      return tx.findOneOrFail(OAuthClient, { where: { issuer, redirectUri: this.redirectUri, ownerId: IsNull() } });
    });
  }
}
