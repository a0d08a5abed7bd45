import { Injectable, Logger, type BeforeApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { DataSource, In } from 'typeorm';
import { createOAuthFetch } from '../../mcp/oauth/oauth-fetch.js';
import { revokeToken } from '../../mcp/oauth/tokens.js';
import { RowCache } from '../../platform/database/row-cache.js';
import { Egress } from '../../platform/egress/egress.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { Vault } from '../../platform/vault/vault.js';
import { AuthorizationsService } from './authorizations.service.js';
import { AuthorizationRequiredError, CredentialUnavailableError } from './credentials.errors.js';
import type { AuthorizationSetup, BeginAuthorization, CredentialOwner } from './credentials.types.js';
import { OAuthClient } from './oauth-client.entity.js';
import { OAuthClients } from './oauth-clients.js';
import { issuerOf, type RefreshOutcome } from './refresh-outcome.js';
import { openTokens } from './stored-tokens.js';
import { TokenRefresher } from './token-refresher.js';
import { UpstreamCredential } from './upstream-credential.entity.js';
import { upstreamAddress } from './upstream-url.js';

declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    'credentials.changed': { key: string };
  }
}

/** A credential is believed this long; a change also arrives over the relay, at once. */
const CACHED_MS = 5_000;
const CACHED_MAX = 20_000;

/** Of owners that go together, so many are revoked; the tokens of the others end by themselves. */
const REVOKED_AT_ONCE_MAX = 1_000;

/** What a call needs to know of a credential. */
interface Held {
  id: string;
  upstreamUrl: string;
  generation: number;
  /** Null when somebody must authorize anew. */
  accessToken: string | null;
  expiresAt: number;
  dueAt: number;
  retryAt: number;
  issuer: string;
  tokenHost: string;
}

/** The OAuth credentials of servers and connections: how others get a token, and a page to authorize at. */
@Injectable()
export class CredentialsService implements OnModuleInit, BeforeApplicationShutdown {
  private readonly logger = new Logger('credentials');
  private readonly revoking = new Set<Promise<void>>();
  private readonly held = new RowCache<Held>((key) => this.load(key), { max: CACHED_MAX, ttlMs: CACHED_MS });

