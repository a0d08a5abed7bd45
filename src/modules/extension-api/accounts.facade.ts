import { Injectable } from '@nestjs/common';
import { isUUID } from 'class-validator';
import { NotFoundError } from '../../platform/errors/domain-error.js';
import type { PageQueryDto } from '../../platform/http/pagination.dto.js';
import { AccessService } from '../auth/access.service.js';
import { type AccessRule, type Action, type Caller, callerFor } from '../auth/access.types.js';
import type { AccountDto } from '../auth/account.dto.js';
import { AccountsService } from '../auth/accounts.service.js';
import { KeyScopeError } from '../auth/auth.errors.js';
import type { MemberListDto } from '../auth/member.dto.js';
import { MembersService } from '../auth/members.service.js';
import type { TargetName } from '../targets/target.types.js';
import { TargetsService } from '../targets/targets.service.js';
import { asSystem, type FacadeCaller } from './facade.types.js';

/**
 * Accounts, members of organizations, and rights.
 *
 * @stability preview
 * @example
 * // Shows a report of a server to everybody who can read it, with the name of its author.
 * export class ReportsService {
 *   constructor(private readonly accounts: Accounts) {}
 *
 *   async show(caller: Caller, { namespace, name, authorId, text }: Report): Promise<string> {
 *     const mayRead = await this.accounts.may(caller, 'read', { kind: 'server', namespace, name });
 *     if (!mayRead) throw new NotFoundError('Report not found');
 *     const author = await this.accounts.find(asSystem, authorId);
 *     return `${author.name}: ${text}`;
 *   }
 * }
 */
export abstract class Accounts {
  /**
   * Returns an account; `me` is the caller's. For a module that shows who made a record.
   *
   * @throws NotFoundError for another account than the caller's, unless it is an owner or the operator
   */
  abstract find(caller: FacadeCaller, accountId: string): Promise<AccountDto>;

  /**
   * Returns a page of the members of an organization, by name. For a module that assigns work to members.
   *
   * @throws NotFoundError if the caller is not a member; RoleError for a guest
   */
  abstract members(caller: FacadeCaller, organizationId: string, query?: PageQueryDto): Promise<MemberListDto>;

  /**
   * Returns true if the caller can do this with a server, connection or namespace, by ownership, role, visibility or grant, and its
   * key can. For a module that attaches data to targets. False for a missing target, and for calls of a suspended one.
   */
  abstract may(caller: Caller, action: Action, target: TargetName): Promise<boolean>;
}

/** {@link Accounts} by the services of REST. */
@Injectable()
export class ServiceAccounts implements Accounts {
  constructor(
    private readonly accessService: AccessService,
    private readonly accountsService: AccountsService,
    private readonly membersService: MembersService,
    private readonly targetsService: TargetsService,
  ) {}

  async find(caller: FacadeCaller, accountId: string): Promise<AccountDto> {
    return this.accountsService.get(await this.authorize(caller, accountId, { scope: 'accounts:read', account: 'id' }));
  }

  async members(caller: FacadeCaller, organizationId: string, query: PageQueryDto = {}): Promise<MemberListDto> {
    const rule = { scope: 'accounts:read', account: 'id', may: 'own', member: true } as const;
    const id = await this.authorize(caller, organizationId, rule);
    return this.membersService.list(caller === asSystem ? callerFor(id) : caller, id, query);
  }

  readonly may: Accounts['may'] = async (caller, action, name) => {
    const target = await this.targetsService.find(name);
    if (!target || (action === 'call' && target.suspended !== null)) return false;
    try {
      if (this.accessService.isAllowed(caller, action, target)) return true;
      return await this.accessService.mayUse(caller, action, target);
    } catch (error) {
      if (error instanceof KeyScopeError) return false;
      throw error;
    }
  };

  /** Returns the id of the account. @throws NotFoundError, RoleError, KeyScopeError */
  private async authorize(caller: FacadeCaller, id: string, rule: AccessRule): Promise<string> {
    const grant = caller === asSystem ? null : await this.accessService.authorize(caller, rule, { account: id });
    const accountId = grant?.accountId ?? id;
    if (!isUUID(accountId)) throw new NotFoundError('Account not found');
    return accountId;
  }
}
