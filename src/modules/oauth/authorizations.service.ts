/**
 * One authorization from discovery to the stored token (RFC 6749 with PKCE).
 *
 * A row of `pending_authorizations` is bound to the browser that begins (cookie) and to a `state`, which works once, for 10 minutes and in
 * that browser; the issuer is checked by `iss` (RFC 9207). The new tokens replace the owner's earlier ones, and other links of the owner
 * are invalidated.
 *
 * Fails: OAuthSetupError for errors of the server; SetupPageError, a page with the next step, for links and responses that cannot be used
 * and for an unreachable server. A client that the server rejects is registered again at the next attempt.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import type { FetchLike } from '@modelcontextprotocol/client';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { LRUCache } from 'lru-cache';
import { DataSource, IsNull, MoreThan, Not, type EntityManager } from 'typeorm';
import { Env } from '../../config/env.js';
import { Tuning } from '../../config/tuning.js';
import type { Person } from '../auth/access.types.js';
import { bearerChallenge } from '../../mcp/oauth/challenges.js';
import { authorizationUrl, isFromServer } from '../../mcp/oauth/client.js';
import { discoverTarget, type AuthorizationTarget } from '../../mcp/oauth/discovery.js';
import { createOAuthFetch } from '../../mcp/oauth/oauth-fetch.js';
import {
  OAuthClientNeededError,
  OAuthSetupError,
  TokenEndpointUnreachableError,
  TokenRefusedError,
  UnclearRefusalError,
} from '../../mcp/oauth/oauth-errors.js';
import { sdk } from '../../mcp/oauth/sdk.js';
import { exchangeCode, isClientRefusal, type TokenSet } from '../../mcp/oauth/tokens.js';
import { Egress } from '../../platform/egress/egress.js';
import { EgressRefusedError } from '../../platform/egress/egress.errors.js';
import { hashSecret, isSecret, newSecret } from '../../platform/http/secrets.js';
import { partsOf } from '../../platform/parts.js';
import { visible } from '../../platform/text/quoted.js';
import { Vault } from '../../platform/vault/vault.js';
import { CredentialsRepository } from './credential.repository.js';
import { answeredError, SetupPageError } from './credentials.errors.js';
import { CredentialsService } from './credentials.service.js';
import {
  credentialOwners,
  upstreamAddress,
  type BeginAuthorization,
  type CredentialOwner,
  type CredentialOwners,
  type PreregisteredClient,
} from './credentials.types.js';
import { OAuthClient } from './oauth-client.entity.js';
import { OAuthClientsService } from './oauth-clients.service.js';
import { PendingAuthorization } from './pending-authorization.entity.js';
import type { CallbackQueryDto } from './setup/callback.dto.js';
import { SetupLinksService } from './setup/setup-links.service.js';
import {
  authorizeView,
  knownName,
  participantsOf,
  type LinkHolder,
  type PageServer,
  type SetupAnswer,
  type SetupLink,
  type SetupPageOwner,
  type SetupResult,
  type SetupView,
} from './setup/setup.types.js';
import { issuerOf, storedTokens } from './stored-tokens.js';
import { UpstreamCredential } from './upstream-credential.entity.js';

/** Time limit of a start: an upstream can list several servers, each with several documents. */
const BEGIN_MS_MAX = 30_000;

/** Counts from the redirect to the authorization server. */
const ANSWER_MS_MAX = 10 * 60_000;

/** Maximum number of links of an owner; a new link invalidates the oldest. */
const LINKS_PER_OWNER_MAX = 5;

/**
 * Users reload pages, and programs follow links before users do. The sign-in that follows a page uses the same discovery, the next one
 * discovers again.
 */
const DISCOVERY_CACHED_MS = 60_000;

const AUTHORIZATION_LINKS = 'authorizations';

const clientOrigins: Record<OAuthClient['kind'], string> = {
  document: 'the address of the document that describes Slipway',
  registered: 'which the authorization server registered',
  given: 'which was entered on the setup page',
};

