import { randomUUID } from 'node:crypto';
import { computeScopeUnion, type FetchLike } from '@modelcontextprotocol/client';
import { Injectable, Logger } from '@nestjs/common';
import { DataSource, MoreThan, type EntityManager } from 'typeorm';
import { Env } from '../../config/env.js';
import { bearerChallenge } from '../../mcp/oauth/challenges.js';
import { discoverTarget, type AuthorizationServer, type AuthorizationTarget } from '../../mcp/oauth/discovery.js';
import { createOAuthFetch } from '../../mcp/oauth/oauth-fetch.js';
import { OAuthClientNeededError, OAuthSetupError } from '../../mcp/oauth/oauth-errors.js';
import { Egress } from '../../platform/egress/egress.js';
import { EgressRefusedError } from '../../platform/egress/egress.errors.js';
import { AuthAdaptersService } from './auth-adapters.service.js';
import type {
  AuthorizationSetup,
  BeginAuthorization,
  CredentialOwner,
  PreregisteredClient,
} from './credentials.types.js';
import { PreregisteredClients } from './preregistered-clients.js';
import { OAuthClients } from './oauth-clients.js';
import { PendingAuthorization } from './pending-authorization.entity.js';
import { hashSecret, newSecret } from '../../platform/http/secrets.js';
import { UpstreamCredential } from './upstream-credential.entity.js';
import { upstreamAddress } from './upstream-url.js';

/** Discovery and registration together: an upstream lists several servers, each with several documents. */
const BEGIN_MS_MAX = 30_000;

/** Links of one owner that work at the same time; older ones are taken back. */
const LINKS_PER_OWNER_MAX = 5;

/** Links are remembered this long past their end, to tell people what became of them. */
const KEPT_AFTER_EXPIRY = '1 day';

const LABEL_CHARS_MAX = 200;

type Listener = (ownerId: string) => Promise<void>;

/** A link that was just made. */
export interface OpenedAuthorization {
  id: string;
  token: string;
  expiresAt: Date;
}

/** What an authorization would be. */
export interface AuthorizationPreview {
  server: AuthorizationServer;
  /** Separated by spaces; null leaves the choice to the authorization server. */
  scopes: string | null;
}

/** Makes setup pages, and tells who waits for one. */
@Injectable()
export class AuthorizationsService {
  private readonly logger = new Logger('credentials');
  private readonly listeners: { kind: CredentialOwner['kind']; listener: Listener }[] = [];
  private forgetCached: (owner: CredentialOwner) => void = () => undefined;

  constructor(
    private readonly dataSource: DataSource,
    private readonly clients: OAuthClients,
    private readonly given: PreregisteredClients,
    private readonly adapters: AuthAdaptersService,
    private readonly egress: Egress,
    private readonly env: Env,
  ) {}

  /** `CredentialsService.begin`. @throws OAuthSetupError */
  async begin(owner: CredentialOwner, request: BeginAuthorization): Promise<AuthorizationSetup> {
    const { token, expiresAt } = await this.open(owner, request);
    return { setupUrl: `${this.env.baseUrl}/setup/${token}`, expiresAt };
  }

  /**
   * {@link begin} for who leads the person on at once: the token of the link, and what it is known by.
   *
   * @param client a client the person gave; it is stored for this owner, and used from now on
   * @throws OAuthClientNeededError also when that is for another authorization server than would be asked now
   */
  async open(
    owner: CredentialOwner,
    request: BeginAuthorization,
    client: PreregisteredClient | null = null,
  ): Promise<OpenedAuthorization> {
    const fetch = createOAuthFetch(this.egress, AbortSignal.timeout(BEGIN_MS_MAX));
    const { target, scopes } = await this.discover(fetch, owner, request);
    if (client) await this.give(owner, target, client);
    const isAdapter = target.server.adapter !== undefined;
    const row = isAdapter ? null : await this.clients.obtain(fetch, target.server, owner);
    const token = newSecret();
    const pending = {
      id: randomUUID(),
      ownerKind: owner.kind,
      ownerId: owner.id,
      label: request.label.slice(0, LABEL_CHARS_MAX),
      upstreamUrl: upstreamAddress(request.upstreamUrl),
      server: target.server,
      clientRowId: row?.id ?? null,
      resource: target.resource,
      scopes,
      tokenHash: hashSecret(token),
      expiresAt: new Date(Date.now() + this.env.oauthSetupTtlMinutes * 60_000),
    };
    await this.store(pending);
    return { id: pending.id, token, expiresAt: pending.expiresAt };
  }

