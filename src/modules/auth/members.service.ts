/**
 * A member of an organization acts as itself, with the rights of its role (`may.ts`). An organization without members works like a user,
 * with keys and a password of its own; its first member is an owner.
 *
 * One owner remains, even if two leave concurrently: every change locks the organization. A change drops the cached callers of the account
 * and closes its streams; removing a member also revokes the client authorizations that the membership opened.
 *
 * Fails: 404 without the organization, the account or the member; 409 for the last owner, beyond the limits, and for an account that is not
 * an organization.
 */
import { Injectable } from '@nestjs/common';
import { onViolation } from '../../platform/database/postgres-errors.js';
import { readPage, type PageQueryDto } from '../../platform/http/pagination.dto.js';
import { STORABLE } from '../../platform/http/input-values.js';
import { ConflictError, NotFoundError } from '../../platform/errors/domain-error.js';
import type { Caller, Joining, Role } from './access.types.js';
import { ApiKeysService } from './api-keys.service.js';
import { RoleError } from './auth.errors.js';
import {
  toMemberDto,
  toMemberInvitationDto,
  type MemberDto,
  type MemberInvitationDto,
  type MemberInvitationListDto,
  type MemberListDto,
  type MembershipDto,
  type MembershipListDto,
  type RemovedMemberDto,
} from './member.dto.js';
import { REFUSALS } from './members.errors.js';
import { MembersRepository } from './members.repository.js';

export type WaitingInvitation = MemberInvitationDto;

@Injectable()
export class MembersService {
  constructor(
    private readonly membersRepository: MembersRepository,
    private readonly apiKeysService: ApiKeysService,
  ) {}

  /**
   * Finds an organization of the caller. The operator manages members as an owner does.
   *
   * @returns null if the organization does not exist or the caller is not a member
   */
  async find(caller: Caller, nameOrId: string): Promise<{ id: string; name: string; role: Role } | null> {
    const organization = STORABLE.test(nameOrId) ? await this.membersRepository.find(nameOrId) : null;
    if (!organization) return null;
    // eslint-disable-next-line no-restricted-syntax -- An organization without members is its own owner.
    const isOwner = caller.isOperator || organization.id === caller.accountId;
    const role = caller.memberships.get(organization.id) ?? (isOwner ? 'owner' : null);
    return role && { ...organization, role };
  }

  /** @throws RoleError for a guest */
  async list(caller: Caller, organizationId: string, query: PageQueryDto): Promise<MemberListDto> {
    if (!caller.isOperator && caller.memberships.get(organizationId) === 'guest') throw new RoleError('guest');
    const { rows, pagination } = await readPage(query, this.membersRepository.count(organizationId), (page) =>
      this.membersRepository.list(organizationId, page),
    );
    return { members: rows.map(toMemberDto), pagination };
  }

  /** Returns at most 100 organizations by name, without disabled ones. */
  async organizationsOf(accountId: string): Promise<MembershipListDto> {
    const rows = await this.membersRepository.organizationsOf(accountId);
    return { memberships: rows.map((row) => ({ ...row, createdAt: row.createdAt.toISOString() })) };
  }

  /**
   * Invites an account that is not a member; the operator adds it directly.
   *
   * @throws NotFoundError, ConflictError
   */
  async set(
    caller: Caller,
    organizationId: string,
    accountId: string,
    role: Role,
  ): Promise<MemberDto | MemberInvitationDto> {
    const terms = { organizationId, accountId, role, createdBy: caller.accountId };
    const stored = await this.membersRepository.set(caller, terms, !caller.isOperator);
    if (typeof stored === 'string') throw REFUSALS[stored]();
    if ('invitation' in stored) return toMemberInvitationDto(stored.invitation);
    await this.apiKeysService.accountChanged(accountId);
    if (stored.isFirst) await this.apiKeysService.accountChanged(organizationId);
    return toMemberDto(stored.member);
  }

  /**
   * Lists invitations, newest first.
   *
   * @param passwords also links by which the account chooses a password
   */
  async invitations(accountId: string, query: PageQueryDto, passwords = false): Promise<MemberInvitationListDto> {
    const { rows, pagination } = await readPage(
      query,
      this.membersRepository.countInvitations(accountId, passwords),
      (page) => this.membersRepository.invitations(accountId, passwords, page),
    );
    return { invitations: rows.map(toMemberInvitationDto), pagination };
  }

