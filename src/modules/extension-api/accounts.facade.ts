import { Injectable } from '@nestjs/common';
import { isUUID } from 'class-validator';
import { NotFoundError } from '../../platform/errors/domain-error.js';
import type { PageQueryDto } from '../../platform/http/pagination.dto.js';
import { AccessService } from '../auth/access.service.js';
import { type AccessRule, type Action, type Caller, callerFor, type Role } from '../auth/access.types.js';
import type {
  AccountDto,
  AccountListDto,
  AccountsQueryDto,
  CreateAccountDto,
  UpdateAccountDto,
} from '../auth/account.dto.js';
import { AccountsService } from '../auth/accounts.service.js';
import { KeyScopeError } from '../auth/auth.errors.js';
import type { MemberDto, MemberInvitationDto, MemberListDto } from '../auth/member.dto.js';
import { MembersService } from '../auth/members.service.js';
import type { InvitationDto } from '../people/invitation.dto.js';
import { InvitationsService } from '../people/invitations.service.js';
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

  /** Returns a page of all accounts, the newest first, with the last use of each. @throws ForbiddenError for others than operators */
  abstract list(caller: FacadeCaller, query?: AccountsQueryDto): Promise<AccountListDto>;

  /** Creates an account. @throws ConflictError if the name is taken; ForbiddenError for others than operators */
  abstract create(caller: Caller, account: CreateAccountDto): Promise<AccountDto>;

  /**
   * Disables or enables an account, or changes its operator role.
   *
   * @throws ConflictError for the last operator, and for an operator to be disabled; NotFoundError; ForbiddenError for others than
   * operators
   */
  abstract update(caller: Caller, accountId: string, change: UpdateAccountDto): Promise<AccountDto>;

  /**
   * Creates a link by which a person chooses the password of an account, the first or a new one. Only the response has it.
   *
   * @throws ConflictError for a disabled account and an organization with members; NotFoundError; ForbiddenError for others than
   * operators, and for the account of the caller
   */
  abstract invite(caller: Caller, accountId: string): Promise<InvitationDto>;

  /**
   * Sets the role of a member of an organization. Invites an account that is not a member, unless the organization has no owner yet.
   *
   * @throws ConflictError for the last owner; NotFoundError; RoleError for others than its owners and operators
   */
  abstract setMember(
    caller: Caller,
    organizationId: string,
    accountId: string,
    role: Role,
  ): Promise<MemberDto | MemberInvitationDto>;

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
    private readonly invitationsService: InvitationsService,
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

  async list(caller: FacadeCaller, query: AccountsQueryDto = {}): Promise<AccountListDto> {
    if (caller !== asSystem) await this.accessService.authorize(caller, { scope: 'accounts:read', operator: true }, {});
    return this.accountsService.list(query);
  }

  async create(caller: Caller, account: CreateAccountDto): Promise<AccountDto> {
    await this.accessService.authorize(caller, { scope: 'accounts:write', operator: true }, {});
    return this.accountsService.create(caller, account);
  }

  async update(caller: Caller, accountId: string, change: UpdateAccountDto): Promise<AccountDto> {
    const rule = { scope: 'accounts:write', account: 'id', operator: true } as const;
    return this.accountsService.update(caller, await this.authorize(caller, accountId, rule), change);
  }

  async invite(caller: Caller, accountId: string): Promise<InvitationDto> {
    const rule = { scope: 'accounts:write', account: 'id', operator: true } as const;
    return this.invitationsService.create(await this.authorize(caller, accountId, rule), caller);
  }

  async setMember(caller: Caller, organizationId: string, accountId: string, role: Role) {
    const rule = { scope: 'accounts:write', account: 'id', may: 'own' } as const;
    const id = await this.authorize(caller, organizationId, rule);
    return this.membersService.set(caller, id, accountId, role);
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
