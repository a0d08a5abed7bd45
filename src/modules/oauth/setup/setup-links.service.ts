import { Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { ForbiddenError } from '../../../platform/errors/domain-error.js';
import { SignedUrls } from '../../../platform/http/signed-urls.js';
import { AccessService } from '../../auth/access.service.js';
import type { Person } from '../../auth/access.types.js';
import { SetupPageError } from '../credentials.errors.js';
import type { LinkPerson, SetupLink, SetupPageOwner } from './setup.types.js';

/**
 * Signed links of the setup page, and the owner of the page of each kind: `/setup/<kind>/<id>/<epoch>` for whoever has the link, and
 * `/setup/<kind>/<id>/<epoch>.<loginsEpoch>/<accountId>` for people signed in as that account. The signature covers the whole
 * path. A link for an account ends with the account's logins, and with its right to set the thing up.
 */
@Injectable()
export class SetupLinksService {
  private readonly pageOwners = new Map<string, SetupPageOwner<unknown>>();

  constructor(
    private readonly access: AccessService,
    private readonly signed: SignedUrls,
    private readonly env: Env,
  ) {}

  /** Adds the owner of a kind of links; called by its module at start. */
  register<Row>(kind: string, pageOwner: SetupPageOwner<Row>): void {
    this.pageOwners.set(kind, pageOwner);
  }

  /** A link that opens for OAUTH_SETUP_TTL_MINUTES at least. */
  url({ kind, id, epoch, person }: SetupLink): string {
    const until = person ? `${epoch}.${person.loginsEpoch}/${person.accountId}` : `${epoch}`;
    return this.signed.sign(`/setup/${kind}/${id}/${until}`, 2 * 60 * this.env.oauthSetupTtlMinutes);
  }

  /** {@link url} for the person of an account. */
  async urlFor(link: Omit<SetupLink, 'person'>, accountId: string): Promise<string> {
    // A link for a disabled account opens nowhere, and its epoch is over when the account is enabled again.
    const { loginsEpoch } = (await this.access.callerOf(accountId)) ?? { loginsEpoch: 0 };
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
    const person = await this.access.callerOf(accountId);
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
    const pageOwner = this.pageOwners.get(kind);
    if (!pageOwner) throw SetupPageError.unknownLink();
    const person = accountId === undefined ? undefined : { accountId, loginsEpoch };
    return [pageOwner, { kind, id, epoch: epoch ?? 0, person }];
  }
}
