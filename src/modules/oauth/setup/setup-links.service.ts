import { Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { ForbiddenError } from '../../../platform/errors/domain-error.js';
import { SignedUrls } from '../../../platform/http/signed-urls.js';
import { SetupPageError } from '../credentials.errors.js';
import type { SetupLink, SetupPageOwner } from './setup.types.js';

/**
 * Signed links of the setup page, and the owner of the page of each kind: `/setup/<kind>/<id>/<epoch>` for whoever has the link, and
 * `/setup/<kind>/<id>/<epoch>/<accountId>` for people signed in as that account. The signature covers the whole path.
 */
@Injectable()
export class SetupLinksService {
  private readonly pageOwners = new Map<string, SetupPageOwner<unknown>>();

  constructor(
    private readonly signed: SignedUrls,
    private readonly env: Env,
  ) {}

  /** Adds the owner of a kind of links; called by its module at start. */
  register<Row>(kind: string, pageOwner: SetupPageOwner<Row>): void {
    this.pageOwners.set(kind, pageOwner);
  }

  /** A link that opens for OAUTH_SETUP_TTL_MINUTES at least. */
  url({ kind, id, epoch, accountId }: SetupLink): string {
    const person = accountId === undefined ? '' : `/${accountId}`;
    return this.signed.sign(`/setup/${kind}/${id}/${epoch}${person}`, 2 * 60 * this.env.oauthSetupTtlMinutes);
  }

  /**
   * Verifies a link.
   *
   * @param path behind `/setup/`
   * @throws SetupPageError for a link that this service did not sign, and for one that has expired
   */
  verify(path: string, query: { expires?: unknown; signature?: unknown }): [SetupPageOwner<unknown>, SetupLink] {
    try {
      if (!this.signed.opens(`/setup/${path}`, query)) throw SetupPageError.unknownLink();
    } catch (error) {
      if (!(error instanceof ForbiddenError)) throw error;
      throw Number(query.expires) * 1_000 <= Date.now() ? SetupPageError.expiredLink() : SetupPageError.unknownLink();
    }
    const [kind = '', id = '', epoch, accountId] = path.split('/');
    const pageOwner = this.pageOwners.get(kind);
    if (!pageOwner) throw SetupPageError.unknownLink();
    return [pageOwner, { kind, id, epoch: Number(epoch), accountId }];
  }
}