type SignIn = Pick<PendingAuthorization, 'id' | 'ownerKind' | 'ownerId' | 'server' | 'resource' | 'scopes'>;

@Injectable()
export class AuthorizationsService implements SetupPageOwner<PendingAuthorization>, OnModuleInit {
  private readonly discovered = new LRUCache<string, AuthorizationTarget>({ max: 1_000, ttl: DISCOVERY_CACHED_MS });

  private owners!: Record<CredentialOwner['kind'], CredentialOwners>;

  constructor(
    private readonly database: DataSource,
    private readonly credentialsRepository: CredentialsRepository,
    private readonly oauthClientsService: OAuthClientsService,
    private readonly credentialsService: CredentialsService,
    private readonly setupLinksService: SetupLinksService,
    private readonly vault: Vault,
    private readonly egress: Egress,
    private readonly env: Env,
    private readonly tuning: Tuning,
    private readonly moduleRef: ModuleRef,
  ) {}

  onModuleInit(): void {
    // Only the API has pages.
    if (this.env.roles.includes('api')) this.owners = partsOf(this.moduleRef, credentialOwners);
  }

  /**
   * Begins an authorization, which a user completes by {@link openLink}, once, even after a restart.
   *
   * @throws OAuthSetupError with a message for the publisher
   */
  async begin(owner: CredentialOwner, request: BeginAuthorization): Promise<void> {
    await this.prepare(owner, request, null);
  }

  /** @returns null if no authorization of the owner is pending */
  async openLink({ kind: ownerKind, id: ownerId }: CredentialOwner, holder: LinkHolder): Promise<string | null> {
    const link = await this.database.manager.findOne(PendingAuthorization, {
      where: { ownerKind, ownerId, completedAt: IsNull(), expiresAt: MoreThan(new Date()) },
      order: { createdAt: 'DESC', id: 'DESC' },
    });
    return link && this.setupLinksService.url({ kind: AUTHORIZATION_LINKS, id: link.id, epoch: 1, holder });
  }

  /**
   * Works like {@link begin} without a link, for a user who is redirected immediately.
   *
   * @param client a client that the user entered; it is stored for this owner and used from now on
   * @param cookie identifies the browser, which must return with it
   * @param holder of the link that it begins with; its right is checked again at the callback
   * @throws OAuthClientNeededError, even if that client is for another authorization server than the current one
   */
  async start(
    owner: CredentialOwner,
    request: BeginAuthorization,
    client: PreregisteredClient | null,
    cookie: string,
    holder: LinkHolder,
  ): Promise<SetupAnswer> {
    const { pending, clientRow } = await this.prepare(owner, request, client);
    return { redirect: await this.redirectFor(pending, clientRow, cookie, holder), linkId: pending.id };
  }

  /** Stores and registers nothing. The result is at most 60 s old. @throws OAuthSetupError */
  async preview(owner: CredentialOwner, request: BeginAuthorization): Promise<AuthorizationTarget> {
    const key = JSON.stringify([owner, request]);
    let target = this.discovered.get(key);
    if (!target) {
      const fetch = createOAuthFetch(this.egress, AbortSignal.timeout(BEGIN_MS_MAX));
      target = await this.discover(fetch, owner, request);
      if (target.server.adapter !== undefined) {
        // The address of the sign-in, from an attempt that is not used.
        const { url } = await this.signInAtAdapter(owner, newSecret());
        target = { ...target, server: { ...target.server, authorizationEndpoint: new URL(url).origin } };
      }
      this.discovered.set(key, target);
    }
    return target;
  }

  /** Returns a description of the client, and registers a client if there is none yet. @throws OAuthSetupError */
  async clientFor(owner: CredentialOwner, request: BeginAuthorization): Promise<string> {
    const { server } = await this.preview(owner, request);
    if (server.adapter !== undefined) return 'The code of the server signs people in: it needs no client.';
    const chosen = request.oauth?.clientId;
    if (chosen !== undefined) return `The client is "${visible(chosen, 100)}", which the owner chose.`;
    const fetch = createOAuthFetch(this.egress, AbortSignal.timeout(BEGIN_MS_MAX));
    const { clientId, kind } = await this.oauthClientsService.obtain(fetch, server, owner);
    return `The client is "${visible(clientId, 100)}", ${clientOrigins[kind]}.`;
  }

