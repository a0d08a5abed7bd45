import { Body, Controller, Delete, Get, Header, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiParam, ApiTags } from '@nestjs/swagger';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { UuidOr404 } from '../../platform/http/input.pipe.js';
import { PageQueryDto } from '../../platform/http/pagination.dto.js';
import { SuccessDto } from '../../platform/http/success.dto.js';
import { Access, CurrentAccountId, CurrentCaller } from '../auth/access.decorator.js';
import type { Caller } from '../auth/access.types.js';
import { MemberInvitationListDto, MembershipDto } from '../auth/member.dto.js';
import { MembersService } from '../auth/members.service.js';
import { InvitationDto, InviteMemberDto } from './invitation.dto.js';
import { InvitationsService } from './invitations.service.js';

const accountIdParam = { name: 'accountId', description: "The account's id, or `me` for your own.", example: 'me' };

const invitationIdParam = {
  name: 'invitationId',
  description: "The invitation's id.",
  example: '0b5c7f7e-6c0f-4a77-9d5c-2f5b8d3f6a10',
};

const missing = { status: 404, message: 'Invitation not found' };

/** Invitations of people to accounts. */
@ApiTags('Accounts and API keys')
@Controller('accounts')
export class InvitationsController {
  constructor(
    private readonly invitations: InvitationsService,
    private readonly members: MembersService,
  ) {}

  /** List invitations of an account. For an organization, the accounts that it has invited. Newest first. */
  @Get(':accountId/invitations')
  @ApiParam(accountIdParam)
  @Access('accounts:read', { account: 'accountId' })
  @ApiErrors(400, { status: 404, message: 'Account not found' })
  list(
    @CurrentAccountId(UuidOr404('Account not found')) id: string,
    @Query() query: PageQueryDto,
  ): Promise<MemberInvitationListDto> {
    return this.members.invitations(id, query);
  }

  /** Accept an invitation into an organization. For your own account: the membership begins. */
  @Post(':accountId/invitations/:invitationId')
  @HttpCode(200)
  @ApiParam(accountIdParam)
  @ApiParam(invitationIdParam)
  @Access('accounts:write', { account: 'accountId' })
  @ApiErrors(missing, {
    status: 409,
    text: 'A limit of the organization or of the account.',
    message: 'This account is a member of 100 organizations, as many as it may be',
  })
  accept(
    @CurrentCaller() { accountId }: Caller,
    @Param('invitationId', UuidOr404('Invitation not found')) id: string,
  ): Promise<MembershipDto> {
    return this.members.accept(accountId, id);
  }

  /** Decline an invitation into an organization. An owner of the organization withdraws it. */
  @Delete(':accountId/invitations/:invitationId')
  @HttpCode(200)
  @ApiParam(accountIdParam)
  @ApiParam(invitationIdParam)
  @Access('accounts:write', { account: 'accountId', ownersOnly: true })
  @ApiErrors(missing)
  async decline(
    @CurrentAccountId(UuidOr404('Account not found')) accountId: string,
    @Param('invitationId', UuidOr404('Invitation not found')) id: string,
  ): Promise<SuccessDto> {
    await this.members.deleteInvitation(accountId, id);
    return { success: true };
  }

  /**
   * Issue an invitation to set a password (operator). The user chooses the password of the account. Older unused links of the account
   * end. It may also replace a forgotten password. A key makes none for its own account (403): whoever has it would keep it.
   */
  @Post(':accountId/invitations')
  @Header('cache-control', 'no-store')
  @ApiParam(accountIdParam)
  @Access('accounts:write', { account: 'accountId', operator: true })
  @ApiErrors(
    403,
    { status: 404, message: 'Account not found' },
    {
      status: 409,
      text: 'The account is disabled, or an organization with members.',
      message: 'The account is disabled: enable it first',
    },
  )
  create(
    @CurrentCaller() caller: Caller,
    @CurrentAccountId(UuidOr404('Account not found')) id: string,
  ): Promise<InvitationDto> {
    return this.invitations.create(id, caller);
  }

  /**
   * Issue an invitation to an organization (owners). The user joins with the account that is signed in, or with a new
   * one. The link ends when its maker is no owner any more.
   */
  @Post(':organizationId/members/invitations')
  @Header('cache-control', 'no-store')
  @ApiParam({
    name: 'organizationId',
    description: "The organization's account id.",
    example: '9b2f7c0e-51a3-4c9d-8e55-2f0d6c7b8a91',
  })
  @Access('accounts:write', { account: 'organizationId', ownersOnly: true })
  @ApiErrors(
    400,
    403,
    { status: 404, message: 'Account not found' },
    {
      status: 409,
      text: 'The account is no organization, is disabled, or has no owner.',
      message:
        'Only an organization with an owner invites: add the first one with PUT /accounts/{organizationId}/members/{accountId}',
    },
  )
  inviteMember(
    @CurrentCaller() caller: Caller,
    @CurrentAccountId(UuidOr404('Account not found')) id: string,
    @Body() { role }: InviteMemberDto,
  ): Promise<InvitationDto> {
    return this.invitations.inviteMember(id, role, caller);
  }
}
