import { randomUUID } from 'node:crypto';
import type { FetchLike } from '@modelcontextprotocol/client';
import { Injectable } from '@nestjs/common';
import { DataSource, MoreThan, type EntityManager } from 'typeorm';
import { Env } from '../../config/env.js';
import { bearerChallenge } from '../../mcp/oauth/challenges.js';
import { discoverTarget, type AuthorizationServer, type AuthorizationTarget } from '../../mcp/oauth/discovery.js';
import { createOAuthFetch } from '../../mcp/oauth/oauth-fetch.js';
import { sdk } from '../../mcp/oauth/sdk.js';
import { OAuthClientNeededError, OAuthSetupError } from '../../mcp/oauth/oauth-errors.js';
import { Egress } from '../../platform/egress/egress.js';
import { EgressRefusedError } from '../../platform/egress/egress.errors.js';
import { AuthAdaptersService } from './auth-adapters.service.js';
import { CredentialRepository } from './credential.repository.js';
import {
  upstreamAddress,
  type AuthorizationSetup,
  type BeginAuthorization,
  type CredentialOwner,
  type PreregisteredClient,
} from './credentials.types.js';
import { OAuthClientsService } from './oauth-clients.service.js';
import { PendingAuthorization } from './pending-authorization.entity.js';
import { SetupLinksService } from './setup/setup-links.service.js';
import { UpstreamCredential } from './upstream-credential.entity.js';

/** The time for discovery and registration: an upstream may list several servers, each with several documents. */
const BEGIN_MS_MAX = 30_000;

/** Valid links of one owner; a new one ends the oldest. */
const LINKS_PER_OWNER_MAX = 5;

const LABEL_CHARS_MAX = 200;

/** The kind of setup links that lead to a pending authorization. */
export const AUTHORIZATION_LINKS = 'authorizations';

/** The result of a discovery. */
export interface AuthorizationPreview {
  server: AuthorizationServer;
  /** Name of the MCP server for people, from its metadata; null without one. */
  resourceName: string | null;
  /** Separated by spaces; null leaves the choice to the authorization server. */
  scopes: string | null;
}

/**
 * Begins authorizations: discovers the authorization server, registers Slipway there, and stores a pending authorization.
 */
@Injectable()
export class AuthorizationsService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly repository: CredentialRepository,
    private readonly clients: OAuthClientsService,
    private readonly adapters: AuthAdaptersService,
    private readonly links: SetupLinksService,
    private readonly egress: Egress,
    private readonly env: Env,
  ) {}

  /** `CredentialsService.begin`. @throws OAuthSetupError */
  async begin(owner: CredentialOwner, request: BeginAuthorization): Promise<AuthorizationSetup> {
    const { id, expiresAt } = await this.open(owner, request);
    return { setupUrl: this.links.url({ kind: AUTHORIZATION_LINKS, id, epoch: 1 }), expiresAt };
  }

  /**
   * {@link begin} without a link, for a person who is redirected at once.
   *
   * @param client a client that the person entered; it is stored for this owner, and used from now on
   * @throws OAuthClientNeededError, also if that client is for another authorization server than the present one
   */
  async open(
    owner: CredentialOwner,
    request: BeginAuthorization,
    client: PreregisteredClient | null = null,
  ): Promise<{ id: string; expiresAt: Date }> {
    const fetch = createOAuthFetch(this.egress, AbortSignal.timeout(BEGIN_MS_MAX));
    const { target, scopes } = await this.discover(fetch, owner, request);
    const { server } = target;
    if (client) {
      // A client is stored only for the issuer that it was entered for.
      if (client.issuer !== server.issuer) {
        throw new OAuthClientNeededError(server.issuer, `The authorization server is ${server.issuer} now.`);
      }
      await this.clients.storePreregistered(owner, client);
    }
    const row = server.adapter !== undefined ? null : await this.clients.obtain(fetch, server, owner);
    const pending = {
      id: randomUUID(),
      ownerKind: owner.kind,
      ownerId: owner.id,
      label: request.label.slice(0, LABEL_CHARS_MAX),
      upstreamUrl: upstreamAddress(request.upstreamUrl),
      server,
      clientRowId: row?.id ?? null,
      resource: target.resource,
      resourceName: target.resourceName,
      scopes,
      expiresAt: new Date(Date.now() + this.env.oauthSetupTtlMinutes * 60_000),
    };
    const { ownerKind, ownerId } = pending;
    await this.dataSource.transaction(async (tx) => {
      await this.repository.deleteExpiredLinks(tx);
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
    return { id: pending.id, expiresAt: pending.expiresAt };
  }

  /** Discovery only: stores and registers nothing. @throws OAuthSetupError */
  async preview(owner: CredentialOwner, request: BeginAuthorization): Promise<AuthorizationPreview> {
    const fetch = createOAuthFetch(this.egress, AbortSignal.timeout(BEGIN_MS_MAX));
    const { target, scopes } = await this.discover(fetch, owner, request);
    const isAdapter = target.server.adapter !== undefined;
    const server = isAdapter
      ? await this.adapters.located(owner, target.server, this.clients.redirectUri)
      : target.server;
    return { server, resourceName: target.resourceName, scopes };
  }

  /** Ends every link of an owner. */
  async remove({ kind, id }: CredentialOwner, tx: EntityManager): Promise<void> {
    await tx.delete(PendingAuthorization, { ownerKind: kind, ownerId: id });
  }

  private async discover(
    fetch: FetchLike,
    owner: CredentialOwner,
    request: BeginAuthorization,
  ): Promise<{ target: AuthorizationTarget; scopes: string | null }> {
    const { adapter } = request;
    if (adapter !== undefined) return { target: this.adapters.targetOf({ ...request, adapter }), scopes: null };
    const upstreamUrl = new URL(request.upstreamUrl);
    upstreamUrl.hash = '';
    const target = await discoverTarget(fetch, {
      upstreamUrl: upstreamUrl.href,
      challenge: request.challenge ?? [],
      knownAmong: (issuers) => this.clients.knownAmong(issuers, owner),
      pkceUnannounced: this.env.oauthPkceUnannounced,
    });
    // Endpoints that egress rules exclude are refused before a person signs in.
    const { server } = target;
    for (const endpoint of [server.tokenEndpoint, server.registrationEndpoint, server.revocationEndpoint]) {
      try {
        if (endpoint !== null) this.egress.check(endpoint);
      } catch (error) {
        if (!(error instanceof EgressRefusedError)) throw error;
        throw new OAuthSetupError(`The authorization server ${server.issuer} cannot be used: ${error.message}`);
      }
    }
    return { target, scopes: await this.scopesFor(owner, request, target) };
  }

  /** A step-up also asks for the scopes granted before: the new token replaces the old one (MCP, scope challenges). */
  private async scopesFor(
    owner: CredentialOwner,
    { challenge, upstreamUrl }: BeginAuthorization,
    target: AuthorizationTarget,
  ): Promise<string | null> {
    if (bearerChallenge(challenge ?? [])?.error !== 'insufficient_scope') return target.scopes;
    const credential = await this.dataSource.manager.findOne(UpstreamCredential, {
      where: { ownerKind: owner.kind, ownerId: owner.id, upstreamUrl: upstreamAddress(upstreamUrl) },
    });
    if (credential?.server.issuer !== target.server.issuer) return target.scopes;
    return sdk().computeScopeUnion(credential.scopes ?? undefined, target.scopes ?? undefined) ?? null;
  }
}
