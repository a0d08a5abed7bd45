import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { authorizationUrl, isFromServer } from '../../mcp/oauth/authorization.js';
import { createOAuthFetch } from '../../mcp/oauth/oauth-fetch.js';
import { TokenEndpointAwayError, TokenRefusedError } from '../../mcp/oauth/oauth-errors.js';
import { exchangeCode, isClientRefusal, type TokenSet } from '../../mcp/oauth/tokens.js';
import { Egress } from '../../platform/egress/egress.js';
import { Vault } from '../../platform/vault/vault.js';
import { AuthAdaptersService } from './auth-adapters.service.js';
import { AuthorizationsService } from './authorizations.service.js';
import { SetupPageError } from './credentials.errors.js';
import type { CredentialOwner } from './credentials.types.js';
import type { CallbackQueryDto } from './callback.dto.js';
import { OAuthClient } from './oauth-client.entity.js';
import { OAuthClients } from './oauth-clients.js';
import { PendingAuthorization } from './pending-authorization.entity.js';
import { hashSecret, isSecret, newSecret } from '../../platform/http/secrets.js';
import { authorizationErrorPage } from './authorization-error-page.js';
import { placesOf } from './setup-page.js';
import { storedTokens } from './stored-tokens.js';
import { UpstreamCredential } from './upstream-credential.entity.js';

/** A person who was sent to an authorization server must come back within this time. */
const ANSWER_MS_MAX = 10 * 60_000;

/** Reads the cookie of a pending authorization from the request. */
export type CookieOf = (pendingId: string) => string | undefined;

/** What the setup page says. */
export interface SetupView {
  pendingId: string;
  label: string;
  upstreamHost: string;
  issuerHost: string;
  /** Where the button leads; not always the issuer's own host. */
  signInHost: string;
  scopes: string[];
}

/** What the page after the authorization says. */
export interface SetupResult {
  label: string;
  upstreamHost: string;
}

