import { ApiProperty } from '#api-docs';
import { IsIn } from 'class-validator';
import { IsFlag } from '../../platform/http/input-values.js';
import { PaginationDto } from '../../platform/http/pagination.dto.js';
import { roles, type Role } from './access.types.js';

export class MemberDto {
  /**
   * Id of the account.
   * @example '4f1f2f54-8f8c-4a8e-9d0e-3c1f1b0a2d11'
   */
  accountId: string;
  /** @example 'ada' */
  accountName: string;
  @ApiProperty({ enum: roles })
  role: Role;
  /**
   * Id of the account that set the role.
   * @example '4f1f2f54-8f8c-4a8e-9d0e-3c1f1b0a2d11'
   */
  createdBy: string;
  /** @example '2026-11-20T10:15:00.000Z' */
  createdAt: string;
}

export class MemberListDto {
  members: MemberDto[];
  pagination: PaginationDto;
}

export class MembershipDto {
  /**
   * Id of the organization's account.
   * @example '9b2f7c0e-51a3-4c9d-8e55-2f0d6c7b8a91'
   */
  organizationId: string;
  /** @example 'acme' */
  organizationName: string;
  @ApiProperty({ enum: roles })
  role: Role;
  /** @example '2026-11-20T10:15:00.000Z' */
  createdAt: string;
}

export class MembershipListDto {
  memberships: MembershipDto[];
}

export class MemberInvitationDto {
  /** @example '0b5c7f7e-6c0f-4a77-9d5c-2f5b8d3f6a10' */
  id: string;
  /**
   * Id of the organization's account; null for a link by which the account chooses a password.
   * @example '9b2f7c0e-51a3-4c9d-8e55-2f0d6c7b8a91'
   */
  organizationId: string | null;
  /** @example 'acme' */
  organizationName: string | null;
  /**
   * Id of the invited account; null for a link by which anybody joins.
   * @example '4f1f2f54-8f8c-4a8e-9d0e-3c1f1b0a2d11'
   */
  accountId: string | null;
  /** @example 'ada' */
  accountName: string | null;
  /** Null for a password. */
  @ApiProperty({ enum: roles, nullable: true })
  role: Role | null;
  /**
   * Id of the account that invited.
   * @example '4f1f2f54-8f8c-4a8e-9d0e-3c1f1b0a2d11'
   */
  createdBy: string;
  /**
   * Id of the API key that invited, or of the session; of a session that began with a key, the id of the key.
   * @example '0b5c7f7e-6c0f-4a77-9d5c-2f5b8d3f6a10'
   */
  madeByKey: string | null;
  /**
   * Time until which the invitation can be accepted: 72 hours.
   * @example '2026-11-23T10:15:00.000Z'
   */
  expiresAt: string;
}

export class MemberInvitationListDto {
  invitations: MemberInvitationDto[];
  pagination: PaginationDto;
}

export class SetMemberDto {
  /**
   * `owner`: everything. `editor`: everything but members, keys of the organization, grants to others than members, and the
   * deletion of namespaces.
   * `member`: finds and calls its servers and connections. `guest`: what was granted to the account itself.
   */
  @IsIn(roles)
  role: Role;
}

export class RemoveMemberQueryDto {
  /** Also revokes the API keys of the organization that the member created: `1`, `0`, `true` or `false`. */
  @IsFlag()
  revokeKeys?: boolean;
}

export class MemberKeyDto {
  /** @example '0b5c7f7e-6c0f-4a77-9d5c-2f5b8d3f6a10' */
  id: string;
  /** @example 'ci' */
  name: string;
}

export class RemovedMemberDto {
  success: boolean;
  /** API keys of the organization that the member created. They remain valid unless they were revoked. */
  keys: MemberKeyDto[];
  /** True if `keys` were revoked. */
  revoked: boolean;
}

export type MemberRow = Omit<MemberDto, 'createdAt'> & { createdAt: Date };

export type MembershipRow = Omit<MembershipDto, 'createdAt'> & { createdAt: Date };

/** An invitation, possibly to choose a password. */
export type MemberInvitationRow = Omit<MemberInvitationDto, 'expiresAt'> & { expiresAt: Date };

export function toMemberDto({ accountId, accountName, role, createdBy, createdAt }: MemberRow): MemberDto {
  return { accountId, accountName, role, createdBy, createdAt: createdAt.toISOString() };
}

export function toMemberInvitationDto({ expiresAt, ...row }: MemberInvitationRow): MemberInvitationDto {
  return { ...row, expiresAt: expiresAt.toISOString() };
}