  async open({ id }: Pick<SetupLink, 'id' | 'epoch'>): Promise<PendingAuthorization> {
    const pending = await this.database.manager.findOneBy(PendingAuthorization, { id });
    if (!pending) throw SetupPageError.unknownLink();
    if (pending.completedAt !== null) throw SetupPageError.usedLink();
    if (pending.expiresAt.getTime() <= Date.now()) throw SetupPageError.expiredLink();
    if (!(await this.owners[pending.ownerKind].isAuthorizationPending(pending.ownerId)))
      throw SetupPageError.nothingWaits();
    return pending;
  }

  mayUse(pending: PendingAuthorization, person: Person): Promise<boolean> {
    return this.owners[pending.ownerKind].mayAuthorize(pending.ownerId, person);
  }

  async view(pending: PendingAuthorization): Promise<SetupView> {
    return authorizeView(await this.serverOf(pending), pending.upstreamUrl, pending);
  }

  async submit(
    pending: PendingAuthorization,
    _form: URLSearchParams,
    cookie: string,
    holder: LinkHolder,
  ): Promise<SetupAnswer> {
    const redirect = await this.redirectFor(pending, await this.clientOf(pending), cookie, holder);
    return { redirect, linkId: pending.id };
  }

  /**
   * Completes an authorization. Its state works once, within ten minutes, in the browser that began it.
   *
   * @throws SetupPageError
   */
  async complete(
    query: CallbackQueryDto,
    cookieOf: (linkId: string) => string | undefined,
  ): Promise<{ view: SetupResult; linkId: string } | { redirect: string; linkId: string }> {
    const stateHash = isSecret(query.state) ? hashSecret(query.state) : null;
    const pending = stateHash && (await this.database.manager.findOneBy(PendingAuthorization, { stateHash }));
    if (!pending || !stateHash) throw SetupPageError.unknownState();
    const cookie = cookieOf(pending.id);
    const isSame = isSecret(cookie) && pending.browserHash?.equals(hashSecret(cookie));
    if (!isSame) throw SetupPageError.otherBrowser();
    const startedAfter = new Date(Date.now() - ANSWER_MS_MAX);
    // One guarded statement uses up the state: of two responses with it, only one continues.
    const isClaimed = await this.credentialsRepository.claimState(pending.id, stateHash, startedAfter);
    if (!isClaimed) throw SetupPageError.unknownState();
    const holder = holderOf(pending);
    const isOpen = holder && (await this.setupLinksService.isOpenTo(holder, (person) => this.mayUse(pending, person)));
    if (!isOpen) throw SetupPageError.usedLink();
    if (!(await this.owners[pending.ownerKind].isAuthorizationPending(pending.ownerId)))
      throw SetupPageError.nothingWaits();
    const { server } = pending;
    // Behind an adapter any issuer can respond: state and PKCE bind the response.
    if (server.adapter === undefined && !isFromServer(server, query.iss)) throw SetupPageError.notFromServer();
    if (query.error !== undefined || query.code === undefined) {
      // Again without the parameter that the server rejected (RFC 8707 section 2).
      if (query.error === 'invalid_target' && pending.resource !== '') {
        await this.database.manager.update(PendingAuthorization, { id: pending.id }, { resource: '' });
        const again = { ...pending, resource: '' };
        const redirect = await this.redirectFor(again, await this.clientOf(pending), cookie, holder);
        return { redirect, linkId: pending.id };
      }
      const tryAgainUrl = this.setupLinksService.url({ kind: AUTHORIZATION_LINKS, id: pending.id, epoch: 1, holder });
      const name = knownName(await this.serverOf(pending));
      throw answeredError({ id: pending.id, server, tryAgainUrl }, query, name, this.env.appName);
    }
    const client = await this.clientOf(pending);
    const tokens = await this.exchange(pending, client, query.code, query.iss);
    const owner = ownerOf(pending);
    await this.database.transaction((tx) => this.store(pending, tokens, tx));
    await this.credentialsService.completeAuthorization(owner, this.owners[pending.ownerKind]);
    return { view: { ...(await this.serverOf(pending)), kind: 'authorized' }, linkId: pending.id };
  }

