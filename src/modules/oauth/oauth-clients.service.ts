import { randomUUID } from 'node:crypto';
import type { FetchLike } from '@modelcontextprotocol/client';
import { Injectable } from '@nestjs/common';
import { DataSource, In, IsNull, MoreThan, type EntityManager } from 'typeorm';
import { Env } from '../../config/env.js';
import {
  OAuthClientNeededError,
  OAuthSetupError,
  TokenEndpointUnreachableError,
} from '../../mcp/oauth/oauth-errors.js';
import type { AuthAdapter } from '../../mcp/oauth/tokens.js';
import { DomainError } from '../../platform/errors/domain-error.js';
import { clientMetadata, registerAt, type OAuthClientIdentity } from '../../mcp/oauth/client.js';
import type { AuthorizationServer } from '../../mcp/oauth/discovery.js';
import { Vault } from '../../platform/vault/vault.js';
import { SetupPageError } from './credentials.errors.js';
import type { CredentialOwner, PreregisteredClient } from './credentials.types.js';
import { CredentialsRepository } from './credential.repository.js';
import { OAuthClient } from './oauth-client.entity.js';

/** Minimum remaining lifetime of the secret of a client that is used for a new authorization. */
const SECRET_LEFT_MS_MIN = 60 * 60_000;

/** Minimum interval at which a forgotten client is registered again at one issuer. */
const REGISTRATION_EVERY_MS = 24 * 60 * 60_000;

type AdapterFinder = (connectionId: string) => Promise<AuthAdapter | null>;

/**
 * Slipway's OAuth client at each authorization server: a pre-registered one of the owner, else the URL of the client id metadata document
 * where the server reads it, else a dynamically registered one.
 */
@Injectable()
export class OAuthClientsService {
  private findAdapter: AdapterFinder = () => Promise.resolve(null);

  constructor(
    private readonly database: DataSource,
    private readonly vault: Vault,
    private readonly credentialsRepository: CredentialsRepository,
    private readonly env: Env,
  ) {}

  /** Provides the adapters; `modules/connections` calls this at startup. */
  provideAdapters(find: AdapterFinder): void {
    this.findAdapter = find;
  }

  /** @throws TokenEndpointUnreachableError without an adapter, and without a value that the adapter needs */
  async adapterOf({ id }: CredentialOwner): Promise<AuthAdapter> {
    let adapter: AuthAdapter | null;
    try {
      adapter = await this.findAdapter(id);
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      throw new TokenEndpointUnreachableError(error.message);
    }
    if (adapter) return adapter;
    throw new TokenEndpointUnreachableError(
      'The current release of the server authorizes nobody: it has no auth adapter.',
    );
  }

  get redirectUri(): string {
    return `${this.env.baseUrl}/oauth/callback`;
  }

  /** @returns null unless PUBLIC_URL is https, which a metadata document requires */
  get documentUrl(): string | null {
    const { baseUrl } = this.env;
    return baseUrl.startsWith('https:') ? `${baseUrl}/oauth/client.json` : null;
  }

  /** @returns null where {@link documentUrl} is null */
  document(): object | null {
    if (this.documentUrl === null) return null;
    const metadata = clientMetadata(this.redirectUri, 'none');
    return { client_id: this.documentUrl, client_uri: this.env.baseUrl, ...metadata };
  }

  /** Returns the issuers with a known client, including shared clients. */
  async knownAmong(issuers: readonly string[], { kind, id }: CredentialOwner): Promise<Set<string>> {
    const clientOf = { issuer: In([...issuers]), redirectUri: this.redirectUri };
    const where = [
      { ...clientOf, ownerId: IsNull() },
      { ...clientOf, ownerKind: kind, ownerId: id },
    ];
    const rows = await this.database.manager.find(OAuthClient, { where, select: { issuer: true } });
    return new Set(rows.map(({ issuer }) => issuer));
  }

