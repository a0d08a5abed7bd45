import { Injectable } from '@nestjs/common';
import type { PageQueryDto } from '../../platform/http/pagination.dto.js';
import { AccessService } from '../auth/access.service.js';
import { type Action, type Caller, callerFor, type Role } from '../auth/access.types.js';
import type {
  AccountDto,
  AccountListDto,
  AccountsQueryDto,
  AccountUsageDto,
  CreateAccountDto,
  UpdateAccountDto,
} from '../auth/account.dto.js';
import { AccountLimitsService } from '../auth/account-limits.service.js';
import { AccountsService } from '../auth/accounts.service.js';
import type { ApiKeyListDto, CreateApiKeyDto, CreatedApiKeyDto } from '../auth/account.dto.js';
import { ApiKeysService } from '../auth/api-keys.service.js';
import { KeyScopeError } from '../auth/auth.errors.js';
import type {
  MemberDto,
  MemberInvitationDto,
  MemberInvitationListDto,
  MemberListDto,
  RemovedMemberDto,
} from '../auth/member.dto.js';
import { MembersService } from '../auth/members.service.js';
import type { InvitationDto } from '../people/invitation.dto.js';
import { InvitationsService } from '../people/invitations.service.js';
import type { Target, TargetName } from '../targets/target.types.js';
import { TargetsService } from '../targets/targets.service.js';
import { asSystem, type FacadeCaller } from './facade.types.js';
import { FacadeTargets } from './facade-targets.js';

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
   * Returns an account; `me` is the caller's.
   *
   * @throws NotFoundError for another account than the caller's, unless it is an owner or the operator
   */
  abstract find(caller: FacadeCaller, accountId: string): Promise<AccountDto>;

  /**
   * Returns a page of the members of an organization, by name.
   *
   * @throws NotFoundError if the caller is not a member; RoleError for a guest
   */
  abstract members(caller: FacadeCaller, organizationId: string, query?: PageQueryDto): Promise<MemberListDto>;

  /** Returns a page of all accounts, the newest first, with the last use of each. @throws ForbiddenError for others than operators */
  abstract list(caller: FacadeCaller, query?: AccountsQueryDto): Promise<AccountListDto>;

  /** Returns the limits of an account, and what it uses of them. @throws NotFoundError as {@link find} */
  abstract usage(caller: FacadeCaller, accountId: string): Promise<AccountUsageDto>;

  /**
   * Creates an account. With a limit `organizations` above 0, others than operators create organizations, and own them.
   *
   * @throws ConflictError if the name is taken; ForbiddenError for others than operators; QuotaExceededError
   */
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

  /** Finds an organization by its name or id, with the role of the caller; null if the caller is neither a member nor an operator. */
  abstract findOrganization(caller: Caller, nameOrId: string): Promise<{ id: string; name: string; role: Role } | null>;

  /**
   * Removes a member, or the caller itself, and the client authorizations that the membership allowed.
   *
   * @param revokeKeys also revokes the API keys of the organization that the member created
   * @throws ConflictError for the last owner; NotFoundError; RoleError for others than its owners and operators
   */
  abstract removeMember(
    caller: Caller,
    organizationId: string,
    accountId: string,
    revokeKeys?: boolean,
  ): Promise<RemovedMemberDto>;

  /**
   * Creates a link by which one person joins an organization. Only the response has it.
   *
   * @throws ConflictError without an owner, and beyond the limit; NotFoundError; RoleError for others than its owners and operators
   */
  abstract inviteMember(caller: Caller, organizationId: string, role: Role): Promise<InvitationDto>;

  /** Returns a page of its unused invitations, the newest first. @throws NotFoundError; RoleError as {@link inviteMember} */
  abstract memberInvitations(
    caller: Caller,
    organizationId: string,
    query?: PageQueryDto,
  ): Promise<MemberInvitationListDto>;

  /** Revokes an unused invitation. @throws NotFoundError; RoleError as {@link inviteMember} */
  abstract revokeMemberInvitation(caller: Caller, organizationId: string, invitationId: string): Promise<void>;

  /** Returns the API keys of an account, the newest first. @throws NotFoundError for others than its owners and operators */
  abstract keys(caller: Caller, accountId: string): Promise<ApiKeyListDto>;

  /** Creates an API key of an account. Only the response has it. @throws ForbiddenError for more rights than the caller's; NotFoundError */
  abstract createKey(caller: Caller, accountId: string, key: CreateApiKeyDto): Promise<CreatedApiKeyDto>;

  /** Revokes an API key of an account. @throws NotFoundError */
  abstract revokeKey(caller: Caller, accountId: string, keyId: string): Promise<void>;

  /**
   * Returns true if the caller can do this with a server, connection or namespace, by ownership, role, visibility or grant, and its key
   * can. False for a missing target, and for calls of a suspended one.
   */
  abstract may(caller: Caller, action: Action, target: TargetName): Promise<boolean>;

  /** Returns a server, connection or namespace with which the caller can do this; null as {@link may} returns false. */
  abstract target(caller: Caller, action: Action, target: TargetName): Promise<Target | null>;
}

