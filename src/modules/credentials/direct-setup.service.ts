import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { Page } from '../../platform/pages/page.js';
import { AuthorizationsService, type AuthorizationPreview } from './authorizations.service.js';
import type { BeginAuthorization, CredentialOwner } from './credentials.types.js';
import { setupPage } from './setup-page.js';
import { SetupService } from './setup.service.js';

/** What was found out for a page is believed this long: people reload, and programs look at links before people do. */
const PREVIEW_CACHED_MS = 60_000;
const PREVIEWS_CACHED_MAX = 1_000;

/**
 * The setup page behind a link of another module: the same page, with one press on it from there to the authorization
 * server. Nothing is stored or registered before the press.
 */
@Injectable()
export class DirectSetupService {
  private readonly previews = new LRUCache<string, AuthorizationPreview>({
    max: PREVIEWS_CACHED_MAX,
    ttl: PREVIEW_CACHED_MS,
  });

  constructor(
    private readonly authorizations: AuthorizationsService,
    private readonly setup: SetupService,
  ) {}

  /**
   * The page that names what will be authorized, and where.
   *
   * @param action where its button posts to
   * @throws OAuthSetupError
   */
  async page(owner: CredentialOwner, request: BeginAuthorization, action: string): Promise<Page> {
    const key = JSON.stringify([owner, request]);
    let preview = this.previews.get(key);
    if (!preview) {
      preview = await this.authorizations.preview(owner, request);
      this.previews.set(key, preview);
    }
    const { server, scopes } = preview;
    return setupPage({
      action,
      label: request.label,
      upstreamHost: new URL(request.upstreamUrl).host,
      issuerHost: new URL(server.issuer).host,
      signInHost: new URL(server.authorizationEndpoint).host,
      scopes: scopes?.split(' ') ?? [],
    });
  }

  /**
   * Begins an authorization and binds it to a browser: where to send that, and the id under which it must hold `cookie`
   * when it comes back.
   *
   * @throws OAuthSetupError, SetupPageError
   */
  async start(
    owner: CredentialOwner,
    request: BeginAuthorization,
    cookie: string,
  ): Promise<{ url: string; linkId: string }> {
    const { id, token } = await this.authorizations.open(owner, request);
    return { url: await this.setup.start(token, () => cookie), linkId: id };
  }
}