  /**
   * Registers a client if there is none. Two concurrent processes register two, and both use the one that is stored first.
   *
   * @throws OAuthClientNeededError if a user must enter one, OAuthSetupError if the registration fails
   */
  async obtain(fetch: FetchLike, server: AuthorizationServer, owner: CredentialOwner): Promise<OAuthClient> {
    const preregistered = await this.preregistered(owner, server.issuer);
    if (preregistered?.refusedAt) {
      throw new OAuthClientNeededError(server.issuer, `${server.issuer} does not accept the client that was given.`);
    }
    if (preregistered) return preregistered;
    const registered = await this.find(server.issuer);
    if (registered) return this.stillKnown(fetch, server, registered);
    if (server.readsClientDocuments && this.documentUrl !== null) {
      const document = { clientId: this.documentUrl, clientSecret: null, authMethod: 'none', secretExpiresAt: null };
      return this.store(server.issuer, 'document', document);
    }
    return this.store(server.issuer, 'registered', await registerAt(fetch, server, this.redirectUri));
  }

  /**
   * Registers another client once a day if the server seems to have forgotten this one, and within that day returns the previous one. Both
   * stay stored, since tokens are refreshed with the client they were issued to.
   */
  private async stillKnown(fetch: FetchLike, server: AuthorizationServer, client: OAuthClient): Promise<OAuthClient> {
    if (client.kind !== 'registered' || !(await this.credentialsRepository.isUnanswered(client.id))) return client;
    const { issuer, redirectUri } = client;
    const since = new Date(Date.now() - REGISTRATION_EVERY_MS);
    const where = { issuer, redirectUri, ownerId: IsNull(), retiredAt: MoreThan(since) };
    const before = await this.database.manager.findOne(OAuthClient, { where, order: { retiredAt: 'DESC' } });
    if (before) return this.swap(client, before);
    try {
      return await this.store(issuer, 'registered', await registerAt(fetch, server, this.redirectUri), client.id);
    } catch (error) {
      // Falls back to the existing client.
      if (error instanceof OAuthSetupError) return client;
      throw error;
    }
  }

  /** Uses the previous client again. @returns the client in use, which another process might have changed */
  private swap({ id, issuer }: OAuthClient, before: OAuthClient): Promise<OAuthClient> {
    return this.database.transaction(async (tx) => {
      // In one order: two swaps in opposite directions would deadlock.
      const rows = await tx.find(OAuthClient, {
        where: { id: In([id, before.id]) },
        order: { id: 'ASC' },
        lock: { mode: 'pessimistic_write' },
      });
      if (rows.length === 2 && rows.find((row) => row.id === id)?.retiredAt === null) {
        await tx.update(OAuthClient, { id }, { retiredAt: new Date() });
        await tx.update(OAuthClient, { id: before.id }, { retiredAt: null });
      }
      return (await this.find(issuer, tx)) ?? before;
    });
  }

  /** Returns false if a user must enter a client, which the metadata decides. */
  async isObtainable(server: AuthorizationServer): Promise<boolean> {
    if (server.adapter !== undefined || server.registrationEndpoint !== null) return true;
    if (server.readsClientDocuments && this.documentUrl !== null) return true;
    return (await this.find(server.issuer)) !== null;
  }

  toClient(row: OAuthClient): OAuthClientIdentity {
    const { id, clientId, sealedSecret, authMethod, secretExpiresAt } = row;
    const clientSecret = sealedSecret === null ? null : this.vault.open(sealedSecret, id);
    return { clientId, clientSecret, authMethod, secretExpiresAt };
  }

  async authenticates(id: string, authMethod: string, tx = this.database.manager): Promise<void> {
    await tx.update(OAuthClient, { id }, { authMethod });
  }

  /**
   * Deletes a registered client, so that the next authorization registers again; only a user can replace a pre-registered one, which is
   * marked.
   */
  async handleRejection(id: string): Promise<void> {
    const { manager } = this.database;
    await manager.delete(OAuthClient, { id, kind: 'registered' });
    await manager.update(OAuthClient, { id, kind: 'given' }, { refusedAt: new Date() });
  }

  /** Returns the owner's pre-registered client, including a rejected one. */
  preregistered(owner: CredentialOwner, issuer: string): Promise<OAuthClient | null> {
    return this.database.manager.findOneBy(OAuthClient, this.ofOwner(owner, { issuer }));
  }