const readByOwners = { scope: 'accounts:read', account: 'id' } as const;
const writtenByOwners = { scope: 'accounts:write', account: 'id', may: 'own' } as const;

@Injectable()
export class ServiceAccounts implements Accounts {
  constructor(
    private readonly accessService: AccessService,
    private readonly accountLimitsService: AccountLimitsService,
    private readonly facadeTargets: FacadeTargets,
    private readonly accountsService: AccountsService,
    private readonly apiKeysService: ApiKeysService,
    private readonly invitationsService: InvitationsService,
    private readonly membersService: MembersService,
    private readonly targetsService: TargetsService,
  ) {}

  async find(caller: FacadeCaller, accountId: string): Promise<AccountDto> {
    return this.accountsService.get(await this.facadeTargets.account(caller, accountId, readByOwners));
  }

  async members(caller: FacadeCaller, organizationId: string, query: PageQueryDto = {}): Promise<MemberListDto> {
    const id = await this.facadeTargets.account(caller, organizationId, {
      ...writtenByOwners,
      scope: 'accounts:read',
      member: true,
    });
    return this.membersService.list(caller === asSystem ? callerFor(id) : caller, id, query);
  }

  async list(caller: FacadeCaller, query: AccountsQueryDto = {}): Promise<AccountListDto> {
    if (caller !== asSystem) await this.accessService.authorize(caller, { scope: 'accounts:read', operator: true }, {});
    return this.accountsService.list(query);
  }

  readonly usage: Accounts['usage'] = async (caller, id) =>
    this.accountLimitsService.usage(await this.facadeTargets.account(caller, id, readByOwners));

  async create(caller: Caller, account: CreateAccountDto): Promise<AccountDto> {
    await this.accessService.authorize(caller, { scope: 'accounts:write', operator: true, founders: true }, {});
    return this.accountsService.create(caller, account);
  }

  async update(caller: Caller, accountId: string, change: UpdateAccountDto): Promise<AccountDto> {
    const rule = { scope: 'accounts:write', account: 'id', operator: true } as const;
    return this.accountsService.update(caller, await this.facadeTargets.account(caller, accountId, rule), change);
  }

  async invite(caller: Caller, accountId: string): Promise<InvitationDto> {
    const rule = { scope: 'accounts:write', account: 'id', operator: true } as const;
    return this.invitationsService.create(await this.facadeTargets.account(caller, accountId, rule), caller);
  }

  async setMember(caller: Caller, organizationId: string, accountId: string, role: Role) {
    const id = await this.facadeTargets.account(caller, organizationId, writtenByOwners);
    return this.membersService.set(caller, id, accountId, role);
  }

  readonly findOrganization: Accounts['findOrganization'] = async (caller, nameOrId) => {
    await this.accessService.authorize(caller, { scope: 'accounts:read' }, {});
    return this.membersService.find(caller, nameOrId);
  };

  readonly removeMember: Accounts['removeMember'] = async (caller, id, accountId, revokeKeys = false) => {
    const organizationId = await this.facadeTargets.account(caller, id, { ...writtenByOwners, member: true });
    return this.membersService.remove(caller, { organizationId, accountId, revokeKeys });
  };

  readonly inviteMember: Accounts['inviteMember'] = async (caller, id, role) =>
    this.invitationsService.inviteMember(await this.facadeTargets.account(caller, id, writtenByOwners), role, caller);

  readonly memberInvitations: Accounts['memberInvitations'] = async (caller, id, query = {}) =>
    this.membersService.invitations(await this.facadeTargets.account(caller, id, readByOwners), query);

  readonly revokeMemberInvitation: Accounts['revokeMemberInvitation'] = async (caller, id, invitationId) =>
    this.membersService.deleteInvitation(
      caller,
      await this.facadeTargets.account(caller, id, writtenByOwners),
      invitationId,
    );

  readonly keys: Accounts['keys'] = async (caller, id) =>
    this.apiKeysService.list(await this.facadeTargets.account(caller, id, readByOwners));

  readonly createKey: Accounts['createKey'] = async (caller, id, key) =>
    this.apiKeysService.create(caller, await this.facadeTargets.account(caller, id, writtenByOwners), key);

  readonly revokeKey: Accounts['revokeKey'] = async (caller, id, keyId) => {
    await this.apiKeysService.revoke(caller, await this.facadeTargets.account(caller, id, writtenByOwners), keyId, {});
  };

  readonly may: Accounts['may'] = async (caller, action, name) => (await this.target(caller, action, name)) !== null;

  readonly target: Accounts['target'] = async (caller, action, name) => {
    const target = await this.targetsService.find(name);
    if (!target || (action === 'call' && target.suspended !== null)) return null;
    try {
      if (this.accessService.isAllowed(caller, action, target)) return target;
      return (await this.accessService.mayUse(caller, action, target)) ? target : null;
    } catch (error) {
      if (error instanceof KeyScopeError) return null;
      throw error;
    }
  };
}
