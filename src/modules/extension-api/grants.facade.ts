import { Injectable } from '@nestjs/common';
import { ForbiddenError } from '../../platform/errors/domain-error.js';
import type { PageQueryDto } from '../../platform/http/pagination.dto.js';
import { AccessService } from '../auth/access.service.js';
import type { Caller } from '../auth/access.types.js';
import type { AccessRequestListDto } from '../grants/access-request.dto.js';
import { AccessRequestsService } from '../grants/access-requests.service.js';
import type { GivenGrantListDto } from '../grants/grant.dto.js';
import { GrantsService } from '../grants/grants.service.js';
import { FacadeTargets } from './facade-targets.js';

/**
 * Grants that accounts give, and requests for them.
 *
 * @stability preview
 * @example
 * // Counts what an account has granted to others.
 * export class AuditService {
 *   constructor(private readonly grants: Grants) {}
 *
 *   async count(caller: Caller, accountId: string): Promise<number> {
 *     return (await this.grants.listGiven(caller, accountId)).pagination.totalCount;
 *   }
 * }
 */
export abstract class Grants {
  /** Returns a page of the grants that an account gave, the newest first. @throws NotFoundError; RoleError for others than its owners */
  abstract listGiven(caller: Caller, accountId: string, query?: PageQueryDto): Promise<GivenGrantListDto>;

  /** Revokes a grant that an account gave. @throws NotFoundError; RoleError as {@link listGiven} */
  abstract revokeGiven(caller: Caller, accountId: string, grantId: string): Promise<void>;

  /**
   * Returns a page of the open requests for access to servers of an account, the newest first.
   *
   * @throws ForbiddenError for an organization where the caller is neither owner nor editor
   */
  abstract listRequests(caller: Caller, accountId: string, query?: PageQueryDto): Promise<AccessRequestListDto>;
}

/** {@link Grants} by the services of REST. */
@Injectable()
export class ServiceGrants implements Grants {
  constructor(
    private readonly accessService: AccessService,
    private readonly facadeTargets: FacadeTargets,
    private readonly accessRequestsService: AccessRequestsService,
    private readonly grantsService: GrantsService,
  ) {}

  readonly listGiven: Grants['listGiven'] = async (caller, accountId, query = {}) => {
    const rule = { scope: 'accounts:read', account: 'id' } as const;
    return this.grantsService.listGiven(await this.facadeTargets.account(caller, accountId, rule), query);
  };

  readonly revokeGiven: Grants['revokeGiven'] = async (caller, accountId, grantId) => {
    const rule = { scope: 'accounts:write', account: 'id', may: 'own' } as const;
    await this.grantsService.removeGiven(await this.facadeTargets.account(caller, accountId, rule), caller, grantId);
  };

  readonly listRequests: Grants['listRequests'] = async (caller, accountId, query = {}) => {
    const rule = { scope: 'accounts:read', account: 'id', may: 'own', member: true } as const;
    const deciderId = await this.facadeTargets.account(caller, accountId, rule);
    if (!this.accessService.owns(caller, 'administer', deciderId)) throw new ForbiddenError('Forbidden');
    return this.accessRequestsService.list({ deciderId }, query);
  };
}
