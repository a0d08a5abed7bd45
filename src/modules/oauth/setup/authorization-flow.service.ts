/**
 * One authorization from the page to the stored token (RFC 6749 with PKCE): the page of its link, the redirect to the
 * authorization server, and the answer at `/oauth/callback`.
 *
 * A row of `pending_authorizations` is bound to the browser that begins (cookie) and to a `state`. The state works
 * once, for 10 minutes and in that browser; the issuer is checked by `iss` (RFC 9207). The code is exchanged, the
 * tokens are stored in place of the owner's earlier ones, other links of the owner end, and the owner's module is told.
 *
 * Faults are SetupPageErrors, pages with a sentence and the next step: link unknown, used or expired, another browser,
 * refusal by the person (which returns to the app), refusal or silence of the server. A client that the server refuses
 * is registered anew at the next attempt.
 */
import { randomUUID } from 'node:crypto';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { DataSource, Not, type EntityManager } from 'typeorm';
import { authorizationUrl, isFromServer } from '../../../mcp/oauth/client.js';
import type { AuthorizationServer } from '../../../mcp/oauth/discovery.js';
import { createOAuthFetch } from '../../../mcp/oauth/oauth-fetch.js';
import { TokenEndpointUnreachableError, TokenRefusedError } from '../../../mcp/oauth/oauth-errors.js';
import { exchangeCode, isClientRefusal, type TokenSet } from '../../../mcp/oauth/tokens.js';
import { Env } from '../../../config/env.js';
import { Egress } from '../../../platform/egress/egress.js';
import { hashSecret, isSecret, newSecret } from '../../../platform/http/secrets.js';
import { Vault } from '../../../platform/vault/vault.js';
import { AuthAdaptersService } from '../auth-adapters.service.js';
import { AUTHORIZATION_LINKS } from '../authorizations.service.js';
import { SetupPageError } from '../credentials.errors.js';
import type { CredentialOwner } from '../credentials.types.js';
import { CredentialsService } from '../credentials.service.js';
import { CredentialRepository } from '../credential.repository.js';
import type { CallbackQueryDto } from './callback.dto.js';
import { SetupLinksService } from './setup-links.service.js';
import {
  knownName,
  type AuthorizeView,
  type PageServer,
  type SetupAnswer,
  type SetupLink,
  type SetupResult,
  type SetupPageOwner,
  type SetupView,
} from './setup.types.js';
import { OAuthClient } from '../oauth-client.entity.js';
import { OAuthClientsService } from '../oauth-clients.service.js';
import { PendingAuthorization } from '../pending-authorization.entity.js';
import { issuerOf, storedTokens } from '../stored-tokens.js';
import { UpstreamCredential } from '../upstream-credential.entity.js';

/** The time from the redirect to the authorization server to its answer. */
const ANSWER_MS_MAX = 10 * 60_000;

/** Reads the cookie that the browser has for a setup link. */
export type CookieOf = (linkId: string) => string | undefined;

/** The steps of an authorization. */
@Injectable()
export class AuthorizationFlowService implements SetupPageOwner<PendingAuthorization>, OnModuleInit {
  constructor(
    private readonly dataSource: DataSource,
    private readonly repository: CredentialRepository,
    private readonly clients: OAuthClientsService,
    private readonly credentials: CredentialsService,
    private readonly adapters: AuthAdaptersService,
    private readonly links: SetupLinksService,
    private readonly vault: Vault,
    private readonly egress: Egress,
    private readonly env: Env,
  ) {}

  onModuleInit(): void {
    this.links.register(AUTHORIZATION_LINKS, this);
  }

  async open({ id }: Pick<SetupLink, 'id' | 'epoch'>): Promise<PendingAuthorization> {
    const pending = await this.dataSource.manager.findOneBy(PendingAuthorization, { id });
    if (!pending) throw SetupPageError.unknownLink();
    if (pending.completedAt !== null) throw SetupPageError.usedLink();
    if (pending.expiresAt.getTime() <= Date.now()) throw SetupPageError.expiredLink();
    if (!(await this.credentials.isAuthorizationPending(ownerOf(pending)))) throw SetupPageError.nothingWaits();
    return pending;
  }

  async view(pending: PendingAuthorization): Promise<SetupView> {
    const { issuerHost, signInHost } = participantsOf(pending.upstreamUrl, pending.server);
    const scopes = pending.scopes?.split(' ') ?? [];
    return { ...(await this.serverOf(pending)), kind: 'authorize', issuerHost, signInHost, scopes };
  }