  private async prepare(owner: CredentialOwner, request: BeginAuthorization, client: PreregisteredClient | null) {
    const fetch = createOAuthFetch(this.egress, AbortSignal.timeout(BEGIN_MS_MAX));
    const key = JSON.stringify([owner, request]);
    const cached = this.discovered.get(key);
    // The discovery is used once: the next authorization checks whether the upstream has another authorization server.
    this.discovered.delete(key);
    const { server, resource, resourceName, scopes } = cached ?? (await this.discover(fetch, owner, request));
    const { clientId, ...choice } = request.oauth ?? { sealedSecret: null };
    if (clientId !== undefined && server.adapter === undefined) {
      await this.oauthClientsService.storeChosen(owner, server.issuer, { ...choice, clientId });
    } else if (client) {
      // A client is stored only for the issuer that it was entered for.
      if (client.issuer !== server.issuer) {
        throw new OAuthClientNeededError(server.issuer, `The authorization server is ${server.issuer} now.`);
      }
      await this.oauthClientsService.storePreregistered(owner, client);
    }
    const { manager } = this.database;
    const credential = await manager.findOneBy(UpstreamCredential, { ownerKind: owner.kind, ownerId: owner.id });
    const takesNoResource = credential?.resource === '' && credential.server.issuer === server.issuer;
    const clientRow = server.adapter !== undefined ? null : await this.oauthClientsService.obtain(fetch, server, owner);
    const pending = {
      id: randomUUID(),
      ownerKind: owner.kind,
      ownerId: owner.id,
      label: request.label.slice(0, 200),
      upstreamUrl: upstreamAddress(request.upstreamUrl),
      server,
      clientRowId: clientRow?.id ?? null,
      resource: takesNoResource ? '' : resource,
      resourceName,
      scopes,
      expiresAt: new Date(Date.now() + this.tuning.oauthSetupTtlMs),
    };
    const { ownerKind, ownerId } = pending;
    await this.database.transaction(async (tx) => {
      await this.credentialsRepository.deleteExpiredLinks(tx);
      await tx.insert(PendingAuthorization, pending);
      const older = await tx.find(PendingAuthorization, {
        where: { ownerKind, ownerId, expiresAt: MoreThan(new Date()) },
        select: { id: true },
        order: { createdAt: 'DESC', id: 'DESC' },
        skip: LINKS_PER_OWNER_MAX,
        take: 100,
      });
      for (const { id } of older) await tx.delete(PendingAuthorization, { id });
    });
    return { pending, clientRow };
  }

