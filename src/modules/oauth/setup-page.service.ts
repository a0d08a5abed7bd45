import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { Page } from '../../platform/pages/page.js';
import { AuthorizationsService, type AuthorizationPreview } from './authorizations.service.js';
import type { BeginAuthorization, CredentialOwner, PreregisteredClient } from './credentials.types.js';
import { PreregisteredClients } from './preregistered-clients.js';
import { OAuthClients } from './oauth-clients.js';
import { placesOf, setupPage } from './setup-page.js';
import { SetupService } from './setup.service.js';

/** What was found out for a page is believed this long: people reload, and programs look at links before people do. */
const PREVIEW_CACHED_MS = 60_000;
const PREVIEWS_CACHED_MAX = 1_000;

/** What a person must know to give a client. */
export interface ClientRequest {
  /** The authorization server it is for, as its metadata spells it. */
  issuer: string;
  /** What must be registered there. */
  redirectUri: string;
  /**
   * `unneeded`: Slipway is known there by itself. `lacking`: it cannot be. `given`: there is one, and the person may go on with
   * it. `refused`: there is one, and it is not accepted.
   */
  state: 'unneeded' | 'lacking' | 'given' | 'refused';
}

/**
 * The setup page behind a link of another module: the same page, with one press on it from there to the authorization
 * server. Nothing is stored or registered before the press.
 */
@Injectable()
export class SetupPageService {
  private readonly previews = new LRUCache<string, AuthorizationPreview>({
    max: PREVIEWS_CACHED_MAX,
    ttl: PREVIEW_CACHED_MS,
  });

  constructor(
    private readonly authorizations: AuthorizationsService,
    private readonly clients: OAuthClients,
    private readonly given: PreregisteredClients,
    private readonly setup: SetupService,
  ) {}

  /**
   * The page that names what will be authorized, and where.
   *
   * @param action where its button posts to
   * @throws OAuthSetupError
   */
  async page(owner: CredentialOwner, request: BeginAuthorization, action: string): Promise<Page> {
    const { server, scopes } = await this.preview(owner, request);
    return setupPage({
      action,
      label: request.label,
      ...placesOf(request.upstreamUrl, server),
      scopes: scopes?.split(' ') ?? [],
    });
  }

  /** Whether a client is to be asked for, as far as can be told without registering. @throws OAuthSetupError */
  async clientRequest(owner: CredentialOwner, request: BeginAuthorization): Promise<ClientRequest> {
    const { server } = await this.preview(owner, request);
    const asked = await this.clientRequestAt(owner, server.issuer);
    const isUnneeded = asked.state === 'lacking' && (await this.clients.isObtainable(server));
    return isUnneeded ? { ...asked, state: 'unneeded' } : asked;
  }

  /** {@link clientRequest} at an issuer that is known to need one. */
  async clientRequestAt(owner: CredentialOwner, issuer: string): Promise<ClientRequest> {
    const { redirectUri } = this.clients;
    const given = await this.given.find(owner, issuer, redirectUri);
    const state = given === null ? 'lacking' : given.refusedAt === null ? 'given' : 'refused';
    return { issuer, redirectUri, state };
  }

  /**
   * Begins an authorization and binds it to a browser: where to send that, and the id under which it must hold `cookie`
   * when it comes back.
   *
   * @param client what the person gave for a {@link clientRequest}
   * @throws OAuthClientNeededError, OAuthSetupError, SetupPageError
   */
  async start(
    owner: CredentialOwner,
    request: BeginAuthorization,
    cookie: string,
    client: PreregisteredClient | null = null,
  ): Promise<{ url: string; linkId: string }> {
    const { id, token } = await this.authorizations.open(owner, request, client);
    return { url: await this.setup.start(token, () => cookie), linkId: id };
  }

  private async preview(owner: CredentialOwner, request: BeginAuthorization): Promise<AuthorizationPreview> {
    const key = JSON.stringify([owner, request]);
    let preview = this.previews.get(key);
    if (!preview) {
      preview = await this.authorizations.preview(owner, request);
      this.previews.set(key, preview);
    }
    return preview;
  }
}