  /** The server of an authorization as people know it. */
  private async serverOf(pending: PendingAuthorization): Promise<PageServer> {
    const { label, upstreamUrl, server, resourceName } = pending;
    const { title = resourceName ?? undefined, ...presentation } = await this.credentials.presentationOf(
      ownerOf(pending),
    );
    return { ...presentation, title, label, upstreamHost: participantsOf(upstreamUrl, server).upstreamHost };
  }

  async submit(pending: PendingAuthorization, _form: URLSearchParams, cookie: string): Promise<SetupAnswer> {
    return { redirect: await this.redirectFor(pending, cookie), linkId: pending.id };
  }

  /** {@link submit} for an authorization that was just opened. @returns the address to redirect the browser to */
  async start(id: string, cookie: string): Promise<string> {
    return this.redirectFor(await this.open({ id, epoch: 1 }), cookie);
  }

  /**
   * Binds the authorization to a browser. The same browser may repeat it, which restarts the authorization; another one may
   * not.
   *
   * @throws SetupPageError, OAuthSetupError
   */
  private async redirectFor(pending: PendingAuthorization, cookie: string): Promise<string> {
    const state = newSecret();
    const { url, codeVerifier } = await this.signIn(pending, state);
    const isBound = await this.repository.bindBrowser(pending.id, {
      browserHash: hashSecret(cookie),
      stateHash: hashSecret(state),
      sealedVerifier: this.vault.seal(codeVerifier, pending.id),
    });
    if (!isBound) throw SetupPageError.usedLink();
    return url;
  }

  /**
   * Exchanges the code of an answer and stores the tokens. A state works once, within ten minutes, in the browser that
   * began.
   *
   * @throws SetupPageError
   */
  async complete(query: CallbackQueryDto, cookieOf: CookieOf): Promise<{ view: SetupResult; linkId: string }> {
    const stateHash = isSecret(query.state) ? hashSecret(query.state) : null;
    const pending = stateHash && (await this.dataSource.manager.findOneBy(PendingAuthorization, { stateHash }));
    if (!pending || !stateHash) throw SetupPageError.unknownState();
    const cookie = cookieOf(pending.id);
    const isSame = isSecret(cookie) && pending.browserHash?.equals(hashSecret(cookie));
    if (!isSame) throw SetupPageError.otherBrowser();
    const startedAfter = new Date(Date.now() - ANSWER_MS_MAX);
    // One guarded statement uses up the state: of two answers with it, only one continues.
    const isClaimed = await this.repository.claimState(pending.id, stateHash, startedAfter);
    if (!isClaimed) throw SetupPageError.unknownState();
    if (!(await this.credentials.isAuthorizationPending(ownerOf(pending)))) throw SetupPageError.nothingWaits();
    const { server } = pending;
    // Behind an adapter any issuer may answer: state and PKCE bind the answer.
    if (server.adapter === undefined && !isFromServer(server, query.iss)) throw SetupPageError.notFromServer();
    if (query.error !== undefined || query.code === undefined) {
      throw authorizationErrorPage(pending, query, knownName(await this.serverOf(pending)), this.env.appName);
    }
    const client = await this.clientOf(pending);
    const tokens = await this.exchange(pending, client, query.code, query.iss);
    const owner = ownerOf(pending);
    await this.dataSource.transaction((tx) => this.store(pending, tokens, tx));
    await this.credentials.authorized(owner);
    return { view: { ...(await this.serverOf(pending)), kind: 'authorized' }, linkId: pending.id };
  }

  private async signIn(pending: PendingAuthorization, state: string): Promise<{ url: string; codeVerifier: string }> {
    const { server, resource, scopes } = pending;
    const client = await this.clientOf(pending);
    if (client === null) {
      return this.adapters.signIn(ownerOf(pending), { callbackUrl: this.clients.redirectUri, state });
    }
    const { redirectUri } = client;
    return authorizationUrl({ server, client: this.clients.toClient(client), redirectUri, resource, scopes, state });
  }