  private async discover(
    fetch: FetchLike,
    owner: CredentialOwner,
    request: BeginAuthorization,
  ): Promise<AuthorizationTarget> {
    const { adapter, upstreamUrl: url, challenge, oauth } = request;
    if (adapter !== undefined) {
      // Nothing is sent to the URL, which only identifies the adapter.
      const nothing = { registrationEndpoint: null, revocationEndpoint: null, tokenEndpointAuthMethods: null };
      const endpoints = { issuer: url, authorizationEndpoint: url, tokenEndpoint: url };
      const server = { ...endpoints, ...nothing, readsClientDocuments: false, sendsIss: false, adapter };
      return { server, resource: url, resourceName: null, scopes: null };
    }
    const upstreamUrl = new URL(url);
    upstreamUrl.hash = '';
    const target = await discoverTarget(fetch, {
      upstreamUrl: upstreamUrl.href,
      challenge: challenge ?? [],
      knownAmong: (issuers) => this.oauthClientsService.knownAmong(issuers, owner),
      pkceUnannounced: this.env.oauthPkceUnannounced,
      chosen: oauth,
    });
    // Checks egress rules for all endpoints now, not only after a user has signed in.
    const { server } = target;
    for (const endpoint of [server.tokenEndpoint, server.registrationEndpoint, server.revocationEndpoint]) {
      try {
        if (endpoint !== null) this.egress.check(endpoint);
      } catch (error) {
        if (!(error instanceof EgressRefusedError)) throw error;
        throw new OAuthSetupError(`The authorization server ${server.issuer} cannot be used: ${error.message}`);
      }
    }
    if (oauth?.scopes || bearerChallenge(challenge ?? [])?.error !== 'insufficient_scope') return target;
    // A step-up also requests the scopes granted before: the new token replaces the old one (MCP, scope challenges).
    const credential = await this.database.manager.findOne(UpstreamCredential, {
      where: { ownerKind: owner.kind, ownerId: owner.id, upstreamUrl: upstreamAddress(url) },
    });
    if (credential?.server.issuer !== server.issuer) return target;
    const scopes = sdk().computeScopeUnion(credential.scopes ?? undefined, target.scopes ?? undefined) ?? null;
    return { ...target, scopes };
  }

  /**
   * Starts an authorization. The same browser can repeat this, which restarts the authorization; another browser cannot.
   *
   * @param client null for an adapter
   * @param holder of the link that it continues
   * @returns the address to which the browser is redirected
   * @throws SetupPageError, OAuthSetupError
   */
  private async redirectFor(
    pending: SignIn,
    client: OAuthClient | null,
    cookie: string,
    { accountId, keyId, loginsEpoch, needsSignIn }: LinkHolder,
  ): Promise<string> {
    const state = newSecret();
    const { id, server, resource, scopes } = pending;
    const { url, codeVerifier } =
      client === null
        ? await this.signInAtAdapter(ownerOf(pending), state)
        : await authorizationUrl({
            server,
            client: this.oauthClientsService.toClient(client),
            redirectUri: client.redirectUri,
            resource,
            scopes,
            state,
          });
    const isBound = await this.credentialsRepository.bindBrowser(id, {
      browserHash: hashSecret(cookie),
      stateHash: hashSecret(state),
      sealedVerifier: this.vault.seal(codeVerifier, id),
      accountId,
      keyId,
      loginsEpoch: needsSignIn ? loginsEpoch : -1 - loginsEpoch,
    });
    if (!isBound) throw SetupPageError.usedLink();
    return url;
  }

  /** Begins an authorization at an adapter, and returns the PKCE verifier (RFC 7636). @throws OAuthSetupError */
  private async signInAtAdapter(owner: CredentialOwner, state: string): Promise<{ url: string; codeVerifier: string }> {
    const codeVerifier = randomBytes(32).toString('base64url');
    const codeChallenge = createHash('sha256').update(codeVerifier).digest('base64url');
    try {
      const adapter = await this.oauthClientsService.adapterOf(owner);
      const url = await adapter.authorizationUrl({
        callbackUrl: this.oauthClientsService.redirectUri,
        state,
        codeChallenge,
      });
      return { url, codeVerifier };
    } catch (error) {
      if (error instanceof TokenEndpointUnreachableError || error instanceof TokenRefusedError) {
        throw new OAuthSetupError(error.message);
      }
      throw error;
    }
  }

  /** Returns the names that users know. */
  private async serverOf(pending: PendingAuthorization): Promise<PageServer> {
    const { label, upstreamUrl, server, resourceName } = pending;
    const presentation = await this.owners[pending.ownerKind].presentation(pending.ownerId);
    const { upstreamHost } = participantsOf(upstreamUrl, server);
    return { ...presentation, title: presentation.title ?? resourceName ?? undefined, label, upstreamHost };
  }

  /** Returns null for an adapter, which needs no client. */
  private async clientOf({ clientRowId: id, server }: PendingAuthorization): Promise<OAuthClient | null> {
    if (server.adapter !== undefined || id === null) return null;
    return this.database.manager.findOneByOrFail(OAuthClient, { id });
  }

