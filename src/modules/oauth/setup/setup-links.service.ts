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
import { pageOwners, type LinkPerson, type SetupLink, type SetupPageOwner } from './setup.types.js';

/**
 * Signed links of the setup page, and the owner of the page of each kind: `/setup/<kind>/<id>/<epoch>` for whoever has the link, and
 * `/setup/<kind>/<id>/<epoch>.<loginsEpoch>/<accountId>` for people signed in as that account. The signature covers the whole
 * path. A link for an account ends with the account's logins, and with its right to set the thing up.
 */
@Injectable()
export class SetupLinksService implements OnModuleInit {
  private pageOwners!: Partial<Record<string, SetupPageOwner<unknown>>>;

  constructor(
    private readonly keys: ApiKeysService,
    private readonly signed: SignedUrls,
    private readonly env: Env,
    private readonly tuning: Tuning,
    private readonly modules: ModuleRef,
  ) {}

  onModuleInit(): void {
    // Only the API has pages.
    if (this.env.roles.includes('api')) this.pageOwners = partsOf(this.modules, pageOwners);
  }

  /** A link that opens for the time of an authorization at least. */
  url({ kind, id, epoch, person }: SetupLink): string {
    const until = person ? `${epoch}.${person.loginsEpoch}/${person.accountId}` : `${epoch}`;
    return this.signed.sign(`/setup/${kind}/${id}/${until}`, (2 * this.tuning.oauthSetupTtlMs) / 1000);
  }

  /** {@link url} for the person of an account. */
  async urlFor(link: Omit<SetupLink, 'person'>, accountId: string): Promise<string> {
    // A link for a disabled account opens nowhere, and its epoch is over when the account is enabled again.
    const { loginsEpoch } = (await this.keys.callerOf(accountId)) ?? { loginsEpoch: 0 };
    return this.url({ ...link, person: { accountId, loginsEpoch } });
  }

  /**
   * True if the person of a link, or of an authorization that began with one, may use it still.
   *
   * @param mayUse asks the owner of the page
   */
  async isOpenTo(
    { accountId, loginsEpoch }: LinkPerson,
    mayUse: (person: Person) => Promise<boolean>,
  ): Promise<boolean> {
    const person = await this.keys.callerOf(accountId);
    // A smaller epoch of the account is one that was read before the link was made.
    return person !== null && person.loginsEpoch <= loginsEpoch && mayUse(person);
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
    const [kind = '', id = '', epochs = '', accountId] = path.split('/');
    const [epoch, loginsEpoch = 0] = epochs.split('.').map(Number);
    const pageOwner = this.pageOwners[kind];
    if (!pageOwner) throw SetupPageError.unknownLink();
    const person = accountId === undefined ? undefined : { accountId, loginsEpoch };
    return [pageOwner, { kind, id, epoch: epoch ?? 0, person }];
  }
}