/** The three steps of a person: open the page, press its button, come back from the authorization server. */
@Injectable()
export class SetupService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly clients: OAuthClients,
    private readonly authorizations: AuthorizationsService,
    private readonly adapters: AuthAdaptersService,
    private readonly vault: Vault,
    private readonly egress: Egress,
  ) {}

  /** What the page of a link says; looking at it changes nothing. @throws SetupPageError */
  async view(token: string): Promise<SetupView> {
    const pending = await this.open(token);
    return {
      pendingId: pending.id,
      label: pending.label,
      ...placesOf(pending.upstreamUrl, pending.server),
      scopes: pending.scopes?.split(' ') ?? [],
    };
  }

  /**
   * The button was pressed: binds the authorization to this browser and returns where to send it. The same browser may press
   * it again, which starts anew; another one may not.
   *
   * @throws SetupPageError, OAuthSetupError
   */
  async start(token: string, cookieOf: CookieOf): Promise<string> {
    const pending = await this.open(token);
    const cookie = cookieOf(pending.id);
    if (!isSecret(cookie)) throw SetupPageError.otherBrowser();
    const state = newSecret();
    const { url, codeVerifier } = await this.signIn(pending, state);
    const browserHash = hashSecret(cookie);
    const claimed = await this.dataSource
      .createQueryBuilder()
      .update(PendingAuthorization)
      .set({
        startedAt: new Date(),
        browserHash,
        stateHash: hashSecret(state),
        sealedVerifier: this.vault.seal(codeVerifier, pending.id),
      })
      .where('id = :id AND completed_at IS NULL AND expires_at > now()', { id: pending.id })
      .andWhere('(browser_hash IS NULL OR browser_hash = :browserHash)', { browserHash })
      .execute();
    if (claimed.affected !== 1) throw SetupPageError.usedLink();
    return url;
  }

  /**
   * The browser came back: exchanges the code and stores the tokens. A state works once, within ten minutes, in the browser
   * that began.
   *
   * @throws SetupPageError
   */
  async complete(query: CallbackQueryDto, cookieOf: CookieOf): Promise<SetupResult> {
    const pending = await this.claim(query.state, cookieOf);
    const { server } = pending;
    // What an adapter stands in front of may name itself as it likes: state and PKCE bind the answer.
    if (server.adapter === undefined && !isFromServer(server, query.iss)) throw SetupPageError.notFromServer();
    if (query.error !== undefined || query.code === undefined) throw authorizationErrorPage(pending, query);
    const client = await this.clientOf(pending);
    const tokens = await this.exchange(pending, client, query.code, query.iss);
    const owner = ownerOf(pending);
    await this.dataSource.transaction((tx) => this.store(pending, tokens, tx));
    await this.authorizations.announce(owner);
    return { label: pending.label, upstreamHost: placesOf(pending.upstreamUrl, server).upstreamHost };
  }

  private async open(token: string): Promise<PendingAuthorization> {
    const pending = isSecret(token)
      ? await this.dataSource.manager.findOneBy(PendingAuthorization, { tokenHash: hashSecret(token) })
      : null;
    if (!pending) throw SetupPageError.unknownLink();
    if (pending.completedAt !== null) throw SetupPageError.usedLink();
    if (pending.expiresAt.getTime() <= Date.now()) throw SetupPageError.expiredLink();
    return pending;
  }

  /** Uses the state up, in one guarded statement: of two answers with it, one goes on. */
  private async claim(state: string | undefined, cookieOf: CookieOf): Promise<PendingAuthorization> {
    const stateHash = isSecret(state) ? hashSecret(state) : null;
    const pending = stateHash && (await this.dataSource.manager.findOneBy(PendingAuthorization, { stateHash }));
    if (!pending || !stateHash) throw SetupPageError.unknownState();
    const cookie = cookieOf(pending.id);
    const isSame = isSecret(cookie) && pending.browserHash?.equals(hashSecret(cookie));
    if (!isSame) throw SetupPageError.otherBrowser();
    const claimed = await this.dataSource
      .createQueryBuilder()
      .update(PendingAuthorization)
      .set({ stateHash: null })
      .where('id = :id AND state_hash = :stateHash', { id: pending.id, stateHash })
      .andWhere('started_at > :since', { since: new Date(Date.now() - ANSWER_MS_MAX) })
      .execute();
    if (claimed.affected !== 1) throw SetupPageError.unknownState();
    return pending;
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

  /** Null for an adapter, which needs none. */
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
        if (isClient && client.kind === 'given')
          throw SetupPageError.wrongClient(error.host, pending.label, error.code);
        throw new SetupPageError(
          'upstream',
          'The authorization server changed its mind',
          `${error.host} accepted you, and then refused to give Slipway a token (${error.code}). Nothing was authorized. ` +
            (isClient
              ? 'Ask for a new link: Slipway registers there anew.'
              : 'Open the setup link again to try once more.'),
        );
      }
      if (!(error instanceof TokenEndpointAwayError)) throw error;
      throw new SetupPageError(
        'upstream',
        'The authorization server does not answer',
        `You were accepted, but Slipway could not fetch its token: ${error.message} Nothing was authorized. ` +
          'Open the setup link again in a moment.',
      );
    }
  }

  /** One credential per owner: a new authorization replaces the old one, and ends the owner's other links. */
  private async store(pending: PendingAuthorization, tokens: TokenSet, tx: EntityManager): Promise<void> {
    const { id, ownerKind, ownerId, upstreamUrl, server, clientRowId, resource, scopes } = pending;
    // Gone when the owner was deleted meanwhile: a trigger takes the row along, and waits while it is held here.
    const [still] = await tx.query<object[]>('SELECT 1 FROM pending_authorizations WHERE id = $1 FOR UPDATE', [id]);
    if (!still) throw SetupPageError.unknownLink();
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
    await tx.query('DELETE FROM pending_authorizations WHERE owner_kind = $1 AND owner_id = $2 AND id <> $3', [
      ownerKind,
      ownerId,
      id,
    ]);
  }
}

function ownerOf({ ownerKind: kind, ownerId: id }: PendingAuthorization): CredentialOwner {
  return { kind, id };
}
