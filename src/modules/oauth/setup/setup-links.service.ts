import { Injectable, type OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { Env } from '../../../config/env.js';
import { Tuning } from '../../../config/tuning.js';
import { ForbiddenError } from '../../../platform/errors/domain-error.js';
import { SignedUrls } from '../../../platform/http/signed-urls.js';
import type { Person } from '../../auth/access.types.js';
import { ApiKeysService } from '../../auth/api-keys.service.js';
import { partsOf } from '../../../platform/parts.js';
import { SetupPageError } from '../credentials.errors.js';
import { pageOwners, type LinkHolder, type SetupLink, type SetupPageOwner } from './setup.types.js';

/**
 * Signed links of the setup page. `/setup/<kind>/<id>/<epoch>/<accountId>/<keyId>/<loginsEpoch>` opens for anyone who has it; a link with a
 * final `person` opens only in a browser that is signed in as that account. The signature covers the whole path. A link is invalid once the
 * account loses the right to `manage` or its sign-ins are revoked, or the credential that it was issued to is invalid.
 */
@Injectable()
export class SetupLinksService implements OnModuleInit {
  private pageOwners!: Partial<Record<string, SetupPageOwner<unknown>>>;

  constructor(
    private readonly apiKeysService: ApiKeysService,
    private readonly signedUrls: SignedUrls,
    private readonly env: Env,
    private readonly tuning: Tuning,
    private readonly moduleRef: ModuleRef,
  ) {}

  onModuleInit(): void {
    // Only the API has pages.
    if (this.env.roles.includes('api')) this.pageOwners = partsOf(this.moduleRef, pageOwners);
  }

  /** Returns a link, valid at least for the duration of an authorization. */
  url({ kind, id, epoch, holder: { accountId, keyId, loginsEpoch, needsSignIn } }: SetupLink): string {
    const person = needsSignIn ? '/person' : '';
    const path = `/setup/${kind}/${id}/${epoch}/${accountId}/${keyId}/${loginsEpoch}${person}`;
    return this.signedUrls.sign(path, (2 * this.tuning.oauthSetupTtlMs) / 1000);
  }

  /** Returns a link that opens only in a browser that is signed in as the holder. */
  async personUrl(link: SetupLink): Promise<string> {
    // A link for a disabled account is invalid, and its epoch is outdated when the account is enabled again.
    const { loginsEpoch } = (await this.apiKeysService.callerOf(link.holder.accountId)) ?? { loginsEpoch: 0 };
    return this.url({ ...link, holder: { ...link.holder, loginsEpoch, needsSignIn: true } });
  }

  /**
   * Returns true if a user can open the link; rights are at most 5 s old.
   *
   * @param mayUse asks the owner of the page
   */
  async isOpenTo(
    { accountId, keyId, loginsEpoch }: LinkHolder,
    mayUse: (person: Person) => Promise<boolean>,
  ): Promise<boolean> {
    const person = await this.apiKeysService.callerOf(accountId);
    // A smaller epoch of the account was read before the link was issued.
    if (person === null || person.loginsEpoch > loginsEpoch) return false;
    return (await this.apiKeysService.liveAmong([keyId])).has(keyId) && mayUse(person);
  }

  /**
   * @param path after `/setup/`
   * @throws SetupPageError for a link without our signature, and for an expired one
   */
  verify(path: string, query: { expires?: unknown; signature?: unknown }): [SetupPageOwner<unknown>, SetupLink] {
    try {
      if (!this.signedUrls.isSigned(`/setup/${path}`, query)) throw SetupPageError.unknownLink();
    } catch (error) {
      if (!(error instanceof ForbiddenError)) throw error;
      throw Number(query.expires) * 1_000 <= Date.now() ? SetupPageError.expiredLink() : SetupPageError.unknownLink();
    }
    const [kind = '', id = '', epoch, accountId, keyId, loginsEpoch, person] = path.split('/');
    const pageOwner = this.pageOwners[kind];
    if (!pageOwner) throw SetupPageError.unknownLink();
    // Links of an earlier version name no credential, or no epoch.
    if (accountId === undefined || keyId === undefined || loginsEpoch === undefined) throw SetupPageError.expiredLink();
    const holder = { accountId, keyId, loginsEpoch: Number(loginsEpoch), needsSignIn: person !== undefined };
    return [pageOwner, { kind, id, epoch: Number(epoch), holder }];
  }
}