  /** What would be asked for, and where; nothing is stored or registered. @throws OAuthSetupError */
  async preview(owner: CredentialOwner, request: BeginAuthorization): Promise<AuthorizationPreview> {
    const fetch = createOAuthFetch(this.egress, AbortSignal.timeout(BEGIN_MS_MAX));
    const { target, scopes } = await this.discover(fetch, owner, request);
    const isAdapter = target.server.adapter !== undefined;
    const server = isAdapter
      ? await this.adapters.located(owner, target.server, this.clients.redirectUri)
      : target.server;
    return { server, scopes };
  }

  /** Takes back every link of an owner. */
  async remove({ kind, id }: CredentialOwner, tx: EntityManager): Promise<void> {
    await tx.delete(PendingAuthorization, { ownerKind: kind, ownerId: id });
  }

  /** `CredentialsService.onAuthorized`. */
  onAuthorized(kind: CredentialOwner['kind'], listener: Listener): void {
    this.listeners.push({ kind, listener });
  }

  /** Who caches credentials is told first. */
  onStored(listener: (owner: CredentialOwner) => void): void {
    this.forgetCached = listener;
  }

  /**
   * Tells that an authorization was stored. Never rejects: the authorization stands, and who missed this finds it at the
   * next call.
   */
  async announce(owner: CredentialOwner): Promise<void> {
    this.forgetCached(owner);
    for (const { kind, listener } of this.listeners) {
      if (kind !== owner.kind) continue;
      try {
        await listener(owner.id);
      } catch (error) {
        this.logger.error({ msg: `what follows the authorization of ${kind} ${owner.id} failed`, err: error });
      }
    }
  }

  /** A server that names another issuer meanwhile gets no secret that was typed for the first. */
  private async give(
    owner: CredentialOwner,
    { server }: AuthorizationTarget,
    client: PreregisteredClient,
  ): Promise<void> {
    if (client.issuer !== server.issuer) {
      throw new OAuthClientNeededError(server.issuer, `The authorization server is ${server.issuer} now.`);
    }
    await this.given.give(owner, client, this.clients.redirectUri);
  }

  private async discover(
    fetch: FetchLike,
    owner: CredentialOwner,
    request: BeginAuthorization,
  ): Promise<{ target: AuthorizationTarget; scopes: string | null }> {
    const { adapter } = request;
    if (adapter !== undefined) return { target: this.adapters.targetOf({ ...request, adapter }), scopes: null };
    const target = await discoverTarget(fetch, {
      upstreamUrl: upstreamAddress(request.upstreamUrl),
      challenge: request.challenge ?? [],
      knownAmong: (issuers) => this.clients.knownAmong(issuers, owner),
      pkceUnannounced: this.env.oauthPkceUnannounced,
    });
    this.checkEndpoints(target);
    return { target, scopes: await this.scopesFor(owner, request, target) };
  }

  /** What can be told before DNS is asked is told to who publishes, not to who comes back with a code. */
  private checkEndpoints({ server }: AuthorizationTarget): void {
    for (const endpoint of [server.tokenEndpoint, server.registrationEndpoint, server.revocationEndpoint]) {
      try {
        if (endpoint !== null) this.egress.check(endpoint);
      } catch (error) {
        if (!(error instanceof EgressRefusedError)) throw error;
        throw new OAuthSetupError(`The authorization server ${server.issuer} cannot be used: ${error.message}`);
      }
    }
  }

  /** A step up asks for what was granted before as well: the new token replaces the old one (MCP, scope challenges). */
  private async scopesFor(
    owner: CredentialOwner,
    { challenge, upstreamUrl }: BeginAuthorization,
    target: AuthorizationTarget,
  ): Promise<string | null> {
    if (bearerChallenge(challenge ?? [])?.error !== 'insufficient_scope') return target.scopes;
    const held = await this.dataSource.manager.findOne(UpstreamCredential, {
      where: { ownerKind: owner.kind, ownerId: owner.id, upstreamUrl: upstreamAddress(upstreamUrl) },
    });
    if (held?.server.issuer !== target.server.issuer) return target.scopes;
    return computeScopeUnion(held.scopes ?? undefined, target.scopes ?? undefined) ?? null;
  }

  private async store(pending: Partial<PendingAuthorization>): Promise<void> {
    const { ownerKind, ownerId } = pending;
    await this.dataSource.transaction(async (tx) => {
      await tx.query(`DELETE FROM pending_authorizations WHERE expires_at < now() - $1::interval`, [KEPT_AFTER_EXPIRY]);
      await tx.insert(PendingAuthorization, pending);
      const links = await tx.find(PendingAuthorization, {
        where: { ownerKind, ownerId, expiresAt: MoreThan(new Date()) },
        select: { id: true },
        order: { createdAt: 'DESC', id: 'DESC' },
        skip: LINKS_PER_OWNER_MAX,
        take: 100,
      });
      for (const { id } of links) await tx.delete(PendingAuthorization, { id });
    });
  }
}