  constructor(
    private readonly dataSource: DataSource,
    private readonly authorizations: AuthorizationsService,
    private readonly refresher: TokenRefresher,
    private readonly clients: OAuthClients,
    private readonly vault: Vault,
    private readonly egress: Egress,
    private readonly pubSub: PubSub,
  ) {
    this.authorizations.onStored((owner) => this.changed(keyOf(owner)));
  }

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('credentials.changed', ({ key }) => this.held.drop(key));
  }

  async beforeApplicationShutdown(): Promise<void> {
    await Promise.allSettled(this.revoking);
  }

  /**
   * The bearer token for this upstream, refreshed when due (60 s or a tenth of its life before its end); null when none is
   * stored for that URL. No query while the credential was read in the last 5 s.
   *
   * @param rejected the token the upstream just answered 401 to: it is refreshed, unless a newer one is stored already
   * @throws AuthorizationRequiredError when what is stored is no longer good; CredentialUnavailableError when the token
   * endpoint cannot be asked and the old token is past its time
   */
  async accessToken(owner: CredentialOwner, upstreamUrl: string, rejected?: string): Promise<string | null> {
    const key = keyOf(owner);
    let held = await this.held.get(key);
    // What would be refused is looked up once more: the change that helps may be made by another process just now.
    if (held && (held.accessToken === null || held.accessToken === rejected)) {
      this.held.drop(key);
      held = await this.held.get(key);
    }
    if (!held || held.upstreamUrl !== upstreamAddress(upstreamUrl)) return null;
    if (held.accessToken === null) throw required(`The authorization at ${held.issuer} has ended.`);
    const now = Date.now();
    if (held.accessToken !== rejected && (now < held.dueAt || (now < held.retryAt && now < held.expiresAt))) {
      return held.accessToken;
    }
    const { id, generation, tokenHost: host } = held;
    const onSettled = () => this.changed(key);
    const outcome = await this.refresher.refresh({ id, generation, host, rejected, onSettled });
    return tokenOf(outcome, held, rejected);
  }

  /**
   * Discovers the upstream's authorization server, registers Slipway there where needed, and makes a single-use page where
   * the owner's account authorizes. Nothing of it is lost over a restart.
   *
   * @throws OAuthSetupError with a sentence for the person who publishes
   */
  begin(owner: CredentialOwner, request: BeginAuthorization): Promise<AuthorizationSetup> {
    return this.authorizations.begin(owner, request);
  }

  /**
   * Forgets tokens and pending authorizations. The authorization server is told (RFC 7009) behind it, as far as it can be;
   * deleting the owner's row forgets them too, without telling anybody.
   */
  async remove(owner: CredentialOwner): Promise<void> {
    const where = { ownerKind: owner.kind, ownerId: owner.id };
    const row = await this.dataSource.transaction(async (tx) => {
      await this.authorizations.remove(owner, tx);
      const found = await tx.findOne(UpstreamCredential, { where, lock: { mode: 'pessimistic_write' } });
      if (!found) return null;
      await tx.delete(UpstreamCredential, { id: found.id });
      // Read now: one that was given goes with its owner.
      const client = found.clientRowId === null ? null : await tx.findOneBy(OAuthClient, { id: found.clientRowId });
      return { ...found, client };
    });
    this.changed(keyOf(owner));
    if (row) this.track(this.revoke(row));
  }

  /**
   * For owners that are about to go all at once, with their credentials: reads what the first 1,000 hold. What it returns
   * tells the authorization servers once they are gone, behind it and one after another.
   */
  async prepareRevocation(kind: CredentialOwner['kind'], ownerIds: string[]): Promise<() => void> {
    const rows = await this.dataSource.manager.find(UpstreamCredential, {
      where: { ownerKind: kind, ownerId: In(ownerIds.slice(0, REVOKED_AT_ONCE_MAX)) },
      relations: { client: true },
    });
    const all = async () => {
      for (const row of rows) await this.revoke(row);
    };
    return () => this.track(all());
  }

  private track(revocation: Promise<void>): void {
    const work = revocation
      .catch((error: unknown) => this.logger.warn({ msg: 'tokens could not be revoked', err: error }))
      .finally(() => this.revoking.delete(work));
    this.revoking.add(work);
  }

  /** For the module that owns this kind: told, in the process that took the answer, after an authorization was stored. */
  onAuthorized(kind: CredentialOwner['kind'], listener: (ownerId: string) => Promise<void>): void {
    this.authorizations.onAuthorized(kind, listener);
  }

  /** Lets every process look at the credential again. */
  private changed(key: string): void {
    this.held.drop(key);
    this.pubSub.publish('credentials.changed', { key });
  }

  private async revoke(row: UpstreamCredential): Promise<void> {
    const { server, client, id } = row;
    const held = openTokens(row, this.vault);
    if (!held || client === null || server.revocationEndpoint === null) return;
    const context = { server, client: this.clients.toClient(client) };
    const fetch = createOAuthFetch(this.egress);
    // The end of a refresh token is the end of the whole grant at most servers; not at all, hence both.
    if (held.refreshToken !== null) await revokeToken(fetch, context, held.refreshToken, 'refresh_token');
    const isRevoked = await revokeToken(fetch, context, held.accessToken, 'access_token');
    this.logger.debug({ msg: `the authorization server was ${isRevoked ? '' : 'not '}told`, credentialId: id });
  }

  private async load(key: string): Promise<Held | null> {
    const [kind, id] = key.split('/') as [CredentialOwner['kind'], string];
    const row = await this.dataSource.manager.findOne(UpstreamCredential, { where: { ownerKind: kind, ownerId: id } });
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

function tokenOf(outcome: RefreshOutcome, held: Held, rejected: string | undefined): string | null {
  switch (outcome.kind) {
    case 'token':
      return outcome.accessToken;
    case 'gone':
      return null;
    case 'required':
      throw required(outcome.message);
    case 'away': {
      const isOldUsable = Date.now() < held.expiresAt && held.accessToken !== rejected;
      const token = outcome.accessToken ?? (isOldUsable ? held.accessToken : null);
      if (token !== null) return token;
      throw new CredentialUnavailableError(
        `A new token is needed, and none can be had now: ${outcome.message} The authorization is kept; try again later.`,
      );
    }
  }
}

function required(message: string): AuthorizationRequiredError {
  return new AuthorizationRequiredError(`${message} Authorize it once more.`);
}

function keyOf({ kind, id }: CredentialOwner): string {
  return `${kind}/${id}`;
}
