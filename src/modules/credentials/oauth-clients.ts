import { randomUUID } from 'node:crypto';
import type { FetchLike } from '@modelcontextprotocol/client';
import { Injectable } from '@nestjs/common';
import { DataSource, In, IsNull, MoreThan, type EntityManager } from 'typeorm';
import { Env } from '../../config/env.js';
import { clientMetadata, registerAt, type OAuthClient } from '../../mcp/oauth/client.js';
import type { AuthorizationServer } from '../../mcp/oauth/discovery.js';
import { Vault } from '../../platform/vault/vault.js';
import { OAuthClientRow } from './oauth-client.entity.js';

/** A client whose secret ends this soon is not used for a new authorization. */
const SECRET_LEFT_MS_MIN = 60 * 60_000;

/** Us at each authorization server: as the URL of our metadata document where it reads such, registered otherwise. */
@Injectable()
export class OAuthClients {
  constructor(
    private readonly dataSource: DataSource,
    private readonly vault: Vault,
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

  /** Those of some issuers that know us. */
  async knownAmong(issuers: readonly string[]): Promise<Set<string>> {
    const where = { issuer: In([...issuers]), redirectUri: this.redirectUri };
    const rows = await this.dataSource.manager.find(OAuthClientRow, { where, select: { issuer: true } });
    return new Set(rows.map(({ issuer }) => issuer));
  }

  /**
   * The client for a new authorization, registered if there is none. Two processes that need one at once register two, and
   * both use the one that is stored first.
   *
   * @throws OAuthSetupError when the server does not register us
   */
  async obtain(fetch: FetchLike, server: AuthorizationServer): Promise<OAuthClientRow> {
    const known = await this.find(server.issuer);
    if (known) return known;
    if (server.readsClientDocuments && this.documentUrl !== null) {
      const document = { clientId: this.documentUrl, clientSecret: null, authMethod: 'none', secretExpiresAt: null };
      return this.store(server.issuer, 'document', document);
    }
    return this.store(server.issuer, 'registered', await registerAt(fetch, server, this.redirectUri));
  }

  /** The client with its secret. */
  toClient(row: OAuthClientRow): OAuthClient {
    const { id, clientId, sealedSecret, authMethod, secretExpiresAt } = row;
    const clientSecret = sealedSecret === null ? null : this.vault.open(sealedSecret, id);
    return { clientId, clientSecret, authMethod, secretExpiresAt };
  }

  /** Forgets a client that its server no longer knows, so that the next authorization registers anew. */
  async forget(id: string): Promise<void> {
    await this.dataSource.getRepository(OAuthClientRow).delete({ id, kind: 'registered' });
  }

  private find(issuer: string, tx: EntityManager = this.dataSource.manager): Promise<OAuthClientRow | null> {
    const where = { issuer, redirectUri: this.redirectUri };
    const from = new Date(Date.now() + SECRET_LEFT_MS_MIN);
    return tx.findOne(OAuthClientRow, {
      where: [
        { ...where, secretExpiresAt: IsNull() },
        { ...where, secretExpiresAt: MoreThan(from) },
      ],
    });
  }

  private async store(issuer: string, kind: OAuthClientRow['kind'], client: OAuthClient): Promise<OAuthClientRow> {
    const id = randomUUID();
    return this.dataSource.transaction(async (tx) => {
      await tx.query(`DELETE FROM oauth_clients WHERE issuer = $1 AND redirect_uri = $2 AND secret_expires_at <= $3`, [
        issuer,
        this.redirectUri,
        new Date(Date.now() + SECRET_LEFT_MS_MIN),
      ]);
      await tx
        .createQueryBuilder()
        .insert()
        .into(OAuthClientRow)
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
      return tx.findOneOrFail(OAuthClientRow, { where: { issuer, redirectUri: this.redirectUri } });
    });
  }
}
