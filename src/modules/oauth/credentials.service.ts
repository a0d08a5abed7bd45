/**
 * OAuth credentials of servers and connections for their upstreams.
 *
 * A token is read from a cache of 5 s; `credentials.changed` drops it in every process. It is refreshed 60 s or a tenth of its lifetime
 * before its expiry, or after a 401 with it. A token is valid only for the URL it was issued for.
 *
 * Fails: AuthorizationRequiredError when a user must authorize again, CredentialUnavailableError when no new token is available now.
 */
import { Injectable, Logger, type BeforeApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { DataSource, In, type EntityManager } from 'typeorm';
import { createOAuthFetch } from '../../mcp/oauth/oauth-fetch.js';
import { revokeToken } from '../../mcp/oauth/tokens.js';
import { RowCache } from '../../platform/database/row-cache.js';
import { Egress } from '../../platform/egress/egress.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { LogNamesRepository } from '../../platform/telemetry/log-names.repository.js';
import { Vault } from '../../platform/vault/vault.js';
import { CredentialsRepository } from './credential.repository.js';
import { AuthorizationRequiredError, CredentialUnavailableError } from './credentials.errors.js';
import { upstreamAddress, type CredentialOwner, type CredentialOwners } from './credentials.types.js';
import { OAuthClient } from './oauth-client.entity.js';
import { OAuthClientsService } from './oauth-clients.service.js';
import { PendingAuthorization } from './pending-authorization.entity.js';
import { issuerOf, openTokens } from './stored-tokens.js';
import { TokenRefresherService } from './token-refresher.service.js';
import { UpstreamCredential } from './upstream-credential.entity.js';

declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    'credentials.changed': { key: string };
  }
}

interface CachedCredential {
  id: string;
  upstreamUrl: string;
  generation: number;
  /** Null if the owner must authorize again. */
  accessToken: string | null;
  expiresAt: number;
  dueAt: number;
  retryAt: number;
  issuer: string;
  tokenHost: string;
}

@Injectable()
export class CredentialsService implements OnModuleInit, BeforeApplicationShutdown {
  private readonly logger = new Logger('credentials');
  private readonly revoking = new Set<Promise<void>>();
  private readonly cache = new RowCache<{ credential: CachedCredential | null }>(async (key) => ({
    credential: await this.load(key),
  }));

  constructor(
    private readonly database: DataSource,
    private readonly credentialsRepository: CredentialsRepository,
    private readonly tokenRefresherService: TokenRefresherService,
    private readonly oauthClientsService: OAuthClientsService,
    private readonly vault: Vault,
    private readonly egress: Egress,
    private readonly pubSub: PubSub,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('credentials.changed', ({ key }) => this.cache.drop(key));
  }

  async beforeApplicationShutdown(): Promise<void> {
    await Promise.allSettled(this.revoking);
  }

  /** @returns undefined if the token must be read or refreshed */
  cachedToken(owner: CredentialOwner, upstreamUrl: string): string | null | undefined {
    const cached = this.cache.peek(keyOf(owner));
    if (cached === null) return undefined;
    const { credential } = cached;
    if (!credential || credential.upstreamUrl !== upstreamAddress(upstreamUrl)) return null;
    return credential.accessToken !== null && Date.now() < credential.dueAt ? credential.accessToken : undefined;
  }

  /**
   * Refreshes the token when it is due, and returns null when none is stored for that URL.
   *
   * @param rejected the token to which the upstream just returned 401: it is refreshed, unless a newer one is already stored
   * @throws AuthorizationRequiredError if a user must authorize again; CredentialUnavailableError if the token endpoint does not respond
   * and the old token has expired
   */
  async accessToken(owner: CredentialOwner, upstreamUrl: string, rejected?: string): Promise<string | null> {
    const key = keyOf(owner);
    let credential = await this.credentialOf(key);
    // Another process might have just stored a valid token, so a bad one is read again.
    if (credential && (credential.accessToken === null || credential.accessToken === rejected)) {
      this.cache.drop(key);
      credential = await this.credentialOf(key);
    }
    if (!credential || credential.upstreamUrl !== upstreamAddress(upstreamUrl)) return null;
    if (credential.accessToken === null) throw toRequiredError(`The authorization at ${credential.issuer} has ended.`);
    const now = Date.now();
    if (
      credential.accessToken !== rejected &&
      (now < credential.dueAt || (now < credential.retryAt && now < credential.expiresAt))
    ) {
      return credential.accessToken;
    }
    const { id, generation, tokenHost: host } = credential;
    const onSettled = () => this.changed(key);
    const outcome = await this.tokenRefresherService.refresh({ id, generation, host, rejected, onSettled });
    switch (outcome.kind) {
      case 'token':
        return outcome.accessToken;
      case 'gone':
        return null;
      case 'required':
        throw toRequiredError(outcome.message);
      case 'away': {
        const isOldUsable = Date.now() < credential.expiresAt && credential.accessToken !== rejected;
        const token = outcome.accessToken ?? (isOldUsable ? credential.accessToken : null);
        if (token !== null) return token;
        throw new CredentialUnavailableError(
          `A new token is needed, and none can be had now: ${outcome.message} The authorization is kept; try again later.`,
        );
      }
    }
  }