  /**
   * Stores a client. The tokens of the replaced client are no longer refreshed; the same client gets the secret. For other issuers only the client in use
   * stays, so that an owner has at most two.
   *
   * @throws SetupPageError if the owner was deleted
   */
  async storePreregistered(owner: CredentialOwner, client: PreregisteredClient): Promise<void> {
    const { issuer, clientId, clientSecret } = client;
    const id = randomUUID();
    await this.database.transaction(async (tx) => {
      if (!(await this.credentialsRepository.lockOwner(owner, tx))) throw SetupPageError.unknownLink();
      const storedClient = await tx.findOneBy(OAuthClient, this.ofOwner(owner, { issuer, clientId }));
      if (storedClient) return this.renew(storedClient.id, clientSecret, tx);
      await this.credentialsRepository.deleteClientsOf(owner, issuer, tx);
      await tx.insert(OAuthClient, {
        id,
        issuer,
        redirectUri: this.redirectUri,
        kind: 'given',
        ownerKind: owner.kind,
        ownerId: owner.id,
        clientId,
        sealedSecret: clientSecret === null ? null : this.vault.seal(clientSecret, id),
      });
    });
  }

  /**
   * Stores the client that the owner chose. If the owner chose no issuer, the client belongs to the first one that was found: its secret is
   * sent to no other.
   *
   * @throws OAuthSetupError, SetupPageError
   */
  async storeChosen(
    owner: CredentialOwner,
    issuer: string,
    { issuer: chosen, clientId, sealedSecret }: { issuer?: string; clientId: string; sealedSecret: string | null },
  ): Promise<void> {
    const clients = await this.database.manager.findBy(OAuthClient, this.ofOwner(owner, { clientId }));
    const other = clients.find((client) => client.issuer !== issuer);
    if (chosen === undefined && other && !clients.some((client) => client.issuer === issuer)) {
      throw new OAuthSetupError(
        `The client of this connection was used at ${other.issuer}, and its authorization server is ${issuer} now: ` +
          'its owner must set this issuer in "oauth".',
      );
    }
    const clientSecret = sealedSecret === null ? null : this.vault.open(sealedSecret, owner.id);
    await this.storePreregistered(owner, { issuer, clientId, clientSecret });
  }

  /** Deletes the other pre-registered clients of the owner, and stores the secret. */
  async replacePreregistered(
    owner: CredentialOwner,
    clientId: string | undefined,
    clientSecret: string | null,
    tx: EntityManager,
  ): Promise<void> {
    for (const client of await tx.findBy(OAuthClient, this.ofOwner(owner, {}))) {
      if (client.clientId === clientId) await this.renew(client.id, clientSecret, tx);
      else await tx.delete(OAuthClient, { id: client.id });
    }
  }

  private async renew(id: string, clientSecret: string | null, tx: EntityManager): Promise<void> {
    const sealedSecret = clientSecret === null ? null : this.vault.seal(clientSecret, id);
    await tx.update(OAuthClient, { id }, { sealedSecret, refusedAt: null });
  }

  private ofOwner({ kind, id }: CredentialOwner, where: { issuer?: string; clientId?: string }) {
    return { ownerKind: kind, ownerId: id, redirectUri: this.redirectUri, ...where };
  }

  private find(issuer: string, tx: EntityManager = this.database.manager): Promise<OAuthClient | null> {
    const where = { issuer, redirectUri: this.redirectUri, ownerId: IsNull(), retiredAt: IsNull() };
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
    replacedId?: string,
  ): Promise<OAuthClient> {
    const id = randomUUID();
    return this.database.transaction(async (tx) => {
      const { redirectUri } = this;
      if (replacedId !== undefined)
        await tx.update(OAuthClient, { id: replacedId, retiredAt: IsNull() }, { retiredAt: new Date() });
      await this.credentialsRepository.deleteEndedClients(
        issuer,
        redirectUri,
        new Date(Date.now() + SECRET_LEFT_MS_MIN),
        tx,
      );
      const sealedSecret = client.clientSecret === null ? null : this.vault.seal(client.clientSecret, id);
      const { clientId, authMethod, secretExpiresAt } = client;
      const row = { id, issuer, redirectUri, kind, clientId, sealedSecret, authMethod, secretExpiresAt };
      await this.credentialsRepository.insertClient(row, tx);
      const where = { issuer, redirectUri: this.redirectUri, ownerId: IsNull(), retiredAt: IsNull() };
      return tx.findOneOrFail(OAuthClient, { where });
    });
  }
}
