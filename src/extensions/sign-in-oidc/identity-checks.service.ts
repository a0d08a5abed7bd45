import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { Identities, InjectSettings, IntervalSchedule, Secrets } from '../../extension.js';
import { groupsIn, rolesOf } from './groups.js';
import { type CheckedIdentity, IdentitiesRepository } from './identities.repository.js';
import type { Claims } from './identity.js';
import { IssuerService } from './issuer.service.js';
import { MODULE, oidcSettingsSchema, type OidcSettings } from './oidc-settings.js';

const LOOK_MS = 60_000;

/**
 * Checks each hour, by refresh tokens, that people still have their account at the issuer, and reads their groups. Two
 * consecutive rejections suspend the credentials of an account. An unavailable issuer changes nothing.
 *
 * If a process stops during a check, the check is repeated an hour later.
 */
@Injectable()
export class IdentityChecksService implements OnApplicationBootstrap {
  private readonly logger = new Logger('oidc');

  constructor(
    @InjectSettings(oidcSettingsSchema) private readonly oidcSettings: OidcSettings,
    private readonly identities: Identities,
    private readonly identitiesRepository: IdentitiesRepository,
    private readonly issuerService: IssuerService,
    private readonly intervalSchedule: IntervalSchedule,
    private readonly secrets: Secrets,
  ) {}

  onApplicationBootstrap(): void {
    this.intervalSchedule.every('check of identities', LOOK_MS, () => this.checkDue());
  }

  async checkDue(): Promise<void> {
    for (;;) {
      const claimed = await this.identitiesRepository.claimDue(this.oidcSettings.OIDC_ISSUER);
      if (claimed.length === 0) return;
      await Promise.all(claimed.map((identity) => this.check(identity)));
    }
  }

  /** Gives an account the memberships of the groups in the claims, if these are known. */
  async applyGroups(accountId: string, claims: Claims): Promise<void> {
    const { OIDC_GROUPS, OIDC_GROUPS_CLAIM } = this.oidcSettings;
    if (OIDC_GROUPS.length === 0) return;
    const groups = groupsIn(claims, OIDC_GROUPS_CLAIM);
    if (!groups) {
      return this.logger.warn(
        `${claims.sub} keeps its memberships: the claim "${OIDC_GROUPS_CLAIM}" is not a list of groups`,
      );
    }
    const problems = await this.identities.setMemberships(accountId, MODULE, rolesOf(groups, OIDC_GROUPS));
    for (const problem of problems) this.logger.warn(`A group of ${claims.sub} changed no membership: ${problem}`);
  }

  private async check(identity: CheckedIdentity): Promise<void> {
    const owner = `${identity.issuer} ${identity.subject}`;
    const refreshed = await this.issuerService.refresh(
      this.secrets.open(MODULE, identity.refreshToken, owner),
      identity.subject,
    );
    if (refreshed === null) return;
    if (refreshed === 'rejected') {
      const reason = `${this.issuerService.name} rejected two checks in a row.`;
      return this.identitiesRepository.fail(identity, (accountId, tx) => {
        this.logger.warn(`The credentials of account ${accountId} are suspended: ${reason}`);
        return this.identities.suspendCredentials(accountId, reason, tx);
      });
    }
    const { claims, refreshToken } = refreshed;
    const sealed = refreshToken && this.secrets.seal(MODULE, refreshToken, owner);
    const accountId = await this.identitiesRepository.pass(identity, sealed);
    if (accountId !== null) await this.applyGroups(accountId, claims);
  }
}