  /**
   * Revokes the tokens (RFC 7009) in the background, if the authorization server can be reached. Deleting the owner's row deletes them too,
   * but does not revoke the tokens.
   */
  async remove(owner: CredentialOwner): Promise<void> {
    (await this.database.transaction((tx) => this.removeIn(owner, tx)))();
  }

  /** Works like {@link remove} within a transaction. The returned function revokes the tokens, after its commit. */
  async removeIn(owner: CredentialOwner, tx: EntityManager): Promise<() => void> {
    const where = { ownerKind: owner.kind, ownerId: owner.id };
    await tx.delete(PendingAuthorization, where);
    const stored = await tx.findOne(UpstreamCredential, { where, lock: { mode: 'pessimistic_write' } });
    if (stored) await tx.delete(UpstreamCredential, { id: stored.id });
    // Read now: a pre-registered client is deleted with its owner.
    const client = stored?.clientRowId ? await tx.findOneBy(OAuthClient, { id: stored.clientRowId }) : null;
    return () => {
      this.changed(keyOf(owner));
      if (stored) this.track(this.revoke({ ...stored, client }));
    };
  }

  /** Returns a function that revokes the tokens sequentially, in the background. */
  async prepareRevocation(kind: CredentialOwner['kind'], ownerIds: string[]): Promise<() => void> {
    const rows = await this.database.manager.find(UpstreamCredential, {
      where: { ownerKind: kind, ownerId: In(ownerIds) },
      relations: { client: true },
    });
    const revokeAll = async () => {
      for (const row of rows) await this.revoke(row);
    };
    return () => this.track(revokeAll());
  }

  private track(revocation: Promise<void>): void {
    const work = revocation
      .catch((error: unknown) => this.logger.warn({ msg: 'tokens could not be revoked', err: error }))
      .finally(() => this.revoking.delete(work));
    this.revoking.add(work);
  }

  /**
   * Runs the step of the owner's module after an authorization was stored. Never rejects: the authorization remains, and the next call uses
   * it even if the step failed.
   */
  async completeAuthorization(owner: CredentialOwner, owners: CredentialOwners): Promise<void> {
    this.changed(keyOf(owner));
    try {
      await owners.handleAuthorization(owner.id);
    } catch (error) {
      const names = await LogNamesRepository.find(this.database, owner.kind, owner.id);
      this.logger.error({ msg: `a step after the authorization of a ${owner.kind} failed`, ...names, err: error });
    }
  }

  private changed(key: string): void {
    this.cache.drop(key);
    this.pubSub.announce('credentials.changed', { key });
  }

  private async revoke(row: UpstreamCredential): Promise<void> {
    const { server, client, id } = row;
    const tokens = openTokens(row, this.vault);
    if (!tokens || client === null || server.revocationEndpoint === null) return;
    const context = { server, client: this.oauthClientsService.toClient(client) };
    const fetch = createOAuthFetch(this.egress);
    // At most servers, but not at all, revoking the refresh token revokes the entire grant.
    if (tokens.refreshToken !== null) await revokeToken(fetch, context, tokens.refreshToken, 'refresh_token');
    const isRevoked = await revokeToken(fetch, context, tokens.accessToken, 'access_token');
    this.logger.debug({ msg: `the tokens were ${isRevoked ? '' : 'not '}revoked`, credentialId: id });
  }

  private async credentialOf(key: string): Promise<CachedCredential | null> {
    return (await this.cache.get(key))?.credential ?? null;
  }

  private async load(key: string): Promise<CachedCredential | null> {
    const [kind, id] = key.split('/') as [CredentialOwner['kind'], string];
    const row = await this.credentialsRepository.findForCalls({ kind, id });
    if (!row) return null;
    return {
      id: row.id,
      upstreamUrl: row.upstreamUrl,
      generation: row.generation,
      accessToken: openTokens(row, this.vault)?.accessToken ?? null,
      expiresAt: row.expiresAt?.getTime() ?? Infinity,
      dueAt: row.dueAt?.getTime() ?? Infinity,
      retryAt: row.retryAt?.getTime() ?? 0,
      issuer: issuerOf(row),
      tokenHost: new URL(row.server.tokenEndpoint).host,
    };
  }
}

function toRequiredError(message: string): AuthorizationRequiredError {
  return new AuthorizationRequiredError(`${message} Authorize it again.`);
}

function keyOf({ kind, id }: CredentialOwner): string {
  return `${kind}/${id}`;
}
