import { Injectable } from '@nestjs/common';
import { isUUID } from 'class-validator';
import { ForbiddenError, NotFoundError } from '../../platform/errors/domain-error.js';
import type { PageQueryDto } from '../../platform/http/pagination.dto.js';
import { AccessService } from '../auth/access.service.js';
import type { Caller } from '../auth/access.types.js';
import type { AccessRequestListDto } from '../grants/access-request.dto.js';
import { AccessRequestsService } from '../grants/access-requests.service.js';
import type { GivenGrantListDto, GrantListDto } from '../grants/grant.dto.js';
import { GrantsService } from '../grants/grants.service.js';
import { ownServerOrNone } from '../servers/server.decorator.js';
import type { Target, TargetName } from '../targets/target.types.js';
import { TargetsService } from '../targets/targets.service.js';
import { FacadeTargets, managedServer } from './facade-targets.js';

const targetMissing = () => new NotFoundError('Target not found');

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

  /** Returns a page of the requests of the caller for access to servers, the newest first. */
  abstract listOwnRequests(caller: Caller, query?: PageQueryDto): Promise<AccessRequestListDto>;

  /** Returns a page of the open requests for access to a server. @throws ServerNotFoundError for others than its owners and managers */
  abstract listServerRequests(caller: Caller, server: string, query?: PageQueryDto): Promise<AccessRequestListDto>;

  /** Requests access to a server. @throws ServerNotFoundError, TooManyError; ConflictError for an own server */
  abstract request(caller: Caller, server: string, text: string): Promise<void>;

  /**
   * Grants the requested access, with the terms of {@link set}, or rejects it with a reason.
   *
   * @throws ServerNotFoundError, InvalidInputError, GrantLevelError; NotFoundError; ConflictError for a decided request
   */
  abstract decideRequest(
    caller: Caller,
    server: string,
    requestId: string,
    decision: { grant?: object; refuse?: string },
  ): Promise<void>;

  /** Returns a page of the grants of a target, the newest first. @throws NotFoundError for others than its owners and their editors */
  abstract list(caller: Caller, target: TargetName, query?: PageQueryDto): Promise<GrantListDto>;

  /** Grants a target, or changes a grant. @param terms the body of `PUT …/grants` @throws InvalidInputError, ConflictError; NotFoundError as {@link list} */
  abstract set(caller: Caller, target: TargetName, terms: object): Promise<void>;

  /** Revokes a grant of a target. @throws NotFoundError */
  abstract revoke(caller: Caller, target: TargetName, grantId: string): Promise<void>;
}

@Injectable()
export class ServiceGrants implements Grants {
  constructor(
    private readonly accessService: AccessService,
    private readonly facadeTargets: FacadeTargets,
    private readonly accessRequestsService: AccessRequestsService,
    private readonly grantsService: GrantsService,
    private readonly targetsService: TargetsService,
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

  readonly listOwnRequests: Grants['listOwnRequests'] = async (caller, query = {}) => {
    const rule = { scope: 'accounts:read', account: 'id' } as const;
    const accountId = await this.facadeTargets.account(caller, caller.accountId, rule);
    return this.accessRequestsService.list({ accountId }, query);
  };

  readonly listServerRequests: Grants['listServerRequests'] = async (caller, name, query = {}) => {
    const { server } = await this.facadeTargets.server(caller, name, managedServer);
    return this.accessRequestsService.list({ serverId: server.id, isOpen: true }, query);
  };

  readonly request: Grants['request'] = async (caller, name, text) => {
    const { server } = await this.facadeTargets.server(caller, name, { scope: 'servers:write' });
    await this.accessRequestsService.requestAccess(caller, server, text);
  };

  readonly decideRequest: Grants['decideRequest'] = async (caller, name, id, { grant, refuse }) => {
    const rule = { scope: 'servers:write', ...ownServerOrNone } as const;
    const { server, actor } = await this.facadeTargets.server(caller, name, rule);
    if (!isUUID(id)) throw new NotFoundError('Access request not found');
    const decision = { refuse, grant: grant && (await this.grantsService.checkBody(grant)) };
    await this.accessRequestsService.decide(server, id, actor, decision);
  };

  readonly list: Grants['list'] = async (caller, name, query = {}) =>
    this.grantsService.list(await this.administered(caller, name), query);

  readonly set: Grants['set'] = async (caller, name, terms) => {
    const target = await this.administered(caller, name);
    await this.grantsService.set(target, caller, await this.grantsService.checkBody(terms), targetMissing);
  };

  readonly revoke: Grants['revoke'] = async (caller, name, id) => {
    const target = await this.administered(caller, name);
    if (!isUUID(id)) throw new NotFoundError('Grant not found');
    await this.grantsService.remove(target, caller, id, {});
  };

  private async administered(caller: Caller, name: TargetName): Promise<Target> {
    const target = await this.targetsService.find(name);
    if (!target || !this.accessService.isAllowed(caller, 'administer', target)) throw targetMissing();
    return target;
  }
}