  /** Null for an adapter, which needs no client. */
  private async clientOf({ clientRowId: id, server }: PendingAuthorization): Promise<OAuthClient | null> {
    if (server.adapter !== undefined || id === null) return null;
    return this.dataSource.manager.findOneByOrFail(OAuthClient, { id });
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
        const adapter = await this.adapters.of(ownerOf(pending));
        return await adapter.exchangeCode({ code, callbackUrl: this.clients.redirectUri, codeVerifier });
      }
      return await exchangeCode(
        createOAuthFetch(this.egress),
        { server, client: this.clients.toClient(client), resource },
        { code, iss, codeVerifier, redirectUri: client.redirectUri },
      );
    } catch (error) {
      if (error instanceof TokenRefusedError) {
        const isClient = client !== null && isClientRefusal(error);
        if (isClient) await this.clients.refused(client.id);
        if (isClient && client.kind === 'given') {
          throw SetupPageError.wrongClient(error.host, knownName(await this.serverOf(pending)), error.code);
        }
        throw new SetupPageError(
          'upstream',
          'The sign-in could not be finished',
          `You signed in, but then ${error.host} gave ${this.env.appName} no access. Nothing was authorized. ` +
            (isClient ? 'Ask for a new link, and try once more.' : 'Open the link again to try once more.'),
          undefined,
          error.code,
        );
      }
      if (!(error instanceof TokenEndpointUnreachableError)) throw error;
      throw new SetupPageError(
        'upstream',
        'The sign-in could not be finished',
        `You signed in, but then ${issuerOf({ server })} did not answer ${this.env.appName}. Nothing was authorized. ` +
          'Open the link again in a few minutes.',
        undefined,
        error.message,
      );
    }
  }

  /** One credential per owner: a new authorization replaces the old one, and ends the owner's other links. */
  private async store(pending: PendingAuthorization, tokens: TokenSet, tx: EntityManager): Promise<void> {
    const { id, ownerKind, ownerId, upstreamUrl, server, clientRowId, resource, scopes } = pending;
    // A trigger deletes the row together with its owner, and waits for this lock.
    if (!(await this.repository.lockPending(id, tx))) throw SetupPageError.unknownLink();
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
      resource,
      ...storedTokens(row, tokens, this.vault),
      refreshedAt: null,
    });
    await tx.update(PendingAuthorization, { id }, { completedAt: new Date(), sealedVerifier: null });
    await tx.delete(PendingAuthorization, { ownerKind, ownerId, id: Not(id) });
  }
}

function ownerOf({ ownerKind: kind, ownerId: id }: PendingAuthorization): CredentialOwner {
  return { kind, id };
}

/** The hosts that take part in an authorization. */
export function participantsOf(
  upstreamUrl: string,
  { issuer, authorizationEndpoint, adapter }: AuthorizationServer,
): Pick<AuthorizeView, 'upstreamHost' | 'issuerHost' | 'signInHost'> {
  const signInHost = new URL(authorizationEndpoint).host;
  if (adapter !== undefined) return { upstreamHost: adapter, issuerHost: signInHost, signInHost };
  return { upstreamHost: new URL(upstreamUrl).host, issuerHost: new URL(issuer).host, signInHost };
}

const TRY_LATER = 'Open the link again in a few minutes.';
const NOT_ALLOWED = 'It may not let you give this access. Ask whoever gave you the link.';

/** What to do next about the error of an answer (RFC 6749 section 4.1.2.1), in words. */
const nextSteps: Partial<Record<string, string>> = {
  server_error: TRY_LATER,
  temporarily_unavailable: TRY_LATER,
  invalid_scope: NOT_ALLOWED,
  unauthorized_client: NOT_ALLOWED,
};

/** The page for an answer without a code (RFC 6749 section 4.1.2.1). @param name of the server, as people know it */
function authorizationErrorPage(
  { id, server }: Pick<PendingAuthorization, 'id' | 'server'>,
  { error = 'no error code', error_description: said = '' }: CallbackQueryDto,
  name: string,
  appName: string,
): SetupPageError {
  const host = issuerOf({ server });
  const note = error.slice(0, 100);
  if (error === 'access_denied') {
    const refusal = new SetupPageError(
      'forbidden',
      'Nothing was authorized',
      `It was refused or cancelled at ${host}, so ${appName} has no access to ${name}. To try again, open the link once more.`,
      undefined,
      note,
    );
    return Object.assign(refusal, { refusedLinkId: id });
  }
  const reason = said === '' ? 'without a reason' : `and said: “${said.slice(0, 300)}”`;
  const nextStep = nextSteps[error] ?? 'Open the link again; if this happens once more, tell whoever gave it to you.';
  return new SetupPageError(
    'upstream',
    `${name} is not connected`,
    `${host} did not give ${appName} access, ${reason}. Nothing was authorized. ${nextStep}`,
    undefined,
    note,
  );
}