  /** @throws NotFoundError, ConflictError */
  async accept(accountId: string, id: string): Promise<MembershipDto> {
    const invitation = await this.membersRepository.findInvitation(accountId, id);
    if (!invitation || !(await this.join(invitation, { accountId }))) throw invitationMissing();
    const { memberships } = await this.organizationsOf(accountId);
    const joined = memberships.find(({ organizationId }) => organizationId === invitation.organizationId);
    if (!joined) throw invitationMissing();
    return joined;
  }

  /** @throws NotFoundError */
  async deleteInvitation(caller: Caller, accountId: string, id: string): Promise<void> {
    if (!(await this.membersRepository.deleteInvitation(caller, accountId, id))) throw invitationMissing();
  }

  /**
   * @returns the id of the account; null for an expired, used or revoked invitation
   * @throws NotFoundError; ConflictError, including for a new account whose name is taken
   */
  async join(invitation: { hash: Buffer; organizationId: string }, joiner: Joining): Promise<string | null> {
    const toConflict = () => new ConflictError('Another account has this name: choose another one');
    const joined = await this.membersRepository.join(invitation, joiner).catch(onViolation({ unique: toConflict }));
    if (!joined) return null;
    await this.apiKeysService.accountChanged(joined.accountId);
    if (joined.isFirst) await this.apiKeysService.accountChanged(invitation.organizationId);
    return joined.accountId;
  }

  /**
   * @param revokeKeys also revokes the keys of the organization that the member created
   * @throws NotFoundError, ConflictError; RoleError if the caller is not an owner and removes another member
   */
  async remove(
    caller: Caller,
    { organizationId, accountId, revokeKeys }: { organizationId: string; accountId: string; revokeKeys: boolean },
  ): Promise<RemovedMemberDto> {
    const role = caller.memberships.get(organizationId);
    // eslint-disable-next-line no-restricted-syntax -- A member may leave.
    const isLeaving = accountId === caller.accountId && !revokeKeys;
    if (!isLeaving && !caller.isOperator && role && role !== 'owner') throw new RoleError(role);
    const removed = await this.membersRepository.remove(caller, organizationId, accountId, revokeKeys);
    if (typeof removed === 'string') throw REFUSALS[removed]();
    await this.apiKeysService.accountChanged(accountId);
    if (revokeKeys) for (const { id } of removed.keys) this.apiKeysService.announceRevocation(id);
    return { success: true, keys: removed.keys, revoked: revokeKeys };
  }

  /**
   * Gives an account the memberships of a source, such as the groups of a directory, and removes others that the source set before.
   * Memberships set by people remain, and so does the last owner.
   *
   * @param newRoles by the name or id of the organization
   * @returns messages about what was not possible
   */
  async setFrom(source: string, accountId: string, newRoles: ReadonlyMap<string, Role>): Promise<string[]> {
    const problems: string[] = [];
    const changed: string[] = [];
    const former = await this.membersRepository.rolesFrom(source, accountId);
    for (const [name, role] of newRoles) {
      const organization = await this.membersRepository.find(name);
      const before = organization && former.get(organization.id);
      if (organization) former.delete(organization.id);
      if (before === role) continue;
      const terms = { organizationId: organization?.id ?? accountId, accountId, role, createdBy: accountId };
      const stored = await this.membersRepository.set({ accountId }, terms, false, undefined, source);
      if (typeof stored !== 'string')
        changed.push(accountId, ...('isFirst' in stored && stored.isFirst ? [terms.organizationId] : []));
      else if (stored !== 'a member') problems.push(`${name}: ${REFUSALS[stored]().message}`);
    }
    for (const id of former.keys()) {
      const removed = await this.membersRepository.remove({ accountId }, id, accountId, false, source);
      if (typeof removed !== 'string') changed.push(accountId);
      else if (removed !== 'no member') problems.push(`${id}: ${REFUSALS[removed]().message}`);
    }
    for (const id of new Set(changed)) await this.apiKeysService.accountChanged(id);
    return problems;
  }

  /**
   * Removes members that these keys added to organizations that the account owns; for the operator everywhere.
   * @returns how many
   */
  async removeAddedBy(caller: Caller, accountId: string, keyIds: string[]): Promise<number> {
    let count = 0;
    for (const added of await this.membersRepository.addedBy(accountId, keyIds, caller.isOperator)) {
      const removed = await this.membersRepository.remove(caller, added.organizationId, added.accountId, false);
      if (typeof removed === 'string') continue;
      await this.apiKeysService.accountChanged(added.accountId);
      count += 1;
    }
    return count;
  }
}

const invitationMissing = () => new NotFoundError('Invitation not found');