  private async exchange(
    pending: PendingAuthorization,
    client: OAuthClient | null,
    code: string,
    iss: string | undefined,
  ): Promise<TokenSet> {
    const { server, resource, sealedVerifier, id } = pending;
    const codeVerifier = this.vault.open(sealedVerifier ?? '', id);
    try {
      if (client === null) {
        const adapter = await this.oauthClientsService.adapterOf(ownerOf(pending));
        return await adapter.exchangeCode({ code, callbackUrl: this.oauthClientsService.redirectUri, codeVerifier });
      }
      const tokens = await exchangeCode(
        createOAuthFetch(this.egress),
        { server, client: this.oauthClientsService.toClient(client), resource },
        { code, iss, codeVerifier, redirectUri: client.redirectUri },
      );
      if (tokens.authMethod) await this.oauthClientsService.authenticates(client.id, tokens.authMethod);
      return tokens;
    } catch (error) {
      if (error instanceof TokenRefusedError) {
        const isClient = client !== null && isClientRefusal(error);
        if (isClient) await this.oauthClientsService.handleRejection(client.id);
        if (isClient && client.kind === 'given') {
          throw SetupPageError.wrongClient(error.host, knownName(await this.serverOf(pending)), error.words);
        }
        throw new SetupPageError(
          'upstream',
          'The sign-in could not be finished',
          `You signed in, but then ${error.host} gave ${this.env.appName} no access. Nothing was authorized. ` +
            (isClient ? 'Ask for a new link, and try again.' : 'Open the link again to retry.'),
          undefined,
          error.words,
        );
      }
      if (!(error instanceof TokenEndpointUnreachableError)) throw error;
      throw new SetupPageError(
        'upstream',
        'The sign-in could not be finished',
        `You signed in, but then ${issuerOf({ server })} ` +
          `${error instanceof UnclearRefusalError ? 'gave no access to' : 'did not answer'} ${this.env.appName}. Nothing was authorized. ` +
          'Open the link again in a few minutes.',
        undefined,
        error.message,
      );
    }
  }

  /** Stores an authorization, which replaces the owner's credential and invalidates the owner's other links. */
  private async store(pending: PendingAuthorization, tokens: TokenSet, tx: EntityManager): Promise<void> {
    const { id, ownerKind, ownerId, upstreamUrl, server, clientRowId, resource, scopes } = pending;
    // A trigger deletes the row together with its owner, and waits for this lock.
    if (!(await this.credentialsRepository.lockPending(id, tx))) throw SetupPageError.unknownLink();
    const lock = { mode: 'pessimistic_write' } as const;
    const before = await tx.findOne(UpstreamCredential, { where: { ownerKind, ownerId }, lock });
    const row = { id: before?.id ?? randomUUID(), generation: before?.generation ?? 0, scopes };
    await tx.save(UpstreamCredential, {
      ...row,
      ownerKind,
      ownerId,
      upstreamUrl,
      server,
      clientRowId,
      resource: tokens.withoutResource ? '' : resource,
      ...storedTokens(row, tokens, this.vault),
      refreshedAt: null,
    });
    await tx.update(PendingAuthorization, { id }, { completedAt: new Date(), sealedVerifier: null });
    await tx.delete(PendingAuthorization, { ownerKind, ownerId, id: Not(id) });
  }
}

/** @returns null if an earlier version began the authorization */
function holderOf({ accountId, keyId, loginsEpoch }: PendingAuthorization): LinkHolder | null {
  if (accountId === null || keyId === null || loginsEpoch === null) return null;
  const needsSignIn = loginsEpoch >= 0;
  return { accountId, keyId, loginsEpoch: needsSignIn ? loginsEpoch : -1 - loginsEpoch, needsSignIn };
}

function ownerOf({
  ownerKind: kind,
  ownerId: id,
}: Pick<PendingAuthorization, 'ownerKind' | 'ownerId'>): CredentialOwner {
  return { kind, id };
}
